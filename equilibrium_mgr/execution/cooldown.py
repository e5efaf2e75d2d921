"""PGs that were moved recently and stay where they are, so that nothing moves back."""
from __future__ import annotations

from typing import Any, Dict, FrozenSet, Iterable, Mapping, NamedTuple

#: More PGs than this are not remembered: with pgid and time they have to fit into one stored value.
MOST_PGS = 2000


class Cooldown:
    """pgid → when its upmap items were sent, in seconds since the epoch; the newest PGs only."""

    def __init__(self) -> None:
        self.moved: Dict[str, float] = {}

    def start(self, pgids: Iterable[str], now: float) -> None:
        """Starts the cooldown of PGs that have been sent, or starts it again."""
        for pgid in pgids:
            self.moved.pop(pgid, None)  # the order tells which is the newest
            self.moved[pgid] = now
        self._forget_oldest()

    def cooling(self, now: float, seconds: float) -> Dict[str, float]:
        """pgid → seconds left, never more than `seconds`; forgets those whose cooldown is over."""
        # a clock that was set back must not make the wait longer
        self.moved = {pgid: min(at, now) for pgid, at in self.moved.items()
                      if now - at < seconds}
        return {pgid: seconds - (now - at) for pgid, at in self.moved.items()}

    def to_dict(self) -> Dict[str, Any]:
        """A JSON-ready form for the key-value store."""
        return {"moved": {pgid: int(at) for pgid, at in self.moved.items()}}

    def restore(self, dump: Mapping[str, Any]) -> None:
        """Takes over what another mgr has stored, as far as it can be understood."""
        moved = dump.get("moved")
        for pgid, at in moved.items() if isinstance(moved, dict) else ():
            if isinstance(at, (int, float)):
                self.moved.setdefault(str(pgid), float(at))
        self._forget_oldest()

    def _forget_oldest(self) -> None:
        for pgid in list(self.moved)[:max(0, len(self.moved) - MOST_PGS)]:
            del self.moved[pgid]


class ExcludedPgs(NamedTuple):
    """PGs that a plan must leave alone."""

    rejected: FrozenSet[str]   # the monitor did not keep their upmap items
    cooling: FrozenSet[str]    # moved a short while ago
    seconds: float             # until the last of those cooldowns is over
    pools: Mapping[int, str] = {}   # pool → why it has to settle first; its PGs are in `cooling`

"""PGs that we moved a short while ago and leave where they are, so that nothing goes to and fro."""
from __future__ import annotations

from typing import Any, Dict, FrozenSet, Iterable, Mapping, NamedTuple

#: More PGs than this are not remembered: with pgid and time they have to fit into one stored value.
MOST_PGS = 2000


class Cooldown:
    """pgid → when its upmap items were sent, in seconds since the epoch; the newest only."""

    def __init__(self) -> None:
        self.moved: Dict[str, float] = {}

    def start(self, pgids: Iterable[str], now: float) -> None:
        for pgid in pgids:
            self.moved.pop(pgid, None)  # the order tells which is the newest
            self.moved[pgid] = now
        self._forget_oldest()

    def cooling(self, now: float, seconds: float) -> Dict[str, float]:
        """pgid → seconds left, never more than `seconds`; forgets those that are through."""
        # a clock that was set back must not make the wait longer
        self.moved = {pgid: min(at, now) for pgid, at in self.moved.items()
                      if now - at < seconds}
        return {pgid: seconds - (now - at) for pgid, at in self.moved.items()}

    def to_dict(self) -> Dict[str, Any]:
        return {"moved": {pgid: int(at) for pgid, at in self.moved.items()}}

    def restore(self, dump: Mapping[str, Any]) -> None:
        """Takes over what another mgr has kept, as far as it can be understood."""
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

    rejected: FrozenSet[str]   # the monitor would not have them moved
    cooling: FrozenSet[str]    # moved a short while ago
    seconds: float             # until the last of those is through
    pools: Mapping[int, str] = {}   # pool → why it has to settle first; its PGs are in `cooling`

"""PGs that were moved recently and stay where they are, so that nothing moves back; and all others
that an automatic plan leaves alone."""
from __future__ import annotations

from typing import Container, Dict, FrozenSet, Iterable, Mapping, NamedTuple

from ..snapshot import reason_codes
from ..snapshot.model import Snapshot
from .guards import full_osds, unsettled_pools

#: More PGs than this are not remembered.
_MOST_PGS = 2000


class Cooldown:
    """pgid → when its upmap items were sent, in seconds since the epoch; the newest PGs only."""

    def __init__(self) -> None:
        #: replaced whole, never edited: commands read it from another thread
        self.moved: Mapping[str, float] = {}

    def start(self, pgids: Iterable[str], now: float) -> None:
        """Starts the cooldown of PGs that have been sent, or starts it again."""
        moved = dict(self.moved)
        for pgid in pgids:
            moved.pop(pgid, None)  # the order tells which is the newest
            moved[pgid] = now
        self.moved = dict(list(moved.items())[-_MOST_PGS:])

    def cooling(self, now: float, seconds: float) -> Dict[str, float]:
        """pgid → seconds left, never more than `seconds`; forgets those whose cooldown is over."""
        # a clock that was set back must not make the wait longer
        self.moved = {pgid: min(at, now) for pgid, at in self.moved.items()
                      if now - at < seconds}
        return self.seconds_left(now, seconds)

    def seconds_left(self, now: float, seconds: float) -> Dict[str, float]:
        """The same and forgets nothing: for threads that only read."""
        return {pgid: seconds - max(0.0, now - at) for pgid, at in self.moved.items()
                if now - at < seconds}


class ExcludedPgs(NamedTuple):
    """PGs that a plan must leave alone."""

    rejected: FrozenSet[str]   # the monitor did not keep their upmap items
    cooling: FrozenSet[str]    # moved a short while ago
    seconds: float             # until the last of those cooldowns is over
    pools: Mapping[int, str] = {}   # pool → why it has to settle first; its PGs are in `cooling`
    codes: Mapping[str, str] = {}   # PG of `cooling` → its reason, of snapshot/reason_codes.py
    seconds_left: Mapping[str, float] = {}   # PG → until its cooldown, or max_wait, is over


def excluded_pgs(snapshot: Snapshot, cooling: Mapping[str, float], given_up: Mapping[str, float],
                 rejected: FrozenSet[str], stopped: Container[int]) -> ExcludedPgs:
    """`cooling` and `given_up`: pgid → seconds left of pg_cooldown and of max_wait. `stopped`:
    pools whose shards took more than predicted. PGs on OSDs above nearfull have no cooldown."""
    overfull = {osd.id for osd in snapshot.osds.values() if osd.exceeds(snapshot.nearfull_ratio)}
    left = {pgid: seconds for pgid, seconds in cooling.items() if pgid in snapshot.pgs
            and overfull.isdisjoint(snapshot.pgs[pgid].up)}
    code_of: Dict[str, str] = dict.fromkeys(left, reason_codes.COOLDOWN)
    code_of.update(dict.fromkeys(given_up, reason_codes.GIVEN_UP))
    left.update(given_up)
    unsettled = unsettled_pools(snapshot)
    full = full_osds(snapshot) if unsettled else frozenset()
    for pg in snapshot.pgs.values() if unsettled or stopped else ():
        if pg.pool in stopped:
            code_of[pg.pgid] = reason_codes.MISPREDICTED
        elif pg.pool in unsettled and full.isdisjoint(pg.up):
            code_of[pg.pgid] = reason_codes.PG_NUM_CHANGING
    return ExcludedPgs(rejected, frozenset(code_of), max(left.values(), default=0.0), unsettled,
                       code_of, left)

"""Cheap change detection: by a summary that costs milliseconds, when to read the whole cluster."""
from __future__ import annotations

from typing import Callable, Dict, FrozenSet, NamedTuple, Optional

from ..gateway.cluster_summary import ClusterSummary, Fullness, OsdSummary
from ..settings import Settings
from ..snapshot.model import Snapshot
from .states import BALANCED, BLOCKED, STUCK

#: The longest time between two observations while moves are in flight that stand still, and the
#: shortest at rest; and where an OSD is above nearfull.
_LONGEST_SECONDS, FULL_PACE_SECONDS = 600.0, 240.0
#: Parts of PG states that keep the PG, or all PGs on its OSDs, from being moved.
_TROUBLES = ("degraded", "undersized", "backfill_toofull", "recovery_toofull")


class _Seen(NamedTuple):
    """The summary and the options that the last observation was made with."""

    summary: ClusterSummary
    settings: Settings


class ChangeDetector:
    """Remembers the summary that the last observation began with, and what is waited for since.

    Used by the serve thread; commands only set `observation_required`.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._seen: Optional[_Seen] = None
        self._is_awaiting = False
        self.observation_required = False

    def begin_observation(self, summary: ClusterSummary, settings: Settings) -> None:
        """Records the summary that an observation begins with, and ends all waiting."""
        self.observation_required = False
        self._is_awaiting = False
        self._seen = _Seen(summary, settings)

    def await_arrivals(self, snapshot: Snapshot) -> None:
        """Makes a summary a round suffice while what is misplaced stands still."""
        self._is_awaiting = snapshot.misplaced_copies > 0


    def is_due(self, summary: ClusterSummary, settings: Settings, state: str,
               retry_due: bool) -> bool:
        """True where an observation would show something that matters. `retry_due`: a plan may be
        made again although nothing has changed."""
        seen = self._seen
        if seen is None or self.observation_required or settings != seen.settings:
            return True
        elapsed = self._clock() - seen.summary.taken_at
        if elapsed < 0.0:
            return True  # the clock was set back
        if seen.summary.fullness != summary.fullness:
            return True
        if state in (BALANCED, STUCK):
            return elapsed >= pace_seconds(summary.fullness) and (
                retry_due or not _is_same(seen.summary, summary))
        if elapsed >= _LONGEST_SECONDS or not _has_same_topology(seen.summary, summary) or (
                _troubles(summary) != _troubles(seen.summary)) or (
                _unreported(summary) != _unreported(seen.summary)):
            return True
        return (has_moved(seen.summary, summary) or _copying_pgs(summary) > 0
                or not (state == BLOCKED or self._is_awaiting))


def pace_seconds(fullness: Fullness) -> float:
    """Least seconds between two looks at a cluster at rest, and between two plans for data that has
    grown or shrunk."""
    if fullness.backfillfull or fullness.full:
        return 0.0   # as often as there are rounds
    return FULL_PACE_SECONDS if fullness.nearfull else _LONGEST_SECONDS


def _is_same(then: ClusterSummary, now: ClusterSummary) -> bool:
    """True where nothing but the time is another one."""
    return then == now._replace(taken_at=then.taken_at, statistics_at=then.statistics_at)


def has_moved(then: ClusterSummary, now: ClusterSummary) -> bool:
    """True where data has moved since `then`."""
    return (then.misplaced_copies, then.degraded_copies, _copying_pgs(then)) != (
        now.misplaced_copies, now.degraded_copies, _copying_pgs(now))


def change_since(then: ClusterSummary, now: ClusterSummary) -> Optional[str]:
    """A change since `then` that speaks against an idle state, as a clause, or None."""
    before = _troubles(then)
    for pool, troubles in sorted(_troubles(now).items()):
        new = troubles - before.get(pool, frozenset())
        if new:
            return f"pool {pool} has {sorted(new)[0]} PGs now"
    for osd in sorted(then.osds.keys() | now.osds.keys()):
        old, new_one = then.osds.get(osd), now.osds.get(osd)
        if old is None or new_one is None:
            return f"osd.{osd} is {'new' if old is None else 'gone'}"
        if old.up and not new_one.up or old.is_in != new_one.is_in:
            return f"osd.{osd} is {_osd_state(old, new_one)} now"
        if (old.reweight, old.crush_weight) != (new_one.reweight, new_one.crush_weight):
            return f"osd.{osd} has another weight now"
    if now.misplaced_copies > then.misplaced_copies:
        return f"{now.misplaced_copies} object copies are misplaced now"
    return None


def _osd_state(then: OsdSummary, now: OsdSummary) -> str:
    """The state that an OSD has changed to."""
    if now.is_in != then.is_in:
        return "in" if now.is_in else "out"
    return "down"


def _has_same_topology(then: ClusterSummary, now: ClusterSummary) -> bool:
    """True as long as the same may be sent."""
    if then.crush_version != now.crush_version or then.osds.keys() != now.osds.keys() or (
            _pg_nums(then) != _pg_nums(now)):
        return False
    before = then.osds
    for osd, new in now.osds.items():   # all OSDs in every round: without a tuple for each
        old = before[osd]
        if old.is_in != new.is_in or old.reweight != new.reweight or (
                old.crush_weight != new.crush_weight or old.device_class != new.device_class
                or old.up != new.up):
            return False
    return True


def _copying_pgs(summary: ClusterSummary) -> int:
    """PGs that say that they copy data, which they also do while something stops them."""
    return sum(count for pool in summary.pools.values() for state, count in pool.states.items()
               if "backfilling" in state or "recovering" in state)


def _pg_nums(summary: ClusterSummary) -> Dict[int, int]:
    return {pool: entry.pg_num for pool, entry in summary.pools.items()}


def _troubles(summary: ClusterSummary) -> Dict[int, FrozenSet[str]]:
    """Pool id → states of its PGs that block movement, however many PGs; other pools are left
    out."""
    found: Dict[int, FrozenSet[str]] = {}
    for pool_id, pool in summary.pools.items():
        troubles = set()
        for state, count in pool.states.items():
            parts = state.split("+")
            if count and "active" not in parts:
                troubles.add("inactive")
            troubles.update(part for part in parts if count and part in _TROUBLES)
        if troubles:
            found[pool_id] = frozenset(troubles)
    return found


def _unreported(summary: ClusterSummary) -> FrozenSet[int]:
    """OSDs that are up and in and have not reported their statistics."""
    return frozenset(osd for osd, o in summary.osds.items()
                     if o.up and o.is_in and o.utilization is None)

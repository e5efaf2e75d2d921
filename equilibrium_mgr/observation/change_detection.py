"""Cheap change detection: by a summary that costs milliseconds, when to read the whole cluster."""
from __future__ import annotations

from typing import Callable, Dict, FrozenSet, NamedTuple, Optional

from ..gateway.cluster_summary import ClusterSummary, OsdSummary
from ..settings import Settings
from ..snapshot.model import Snapshot
from .states import BALANCED, BLOCKED, STUCK

#: While moves are in flight, the whole cluster is read again when this share of what is misplaced
#: (or of the limit, if that is less) has arrived, and at the latest after so many seconds. The same
#: seconds lie between two observations in an idle state.
_STEP = 0.1
_LONGEST_SECONDS = 600.0
#: Seconds after which a balanced cluster with another map is observed: a summary does not show
#: everything (rules of pools, full ratios).
_OTHER_MAP_SECONDS = 3600.0
#: Seconds for which another topology has to stay the same to end an idle state: OSDs flap.
_SETTLE_SECONDS = 60.0
#: An OSD's utilization must differ by this much: more than the measurement noise of a full OSD.
_DRIFT = 0.02
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
        self._awaited_misplaced: Optional[int] = None
        self._unsettled: Optional[ClusterSummary] = None
        self._unsettled_since = 0.0
        self.observation_required = False

    def begin_observation(self, summary: Optional[ClusterSummary], settings: Settings) -> None:
        """Records the summary that an observation begins with, and ends all waiting."""
        self.observation_required = False
        self._awaited_misplaced = None
        self._unsettled = None
        self._seen = _Seen(summary, settings) if summary is not None else None

    def await_arrivals(self, snapshot: Snapshot, max_misplaced_ratio: float) -> None:
        """Makes a summary a round suffice until _STEP of the misplaced copies has arrived."""
        misplaced = snapshot.misplaced_copies
        if misplaced > 0:
            step = _STEP * min(max_misplaced_ratio * snapshot.object_copies, misplaced)
            self._awaited_misplaced = max(0, int(misplaced - step))

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
        if state in (BALANCED, STUCK):
            return self._ends_idle_state(seen.summary, summary, elapsed, retry_due)
        if elapsed >= _LONGEST_SECONDS or not _has_same_topology(seen.summary, summary) or (
                _troubles(summary) != _troubles(seen.summary)) or (
                _unreported(summary) != _unreported(seen.summary)):
            return True
        if state == BLOCKED and self._awaited_misplaced is None:
            return False   # nothing arrives that would free anything
        return (self._awaited_misplaced is None
                or summary.misplaced_copies <= self._awaited_misplaced)

    def _ends_idle_state(self, then: ClusterSummary, now: ClusterSummary, elapsed: float,
                   retry_due: bool) -> bool:
        settled = self._has_settled(then, now)
        if elapsed < _LONGEST_SECONDS:
            return False
        if settled or retry_due or _has_drifted(then, now) or _unreported(then) - (
                _unreported(now)) or now.stale_osds != then.stale_osds:
            return True
        if _tells_more_omap(then, now):
            return True
        return now.epoch != then.epoch and elapsed >= _OTHER_MAP_SECONDS

    def _has_settled(self, then: ClusterSummary, now: ClusterSummary) -> bool:
        """True where the topology is another one and has been the same for long enough."""
        if _has_same_topology(then, now, False):
            self._unsettled = None
            return False
        if self._unsettled is None or not _has_same_topology(self._unsettled, now, False):
            self._unsettled, self._unsettled_since = now, self._clock()
        return not 0.0 <= self._clock() - self._unsettled_since < _SETTLE_SECONDS


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


def _has_same_topology(then: ClusterSummary, now: ClusterSummary, with_up: bool = True) -> bool:
    """True as long as the same placements are legal. An OSD that is down for a while changes what
    may be sent, not what a plan would be."""
    if then.crush_version != now.crush_version or then.osds.keys() != now.osds.keys() or (
            _pg_nums(then) != _pg_nums(now)):
        return False
    before = then.osds
    for osd, new in now.osds.items():   # all OSDs in every round: without a tuple for each
        old = before[osd]
        if old.is_in != new.is_in or old.reweight != new.reweight or (
                old.crush_weight != new.crush_weight or old.device_class != new.device_class
                or with_up and old.up != new.up):
            return False
    return True


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


def _tells_more_omap(then: ClusterSummary, now: ClusterSummary) -> bool:
    """True where deep scrubs have found omap of a pool that could make an OSD clearly fuller."""
    sizes = [osd.size_bytes for osd in now.osds.values() if osd.size_bytes]
    least = _DRIFT * min(sizes, default=0)
    return any(pool.omap_bytes - then.pools[pool_id].omap_bytes > least
               for pool_id, pool in now.pools.items() if pool_id in then.pools)


def _has_drifted(then: ClusterSummary, now: ClusterSummary) -> bool:
    """True where an OSD has become clearly fuller or emptier."""
    for osd, summary in now.osds.items():
        before = then.osds.get(osd)
        was = before.utilization if before is not None else None
        utilization = summary.utilization
        if was is not None and utilization is not None and abs(utilization - was) > _DRIFT:
            return True
    return False

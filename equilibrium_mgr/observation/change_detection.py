"""When the whole cluster has to be read again, told from a summary that costs milliseconds."""
from __future__ import annotations

from typing import Any, Callable, Dict, FrozenSet, NamedTuple, Optional, Tuple

from ..gateway.cluster_summary import ClusterSummary
from ..settings import Settings
from ..snapshot.model import Snapshot
from .states import BALANCED, BLOCKED, STUCK

#: While moves are under way, the cluster is read in full again when this share of what is
#: misplaced (or of the limit, if that is less) has arrived, and at the latest after so many
#: seconds. The same seconds lie between two looks where nothing is to be done.
_STEP = 0.1
_LONGEST_SECONDS = 600.0
#: A summary does not show everything (pools' rules, full ratios): with another map a balanced
#: cluster is looked at this often.
_OTHER_MAP_SECONDS = 3600.0
#: While nothing is to be done another topology must have stood for so long: OSDs flap.
_SETTLE_SECONDS = 60.0
#: An OSD's utilization must differ by this much. The noise of a full OSD, both ways, is less.
_DRIFT = 0.02
#: Parts of PG states that keep PGs, or all on their OSDs, from being moved.
_TROUBLES = ("degraded", "undersized", "backfill_toofull", "recovery_toofull")


class _Seen(NamedTuple):
    """What the last look stands for."""

    summary: ClusterSummary
    settings: Settings


class ChangeDetector:
    """Remembers the summary that the last look began with, and what that look waits for.

    Used by the serve thread; commands only set `observation_required`.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._seen: Optional[_Seen] = None
        self._awaited_misplaced: Optional[int] = None
        self._unsettled: Any = None
        self._unsettled_since = 0.0
        self.observation_required = False

    def begin_observation(self, summary: Optional[ClusterSummary], settings: Settings) -> None:
        """What was waited for is looked at in full."""
        self.observation_required = False
        self._awaited_misplaced = None
        self._unsettled = None
        self._seen = _Seen(summary, settings) if summary is not None else None

    def await_arrivals(self, snapshot: Snapshot, max_misplaced_ratio: float) -> None:
        """Until so many copies have arrived that it matters, a summary a round is enough."""
        misplaced = snapshot.misplaced_copies
        if misplaced > 0:
            step = _STEP * min(max_misplaced_ratio * snapshot.object_copies, misplaced)
            self._awaited_misplaced = max(0, int(misplaced - step))

    def is_due(self, summary: ClusterSummary, settings: Settings, state: str,
               rest_is_over: bool) -> bool:
        """Would a full look show something that matters? `rest_is_over`: a plan may be made anew
        although nothing has changed."""
        seen = self._seen
        if seen is None or self.observation_required or settings != seen.settings:
            return True
        elapsed = self._clock() - seen.summary.taken_at
        if elapsed < 0.0:
            return True  # the clock was set back
        if state in (BALANCED, STUCK):
            return self._ends_rest(seen.summary, summary, elapsed, rest_is_over)
        if elapsed >= _LONGEST_SECONDS or _topology(summary) != _topology(seen.summary) or (
                _troubles(summary) != _troubles(seen.summary)) or (
                _unreported(summary) != _unreported(seen.summary)):
            return True
        if state == BLOCKED:
            return False
        return (self._awaited_misplaced is None
                or summary.misplaced_copies <= self._awaited_misplaced)

    def _ends_rest(self, then: ClusterSummary, now: ClusterSummary, elapsed: float,
                   rest_is_over: bool) -> bool:
        settled = self._has_settled(_topology(then, False), _topology(now, False))
        if elapsed < _LONGEST_SECONDS:
            return False
        if settled or rest_is_over or _has_drifted(then, now) or _unreported(then) - (
                _unreported(now)) or now.stale_osds != then.stale_osds:
            return True
        if _tells_more_omap(then, now):
            return True
        return now.epoch != then.epoch and elapsed >= _OTHER_MAP_SECONDS

    def _has_settled(self, then: Any, now: Any) -> bool:
        """Is the topology another one, and has been the same for long enough?"""
        if now == then:
            self._unsettled = None
            return False
        if now != self._unsettled:
            self._unsettled, self._unsettled_since = now, self._clock()
        return not 0.0 <= self._clock() - self._unsettled_since < _SETTLE_SECONDS


def news(then: ClusterSummary, now: ClusterSummary) -> Optional[str]:
    """What has come since that speaks against a rest, as half a sentence, or None."""
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
            return "osd.%d is %s now" % (osd, "in" if new_one.is_in and not old.is_in else
                                         "out" if old.is_in and not new_one.is_in else "down")
        if (old.reweight, old.crush_weight) != (new_one.reweight, new_one.crush_weight):
            return f"osd.{osd} has another weight now"
    if now.misplaced_copies > then.misplaced_copies:
        return f"{now.misplaced_copies} object copies are misplaced now"
    return None


def _topology(summary: ClusterSummary, with_up: bool = True) -> Tuple[Any, ...]:
    """Equal as long as the same placements are legal. An OSD that is down for a while changes
    what may be sent, not what a plan would be."""
    osds = {osd: (o.is_in, o.reweight, o.crush_weight, o.device_class, with_up and o.up)
            for osd, o in summary.osds.items()}
    return summary.crush_version, osds, {pool: p.pg_num for pool, p in summary.pools.items()}


def _troubles(summary: ClusterSummary) -> Dict[int, FrozenSet[str]]:
    """Pool id → what is the matter with its PGs, however many they are; pools without trouble are
    left out."""
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
    """OSDs that data could be on and that have not told how full they are."""
    return frozenset(osd for osd, o in summary.osds.items()
                     if o.up and o.is_in and o.utilization is None)


def _tells_more_omap(then: ClusterSummary, now: ClusterSummary) -> bool:
    """Have deep scrubs found omap of a pool that could make an OSD clearly fuller?"""
    sizes = [osd.size_bytes for osd in now.osds.values() if osd.size_bytes]
    least = _DRIFT * min(sizes, default=0)
    return any(pool.omap_bytes - then.pools[pool_id].omap_bytes > least
               for pool_id, pool in now.pools.items() if pool_id in then.pools)


def _has_drifted(then: ClusterSummary, now: ClusterSummary) -> bool:
    """Has an OSD become clearly fuller or emptier?"""
    for osd, summary in now.osds.items():
        before = then.osds.get(osd)
        was = before.utilization if before is not None else None
        level = summary.utilization
        if was is not None and level is not None and abs(level - was) > _DRIFT:
            return True
    return False

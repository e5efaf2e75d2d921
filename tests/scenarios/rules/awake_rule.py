"""A1 nothing sleeps for good: while an OSD needs space that a legal move could make, the module
sends at least one upmap in 30 minutes, in 5 while an OSD is full.

An OSD needs space above backfillfull, or if what comes will take it there, and if nothing that is
under way will end that. Nothing excuses the module: settling, cooling, an exclusion, an inactive PG
that itself waits for space, or a limit that PGs have used up which cannot move. Reads the simulated
cluster and the monitor's log alone.
"""
from __future__ import annotations

import math
from collections import Counter
from typing import Any, Callable, Dict, Iterator, NamedTuple, Set

from mgr_stub.cluster.pg import Pg
from mgr_stub.console.session import Session

from ..watch import cluster_view
from .guard_rules import has_window, is_held, is_site_gone
from .intent_rules import shares
from .limit_rules import most_pairs, most_shards
from .moment import Moment, is_lacking
from .move_rules import strict_rules
from .under_way import UpmapLog, changes

_SECONDS, _FULL_SECONDS = 1800.0, 300.0
#: Between two looks at it.
_PACE_SECONDS = 60.0
#: A shard that makes space is not smaller, as a ratio of its OSD.
_LEAST_SHARD = 0.002
#: Below nearfull and the fill limit by so much, as a ratio: beyond statistics and rounding.
_MARGIN = 0.01
#: Options that take moves out of the module's hands.
_SCOPE = ("pool_ids", "device_classes", "from_buckets", "to_buckets", "not_buckets")


class Need(NamedTuple):
    """OSDs that need space, and for how long they may."""

    osds: Set[int]
    seconds: float


class NothingSleeps:
    """Looks at a run once a minute.

    `full_seconds`: for which a full OSD may wait; `pace_seconds`: between two looks.
    """

    def __init__(self, session: Session, full_seconds: float = _FULL_SECONDS,
                 pace_seconds: float = _PACE_SECONDS) -> None:
        self._full_seconds, self._pace_seconds = full_seconds, pace_seconds
        self._log = UpmapLog(session)
        self._looked_at = float("-inf")
        self._since: Dict[float, float] = {}   # seconds allowed → since when such a need is there
        self._mgr: Any = session.mgr
        self._active_since = session.clock.now
        self._offset = session.clock() - session.clock.now   # of the wall clock
        self.needs = 0   # looks at which an OSD needed space and a move could make it

    def observe(self, session: Session, moment: Callable[[], Moment]) -> Iterator[str]:
        """What is wrong now."""
        now = session.clock.now
        if self._log.ours() or not self._is_judged(session):
            self._since = {}
            return
        if now - self._looked_at < self._pace_seconds:
            return
        self._looked_at = now
        need = _need(session, self._full_seconds)
        found = _move_for(moment(), need.osds) if need.osds else ""
        if not found:
            self._since = {}
            return
        self.needs += 1
        self._since = {seconds: self._since.get(seconds, now)
                       for seconds in (_SECONDS, self._full_seconds) if seconds >= need.seconds}
        slack = session.module.settings().sleep_interval
        for seconds, since in list(self._since.items()):
            if now - since > seconds + slack:
                self._since = {}
                status = session.module.balancer.status
                yield (f"osd.{min(need.osds)} needs space, {found} could make it, and nothing is"
                       f" sent for {int(now - since)} s: {status.state}: {status.reason}")
                return

    def _is_judged(self, session: Session) -> bool:
        """Whether automatic balancing has its hands free and sees the cluster as it is."""
        now, offset = session.clock.now, session.clock() - session.clock.now
        if session.mgr is not self._mgr or abs(offset - self._offset) > 1.0:
            self._mgr, self._offset, self._active_since = session.mgr, offset, now
        module, cluster = session.module, session.cluster
        if cluster_view.is_away(session):
            return False
        settings = module.settings()
        if now - self._active_since < settings.start_delay or not settings.active:
            return False
        if has_window(settings) or settings.begin_weekday % 7 != settings.end_weekday % 7:
            return False
        if any(getattr(settings, option) is not None for option in _SCOPE):
            return False
        if getattr(module.balancer.execution, "name", ""):
            return False
        if is_held(session) or is_site_gone(cluster):
            return False
        return bool(settings.relieve_while_degraded and session.simulation.reports.is_fresh)


def _need(session: Session, full_seconds: float) -> Need:
    cluster = session.cluster
    backfillfull, full = cluster.map.ratio("backfillfull_ratio"), cluster.map.ratio("full_ratio")
    is_copying = any(pg.backfilling for pg in cluster.unclean.values())
    peak = Counter({osd: usage.used for osd, usage in cluster.usage.items()})
    gone, leaving = Counter[int](), Counter[int]()   # bytes, and shards that can leave
    for pg in cluster.unclean.values():
        peak.update(cluster_view.coming(cluster, pg))
        for osd in set(pg.holders()) - set(cluster.map.up.get(pg.pgid, ())):
            gone[osd] += pg.shard.total
            leaving[osd] += not pg.toofull
    waited_for = {osd for pg in cluster.unclean.values() if pg.toofull for osd in pg.targets()}
    osds, slots = set(), session.module.settings().max_backfills_per_osd or math.inf
    for osd, usage in cluster.usage.items():
        if not usage.total or not cluster_view.may_take(cluster, osd):
            continue
        most = backfillfull * usage.total
        is_short = peak[osd] > most or osd in waited_for
        is_helped = is_copying and (peak[osd] - gone[osd] <= most or leaving[osd] >= slots)
        if is_short and not is_helped:
            osds.add(osd)
    is_full = any(cluster.usage[osd].utilization >= full for osd in osds)
    return Need(osds, full_seconds if is_full else _SECONDS)


def _move_for(moment: Moment, needy: Set[int]) -> str:
    """A move off an OSD that needs space which nothing forbids; empty if there is none."""
    targets = _targets(moment)
    for pg in moment.cluster.pgs.values():
        sources = needy.intersection(moment.cluster.map.up.get(pg.pgid, ()))
        if not sources or not _is_free(moment, pg):
            continue
        for source in sorted(sources):
            if pg.shard.total < _LEAST_SHARD * moment.cluster.usage[source].total:
                continue
            for target, room in targets.items():
                if pg.shard.total <= room and _is_kept(moment, pg, source, target):
                    return f"pg {pg.pgid} to osd.{target}"
    return ""


def _targets(moment: Moment) -> Dict[int, float]:
    """OSDs with a free slot → bytes that may come, the roomiest first."""
    cluster, settings = moment.cluster, moment.settings
    limit = min(cluster_view.fill_limit(cluster), settings.fill_limit or 1.0) - _MARGIN
    nearfull = cluster.map.ratio("nearfull_ratio") - _MARGIN
    held, peaks = shares(cluster), cluster_view.peaks(cluster, moment.ours)
    incoming = Counter(osd for _, osd in cluster_view.transit(cluster, moment.ours)[0])
    most, slots = most_shards(moment.session), settings.max_backfills_per_osd or math.inf
    found = {}
    for osd, usage in cluster.usage.items():
        if osd in moment.drained or not cluster_view.may_take(cluster, osd):
            continue
        if held.get(osd, 0.0) < 0.9 or moment.pg_shards[osd] >= most:
            continue
        if usage.utilization >= nearfull or incoming[osd] >= slots:
            continue
        room = limit * usage.total - peaks[osd]
        if incoming[osd] and settings.max_transit_ratio:
            transit = settings.max_transit_ratio * usage.total - (peaks[osd] - usage.used)
            room = min(room, transit)
        found[osd] = room
    return dict(sorted(found.items(), key=lambda row: -row[1]))


def _is_free(moment: Moment, pg: Pg) -> bool:
    """Whether the module may move the PG at all, as far as its state and its pool go."""
    cluster, state = moment.cluster, moment.states.get(pg.pgid, "active+clean")
    if pg.transfers or not state.startswith("active") or is_lacking(state):
        return False
    if any(word in state for word in ("scrubbing", "inconsistent", "snaptrim")):
        return False
    if pg.pool_id in moment.splitting or pg.pgid in cluster.map.full_upmaps:
        return False
    if moment.sharing(pg.pool_id, moment.inactive_otherwise):
        return False
    if sum(map(len, cluster.map.upmap_items.values())) >= most_pairs(moment):
        return False
    return _fits_limit(moment, pg)


def _fits_limit(moment: Moment, pg: Pg) -> bool:
    """Whether what can move leaves room for the move under the misplaced limit."""
    cluster = moment.cluster
    if not any(other.backfilling for other in cluster.unclean.values()):
        return True
    moving = cluster_view.misplaced_copies(cluster, [
        other.pgid for other in cluster.unclean.values() if not moment.waits_for_space(other.pgid)])
    most = (1.0 - 2 * _MARGIN - 0.05) * moment.misplaced_limit * moment.object_copies
    return moving + pg.num_objects <= most


def _is_kept(moment: Moment, pg: Pg, source: int, target: int) -> bool:
    """Whether CRUSH would allow the move, and the monitor keep it."""
    cluster, raw = moment.cluster, pg.raw or ()
    up = cluster.map.up[pg.pgid]
    if target in {*up, *raw} or source not in raw or len(up) != cluster.size_of(pg):
        return False
    items = (*cluster.map.upmap_items.get(pg.pgid, ()), (source, target))
    after = cluster.up_with_items(pg, items)
    if changes(up, after, pg.erasure) != ((target,), (source,)):
        return False
    pool = cluster.map.pools[pg.pool_id]
    rule, size = int(pool["crush_rule"]), int(pool["size"])
    return (not strict_rules(cluster.crush).fault(rule, size, raw, after, pg.erasure)
            and cluster_view.kept(cluster, pg, items) == items)

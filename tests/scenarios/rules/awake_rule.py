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
from mgr_stub.monitor.monitor import MGR
from mgr_stub.osdmap import upmap

from ..watch import cluster_view
from .guard_rules import STOP_FLAGS
from .intent_rules import shares
from .moment import Moment, is_lacking
from .move_rules import strict_rules
from .under_way import REMOVE_ITEMS, SET_ITEMS, changes

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
        self._read = len(session.command_log)
        self._looked_at = float("-inf")
        self._since: Dict[float, float] = {}   # seconds allowed → since when such a need is there
        self._mgr: Any = session.mgr
        self._active_since = session.clock.now
        self._offset = session.clock() - session.clock.now   # of the wall clock
        self.needs = 0   # looks at which an OSD needed space and a move could make it

    def observe(self, session: Session, moment: Callable[[], Moment]) -> Iterator[str]:
        """What is wrong now."""
        now = session.clock.now
        if self._has_sent(session) or not self._is_judged(session):
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

    def _has_sent(self, session: Session) -> bool:
        fresh = session.command_log[self._read:]
        self._read = len(session.command_log)
        return any(entry.sender == MGR and entry.prefix in (SET_ITEMS, REMOVE_ITEMS)
                   for entry in fresh)

    def _is_judged(self, session: Session) -> bool:
        """Whether automatic balancing has its hands free and sees the cluster as it is."""
        now, offset = session.clock.now, session.clock() - session.clock.now
        if session.mgr is not self._mgr or abs(offset - self._offset) > 1.0:
            self._mgr, self._offset, self._active_since = session.mgr, offset, now
        module, cluster = session.module, session.cluster
        if module is None or session.mgr.process.is_dead or session.mgr.process.counts_calls:
            return False
        settings = module.settings()
        if now - self._active_since < settings.start_delay or not settings.active:
            return False
        if settings.begin_time % 1440 != settings.end_time % 1440:
            return False
        if settings.begin_weekday % 7 != settings.end_weekday % 7:
            return False
        if any(getattr(settings, option) is not None for option in _SCOPE):
            return False
        if getattr(module.balancer.execution, "name", ""):
            return False
        if session.mgr.balancer.may_move_data or not session.mgr.mon_connected:
            return False
        if any(flag in cluster.map.flags for flag in STOP_FLAGS):
            return False
        stretch = cluster.map.rest.get("stretch_mode", {})
        if stretch.get("degraded_stretch_mode") or stretch.get("recovering_stretch_mode"):
            return False
        return (bool(settings.relieve_while_degraded)
                and bool(session.simulation.reports.is_fresh))


def _need(session: Session, full_seconds: float) -> Need:
    cluster = session.cluster
    backfillfull, full = cluster.map.ratio("backfillfull_ratio"), cluster.map.ratio("full_ratio")
    is_copying = any(pg.backfilling for pg in cluster.unclean.values())
    level = {osd: float(usage.used) for osd, usage in cluster.usage.items()}
    peak, end = dict(level), dict(level)
    leaving: Dict[int, int] = dict.fromkeys(level, 0)   # OSD → shards that can leave it
    for pg in cluster.unclean.values():
        for osd, more in cluster_view.coming(cluster, pg).items():
            peak[osd] = peak.get(osd, 0.0) + more
            end[osd] = end.get(osd, 0.0) + more
        for osd in set(pg.holders()) - set(cluster.map.up.get(pg.pgid, ())):
            end[osd] = end.get(osd, 0.0) - pg.shard.total
            leaving[osd] += not pg.toofull
    waited_for = {osd for pg in cluster.unclean.values() if pg.toofull for osd in pg.targets()}
    osds = set()
    for osd, usage in cluster.usage.items():
        if not usage.total or not cluster_view.may_take(cluster, osd):
            continue
        is_short = peak[osd] > backfillfull * usage.total or osd in waited_for
        may_give = leaving[osd] < (session.module.settings().max_backfills_per_osd or math.inf)
        is_helped = is_copying and (end[osd] <= backfillfull * usage.total or not may_give)
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
    config = moment.session.simulation.config
    most = int(0.8 * float(config.core("mgr", "mon_max_pg_per_osd"))
               * float(config.core("mgr", "osd_max_pg_per_osd_hard_ratio")))
    found = {}
    for osd, usage in cluster.usage.items():
        if osd in moment.drained or not cluster_view.may_take(cluster, osd):
            continue
        if held.get(osd, 0.0) < 0.9 or moment.pg_shards[osd] >= most:
            continue
        if usage.utilization >= nearfull or incoming[osd] >= (
                settings.max_backfills_per_osd or incoming[osd] + 1):
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
    if "scrubbing" in state or "inconsistent" in state or "snaptrim" in state:
        return False
    if pg.pool_id in moment.splitting or pg.pgid in cluster.map.full_upmaps:
        return False
    if moment.sharing(pg.pool_id, moment.inactive_otherwise):
        return False
    pairs = sum(len(items) for items in cluster.map.upmap_items.values())
    option = moment.settings.max_upmap_items
    if option and pairs >= max(1, int(option * len(cluster.pgs) if option <= 1.0 else option)):
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
    if target in up or source not in raw or target in raw or len(up) != cluster.size_of(pg):
        return False
    items = (*cluster.map.upmap_items.get(pg.pgid, ()), (source, target))
    after = cluster.up_with_items(pg, items)
    if changes(up, after, pg.erasure) != ((target,), (source,)):
        return False
    pool = cluster.map.pools[pg.pool_id]
    rule, size = int(pool["crush_rule"]), int(pool["size"])
    if strict_rules(cluster.crush).fault(rule, size, raw, after, pg.erasure):
        return False
    return bool(upmap.clean(cluster.crush, rule, size, raw, items, cluster.map.reweight) == items)

"""The moment at which the module sends: what holds, and what the mgr has been told of it."""
from __future__ import annotations

from collections import Counter
from typing import Any, Dict, FrozenSet, Optional, Set

from mgr_stub.cluster import pg_reports
from mgr_stub.cluster.cluster import Cluster
from mgr_stub.console.session import Session
from mgr_stub.crush.hashes import NONE
from mgr_stub.osdmap.osd_map import in_transition

from ..watch import cluster_view
from .under_way import UnderWay


_LACKING = frozenset(("degraded", "undersized"))


def is_lacking(state: str) -> bool:
    """Does Ceph call the PG short of copies, or of OSDs that serve it?"""
    return not _LACKING.isdisjoint(state.split("+"))


#: Of an OSD's size: by so much what comes may be told otherwise.
_ROUNDING = 0.001
#: Of an OSD's size (ratio) that may have come or gone within a long round (seconds).
_BEHIND, _LONG_ROUND = 0.02, 600.0


class Lacking:
    """PGs that look short of copies, now and when they last did: reports may be old."""

    def __init__(self) -> None:
        self._whole: Dict[str, bool] = {}
        self.now: Set[str] = set()

    def observe(self, cluster: Cluster) -> None:
        """Notes of each that looks so whether as many OSDs as it wants have all of it: those that
        hold it, or it is undersized alone, as one that is to serve it has just been filled."""
        states = {pg.pgid: pg_reports.state_of(cluster, pg) for pg in cluster.unclean.values()}
        self.now = {pgid for pgid, state in states.items() if is_lacking(state)}
        for pgid in self.now:
            pg = cluster.pgs[pgid]
            holders = sum(map(cluster.map.is_up, pg.holders()))
            self._whole[pgid] = holders >= cluster.size_of(pg) or "degraded" not in states[pgid]

    def was_whole(self, pgid: str) -> bool:
        """Did it only look so, as far as anybody has seen?"""
        return self._whole.get(pgid, False)


class Moment:
    """Made again for each batch; what of the batch was sent before is in `ours` by then."""

    def __init__(self, session: Session, ours: UnderWay, lacking: Lacking,
                 active_since: float = 0.0) -> None:
        self.session = session
        self.cluster = session.cluster
        self.ours = ours
        self.active_since = active_since   # of this mgr, by the clock that never jumps
        self.settings: Any = session.module.settings()
        self.automatic = not getattr(session.module.balancer.execution, "name", "")
        #: OSDs that an operator has said are to be emptied
        self.drained = cluster_view.drained(session)
        is_drain = getattr(session.module.balancer.execution, "kind", "") == "drain"
        #: a plan that only drains has no window, no pools, and needs no `on`
        self.drains = bool(is_drain and self.drained
                           and not cluster_view.drains(session)["paused"])
        self.reports = session.simulation.reports
        self._levels: Optional[Dict[int, float]] = None
        self._pg_shards: Optional[Counter[int]] = None
        self._needing: Optional[Set[int]] = None
        self._inactive_pgs: Counter[int] = Counter()   # pool → PGs
        status = self.reports.get("pg_status")
        self.misplaced = int(status.get("misplaced_objects", 0))
        # late reports have the pools' old sizes
        self.object_copies = max(cluster_view.object_copies(self.cluster), sum(
            int(pool["stat_sum"]["num_object_copies"])
            for pool in self.reports.get("pool_stats")["pool_stats"]))
        self.degraded: Set[int] = set()    # pools, as reported
        for pool_id, words, count in cluster_view.pool_states(self.reports):
            if not words & {"active", "premerge"}:
                self._inactive_pgs[pool_id] += count
            elif words & _LACKING:
                self.degraded.add(pool_id)
        self.inactive = set(self._inactive_pgs)
        self.states: Dict[str, str] = {
            pgid: pg["state"] for pgid, pg in self.reports.get("pg_progress")["pgs"].items()}
        self.degraded -= self._only_seemingly_degraded(lacking)
        for pg in self.cluster.unclean.values():   # the osdmap tells earlier than reports
            up = self.cluster.map.up.get(pg.pgid, ())
            if NONE in up or len(up) < self.cluster.size_of(pg):
                self.degraded.add(pg.pool_id)
        self.others_misplaced = self._others_misplaced()

    def _only_seemingly_degraded(self, lacking: Lacking) -> Set[int]:
        """Pools whose PGs were told to be degraded only because Ceph fills new members by the PGs'
        logs: their old members have, or had then, all there is."""
        lacking.observe(self.cluster)
        told = {pgid for pgid, state in self.states.items() if is_lacking(state)}
        short = {self.cluster.pgs[pgid].pool_id for pgid in told | lacking.now
                 if pgid in self.cluster.pgs and not lacking.was_whole(pgid)}
        return self.degraded - short

    def _others_misplaced(self) -> int:
        """Copies that others have misplaced, of PGs that have told the mgr so."""
        told = [pg.pgid for pg in self.cluster.unclean.values()
                if pg.pgid not in self.ours.moves and "remapped" in self.states.get(pg.pgid, "")]
        return min(self.misplaced, cluster_view.misplaced_copies(self.cluster, told))

    def stuck_copies(self) -> int:
        """Misplaced copies of PGs that wait for space, whosever they are."""
        return cluster_view.misplaced_copies(self.cluster, [
            pgid for pgid in self.cluster.unclean if self.waits_for_space(pgid)])

    @property
    def misplaced_limit(self) -> float:
        """The misplaced ratio that the operator allows now."""
        target = float(self.session.module.gateway.target_max_misplaced_ratio())
        limit = float(self.settings.max_misplaced_ratio or target)
        if self.splitting:   # the mgr needs the rest
            limit = min(limit, target / 2.0)
        return limit

    def is_emergency(self, osd: int) -> bool:
        """Whether moves off the OSD have a misplaced limit of their own."""
        full = self.cluster.map.ratio("backfillfull_ratio")
        return (self.settings.urgent_misplaced_ratio > 0.0
                and self.reported_utilization(osd) >= full)

    def osds_of(self, pool: int) -> FrozenSet[int]:
        """OSDs that the pool's PGs are on or go to."""
        osdmap = self.cluster.map
        found: Set[int] = set()
        for pg in self.cluster.pgs_of(pool):
            found.update(osdmap.up.get(pg.pgid, ()), osdmap.acting(pg.pgid))
        return frozenset(found - {NONE})

    def sharing(self, pool: int, troubled: Set[int]) -> Set[int]:
        """Those of the troubled pools that are on OSDs of this one."""
        if not troubled:
            return set()
        osds, others = self.osds_of(pool), troubled & self.cluster.map.pools.keys()
        found = {other for other in others if not osds.isdisjoint(self.osds_of(other))}
        return found | troubled & {pool}

    @property
    def splitting(self) -> Set[int]:
        """Pools whose pg_num changes."""
        return {number for number, pool in self.cluster.map.pools.items() if in_transition(pool)}

    def is_full(self, osd: int, ratio: float) -> bool:
        """Is the OSD above a ratio, as far as reports with their noise can tell?"""
        return self.cluster.usage[osd].utilization * (1.0 + self.reports.noise) >= ratio

    def reported_utilization(self, osd: int) -> float:
        """The OSD's utilization as the mgr has been told."""
        if self._levels is None:
            self._levels = cluster_view.reported_levels(self.reports)
        return self._levels.get(osd, 0.0)

    @property
    def pg_shards(self) -> Counter[int]:
        """OSD → PG shards on it or on their way to it, and those that are still to leave it."""
        if self._pg_shards is None:
            osdmap = self.cluster.map
            self._pg_shards = Counter(osd for up in osdmap.up.values() for osd in up)
            for pg in self.cluster.unclean.values():
                self._pg_shards.update(osd for osd in pg.held
                                       if osd not in osdmap.up.get(pg.pgid, ()))
        return self._pg_shards

    def needs_space(self, osd: int) -> bool:
        """Is it too full, does a backfill wait for it because it is, or will it be with what comes,
        and with nothing gone that is not being copied away?"""
        if self._needing is None:
            self._needing = self._osds_that_need_space()
        return osd in self._needing

    def _osds_that_need_space(self) -> Set[int]:
        cluster, unclean = self.cluster, self.cluster.unclean.values()
        peaks, leaving = cluster_view.peaks(cluster, UnderWay(cluster)), Counter[int]()
        waited_for: Set[int] = set()
        for pg in unclean:
            if "backfill_toofull" in self.states.get(pg.pgid, ""):
                waited_for.update(pg.targets())
            if pg.backfilling and "backfilling" in self.states.get(pg.pgid, ""):
                for osd in set(pg.holders()) - set(cluster.map.up.get(pg.pgid, ())):
                    leaving[osd] += pg.shard.total
        # what a plan knows of arrivals is as old as its last round
        behind = _ROUNDING + _BEHIND * min(1.0, self.settings.sleep_interval / _LONG_ROUND)
        full, may_differ = cluster.map.ratio("backfillfull_ratio"), 1.0 + self.reports.noise
        for osd, usage in cluster.usage.items():
            most = max(usage.used, peaks[osd] - leaving[osd]) * may_differ
            if most >= (full - behind) * usage.total or self.reported_utilization(osd) >= full:
                waited_for.add(osd)
        return waited_for

    def waits_for_space(self, pgid: str) -> bool:
        """Can none of the PG be copied before an OSD has more space?"""
        state, pg = self.states.get(pgid, ""), self.cluster.pgs[pgid]
        if "toofull" in state or pg.toofull:
            return True
        is_waiting = "backfill_wait" in state or "recovery_wait" in state
        return is_waiting and any(map(self.needs_space, pg.targets()))

    @property
    def inactive_otherwise(self) -> Set[int]:
        """Pools with inactive PGs that wait for something else than space."""
        pgs = self.cluster.pgs
        inactive = [pgid for pgid, state in self.states.items()
                    if pgid in pgs and "active" not in state.split("+")]
        waiting = Counter(pgs[pgid].pool_id for pgid in inactive if self.waits_for_space(pgid))
        return {pool for pool in self.inactive if self._inactive_pgs[pool] > waiting[pool]}

"""A plan made from scratch, of what the simulated cluster is and not of what it has reported."""
from __future__ import annotations

from typing import Any, Dict, FrozenSet, List, NamedTuple

from mgr_stub.cluster.cluster import Cluster
from mgr_stub.console.session import Session
from mgr_stub.mgr.api import MgrModuleApi
from mgr_stub.mgr.mgr import Mgr
from mgr_stub.simulation.reports import REPORTED

from equilibrium_mgr.gateway.gateway import Gateway
from equilibrium_mgr.plan.model import Plan
from equilibrium_mgr.plan.options import OsdFilter, PlanOptions
from equilibrium_mgr.planner.planner import make_plan
from equilibrium_mgr.snapshot.model import pool_of

from . import cluster_view, truth

#: What a rest leaves has to be clearly more than min_gain: the module's figures are reported ones.
_CLEARLY = 1.5
_LEAST_GAIN = 0.001
#: A pool that has less of the bytes of every class is not worth a move.
_SMALL_POOL = 0.015


class _TruthfulMgr(Mgr):
    """Another mgr of the same cluster, whose reports are of this moment and exact, and whose OSDs
    have deleted what has left them."""

    def _get(self, name: str) -> Any:
        found = REPORTED[name](self.cluster) if name in REPORTED else super()._get(name)
        return {**found, "osd_stats": [_deleted(self.cluster, record) for record in
                                       found["osd_stats"]]} if name == "osd_stats" else found


def _deleted(cluster: Cluster, record: Dict[str, Any]) -> Dict[str, Any]:
    """The report of an OSD once it has deleted what is left of shards that are elsewhere."""
    gone = sum(count for (_, osd), count in cluster.undeleted.items() if osd == record["osd"])
    statfs = record.get("statfs", {})
    return record if not gone else {
        **record, "num_pgs": sum(record["osd"] in pg.holders() for pg in cluster.pgs.values()),
        "kb_used": record["kb_used"] - gone // 1024,
        "kb_avail": record["kb_avail"] + gone // 1024,
        "statfs": {**statfs, "available": statfs["available"] + gone,
                   "allocated": statfs["allocated"] - gone}}


class Gain(NamedTuple):
    """What a plan would do that min_gain lets go."""

    what: str
    relieved: float   # utilization of the fullest OSD that it relieves; 0.0 for a gain of others


def plan_of(session: Session, rejected: FrozenSet[str], drained: FrozenSet[int]) -> Plan:
    """By the options in force; `rejected` PGs stay where they are."""
    config, settings = session.simulation.config, session.module.settings()
    noted = config.on_removal, config.on_setting
    mgr = _TruthfulMgr(session.simulation, session.module.module_name)
    config.on_removal, config.on_setting = noted
    api: Any = MgrModuleApi("truth", None, mgr)
    gateway = Gateway(api, session.clock, lambda: settings)
    gateway.set_drained(drained)
    snapshot = gateway.snapshot()
    scope = OsdFilter(settings.from_buckets, settings.to_buckets,
                      settings.not_buckets).scope(snapshot.crush)
    soft, hard = gateway.max_pg_shards()
    return make_plan(snapshot, PlanOptions(
        pool_ids=settings.pool_ids, device_classes=settings.device_classes,
        fill_limit=settings.fill_limit, aim=settings.aim, rejected_pgs=rejected,
        respect_weights=settings.respect_weights, max_upmap_items=settings.max_upmap_items,
        max_pg_shards_per_osd=soft, max_pg_shards_hard=hard,
        sources=scope.sources, targets=scope.targets))


def gains(session: Session, plan: Plan, drained: FrozenSet[int]) -> List[Gain]:
    """The gains of a plan by the rule of these tests."""
    cluster, before = session.cluster, truth.arrived(session.cluster)
    least = _CLEARLY * max(_LEAST_GAIN, session.module.settings().min_gain)
    nearfull, after = cluster.map.ratio("nearfull_ratio"), dict(before)
    for move in plan.moves:
        if before[move.target] <= nearfull:   # nothing is sent to the others
            after[move.source] -= move.bytes / cluster.usage[move.source].total
            after[move.target] += (move.bytes * (1.0 + cluster.copy_overhead.get(pool_of(
                move.pgid), 0.0)) / cluster.usage[move.target].total)
    by_class: Dict[str, List[int]] = {}
    for osd in before:
        if cluster_view.may_take(cluster, osd) and osd not in drained:
            by_class.setdefault(cluster.crush.classes.get(osd) or "none", []).append(osd)
    found = []
    for name, osds in sorted(by_class.items()):
        highest, lower = max(before[osd] for osd in osds), max(after[osd] for osd in osds)
        if highest - lower >= least:
            found.append(Gain(f"class {name} can go from {highest:.4f} to {lower:.4f}", 0.0))
    for osd in sorted(before):
        if before[osd] > nearfull + _LEAST_GAIN and before[osd] - after[osd] >= least:
            found.append(Gain(f"osd.{osd} can go from {before[osd]:.4f} to {after[osd]:.4f}",
                              before[osd]))
    return found + _room(session, plan, least)


def _room(session: Session, plan: Plan, least: float) -> List[Gain]:
    """Pools that are not small and would have clearly more of what they hold and could hold; none
    where shards of the plan take more where they arrive, which its free space does not count."""
    cluster, found = session.cluster, []
    if any(cluster.copy_overhead.get(pool_of(move.pgid)) for move in plan.moves):
        return []
    held: Dict[str, Dict[int, int]] = {}
    for pg in cluster.pgs.values():
        for osd in pg.holders():
            of_class = held.setdefault(cluster.crush.classes.get(osd) or "none", {})
            of_class[pg.pool_id] = of_class.get(pg.pool_id, 0) + pg.shard.total
    for pool_id, pool in sorted(cluster.map.pools.items()):
        name = str(pool["pool_name"])
        before, after = plan.before.pools.get(name), plan.after.pools.get(name)
        if before is None or after is None or not before.stored_bytes or all(
                pools.get(pool_id, 0) < _SMALL_POOL * sum(pools.values())
                for pools in held.values()):
            continue
        part = (after.free_bytes - before.free_bytes) / (before.stored_bytes + before.free_bytes)
        if part >= least:
            found.append(Gain(f"pool {name} can have {100.0 * part:.1f} % more", 0.0))
    return found

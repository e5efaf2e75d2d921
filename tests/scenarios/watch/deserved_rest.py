"""R1 a rest is deserved: while the module says that it is balanced or stuck, a plan made from
scratch finds nothing that min_gain would take, but of the last 15 minutes; of 5 minutes where an
OSD above nearfull is relieved, of a round where it is above backfillfull. Where nothing was found
before, and since then only what OSDs hold has changed and what the module has moved, it finds less
than a point. An OSD above nearfull is relieved as before.

A plan made from scratch, of what the simulated cluster is and not of what it has reported.
"""
from __future__ import annotations

import math
from collections import Counter
from typing import Any, Dict, FrozenSet, List, NamedTuple, Optional, Set

from equilibrium_mgr.gateway.gateway import Gateway
from equilibrium_mgr.plan.model import Plan
from equilibrium_mgr.plan.options import OsdFilter, PlanOptions
from equilibrium_mgr.planner.planner import make_plan
from equilibrium_mgr.snapshot.model import pool_of
from mgr_stub.cluster import pg_reports
from mgr_stub.cluster.cluster import Cluster
from mgr_stub.console.session import Session
from mgr_stub.mgr.api import MgrModuleApi
from mgr_stub.mgr.mgr import Mgr
from mgr_stub.monitor.mon_store import LoggedCommand
from mgr_stub.monitor.monitor import MGR
from mgr_stub.simulation.reports import REPORTED

from ..rules.guard_rules import is_held
from ..rules.under_way import UpmapLog
from . import cluster_view, truth


#: What a rest leaves has to be clearly more than min_gain: the module's figures are reported ones.
_CLEARLY = 1.5
_LEAST_GAIN = 0.001
#: A pool that has less of the bytes of every class is not worth a move.
_SMALL_POOL = 0.015
#: A pool has plenty that has so many times the room, by its data, that all pools have together.
_PLENTY = 3.0


class _TruthfulMgr(Mgr):
    """Another mgr of the same cluster, whose reports are of this moment and exact, and whose OSDs
    have deleted what has left them."""

    def _get(self, name: str) -> Any:
        if name not in REPORTED:
            return super()._get(name)
        found = REPORTED[name](self.cluster)
        if name == "osd_stats":
            found = {**found, name: [_deleted(self.cluster, one) for one in found[name]]}
        return found


def _deleted(cluster: Cluster, record: Dict[str, Any]) -> Dict[str, Any]:
    """The report of an OSD once it has deleted what is left of shards that are elsewhere."""
    gone = sum(count for (_, osd), count in cluster.undeleted.items() if osd == record["osd"])
    if not gone:
        return record
    found = {**record, "statfs": dict(record["statfs"])}
    found["num_pgs"] = sum(record["osd"] in pg.holders() for pg in cluster.pgs.values())
    found["kb_used"] -= gone // 1024
    found["kb_avail"] += gone // 1024
    found["statfs"]["available"] += gone
    found["statfs"]["allocated"] -= gone
    return found


class Gain(NamedTuple):
    """What a plan would do that min_gain lets go."""

    what: str
    relieved: float   # utilization of the fullest OSD that it relieves; 0.0 for a gain of others
    ratio: float      # by which the class, the OSD or the pool gains; 0.0 for one that has plenty


def plan_of(session: Session, rejected: FrozenSet[str], drained: FrozenSet[int]) -> Plan:
    """By the options in force; `rejected` PGs stay where they are."""
    config, settings = session.simulation.config, session.module.settings()
    noted = config.on_removal, config.on_setting
    mgr = _TruthfulMgr(session.simulation, session.module.module_name)
    config.on_removal, config.on_setting = noted
    api: Any = MgrModuleApi("truth", None, mgr)
    gateway = Gateway(api, session.clock, lambda: settings)
    gateway.drained = drained
    snapshot = gateway.snapshot()
    scope = OsdFilter(settings.from_buckets, settings.to_buckets,
                      settings.not_buckets).scope(snapshot.crush)
    return make_plan(snapshot, PlanOptions(
        pool_ids=settings.pool_ids, device_classes=settings.device_classes,
        fill_limit=settings.fill_limit, aim=settings.aim, rejected_pgs=rejected,
        respect_weights=settings.respect_weights, max_upmap_items=settings.max_upmap_items,
        max_pg_shards_per_osd=gateway.max_pg_shards()[1],
        sources=scope.sources, targets=scope.targets))


def gains(session: Session, plan: Plan, drained: FrozenSet[int]) -> List[Gain]:
    """The gains of a plan by the rule of these tests."""
    cluster, before = session.cluster, truth.arrived(session.cluster)
    least = _CLEARLY * max(_LEAST_GAIN, session.module.settings().min_gain)
    nearfull, after = cluster.map.ratio("nearfull_ratio"), dict(before)
    for move in plan.moves:
        if before[move.target] <= nearfull:   # nothing is sent to the others
            after[move.source] -= move.bytes / cluster.usage[move.source].total
            taken = 1.0 + cluster.copy_overhead.get(pool_of(move.pgid), 0.0)
            after[move.target] += move.bytes * taken / cluster.usage[move.target].total
    by_class: Dict[str, List[int]] = {}
    for osd in before:
        if cluster_view.may_take(cluster, osd) and osd not in drained:
            by_class.setdefault(cluster_view.class_of(cluster, osd), []).append(osd)
    found = []
    for name, osds in sorted(by_class.items()):
        highest, lower = max(before[osd] for osd in osds), max(after[osd] for osd in osds)
        if highest - lower >= least:
            found.append(Gain(f"class {name} can go from {highest:.4f} to {lower:.4f}", 0.0,
                              highest - lower))
    for osd, level in sorted(before.items()):
        gain = level - after[osd]
        if level > nearfull + _LEAST_GAIN and gain >= least:
            found.append(
                Gain(f"osd.{osd} can go from {level:.4f} to {after[osd]:.4f}", level, gain))
    return found + _room(session, plan, least)


def _room(session: Session, plan: Plan, least: float) -> List[Gain]:
    """Pools that are not small and would have clearly more of what they hold and could hold; none
    where shards of the plan take more where they arrive, which its free space does not count."""
    cluster, found = session.cluster, []
    if any(cluster.copy_overhead.get(pool_of(move.pgid)) for move in plan.moves):
        return []
    large = _large_pools(cluster)
    for pool_id, pool in sorted(cluster.map.pools.items()):
        name = str(pool["pool_name"])
        before, after = plan.before.pools.get(name), plan.after.pools.get(name)
        if pool_id not in large or before is None or after is None:
            continue
        if not before.stored_bytes:
            continue
        part = (after.free_bytes - before.free_bytes) / (before.stored_bytes + before.free_bytes)
        if part >= least:
            room = cluster.map.ratio("full_ratio") / max(plan.bounds.values()) - 1.0
            has_plenty = before.free_bytes >= _PLENTY * room * before.stored_bytes
            found.append(Gain(f"pool {name} can have {100.0 * part:.1f} % more", 0.0,
                              0.0 if has_plenty else part))
    return found


def _large_pools(cluster: Cluster) -> Set[int]:
    """Those that have not less of the bytes of every class than a small pool."""
    held: Dict[str, Counter[int]] = {}
    for pg in cluster.pgs.values():
        for osd in pg.holders():
            of_class = held.setdefault(cluster_view.class_of(cluster, osd), Counter())
            of_class[pg.pool_id] += pg.shard.total
    found: Set[int] = set()
    for pools in held.values():
        least = _SMALL_POOL * sum(pools.values())
        found.update(pool_id for pool_id, count in pools.items() if count >= least)
    return found


_SECONDS, _NEARFULL_SECONDS, _FULL_SECONDS = 900.0, 300.0, 30.0
_DROPPED_SECONDS = 86_400.0
#: Between two plans; less where an OSD has come above nearfull.
_PLAN_SECONDS = 600.0
#: Utilizations that have changed by less than this part of min_gain are the same.
_SAME = 0.25
#: Drift may leave so much (a ratio), where min_gain is less.
_DRIFT = 0.01
#: Pools that the module says it does not move any more.
_MISPREDICTED = "MGR_EQUILIBRIUM_MISPREDICTED"


class DeservedRest:
    """Looks at the state as published, at the simulated cluster, and at the monitor's log."""

    def __init__(self, session: Session) -> None:
        self.plans = 0
        self._offset = session.clock() - session.clock.now   # of the wall clock
        self._set_at = float("-inf")           # when that was changed
        self._planned_at = float("-inf")
        self._seen: Any = None                 # the cluster of the last plan
        self._levels: Dict[int, float] = {}    # OSD → utilization then
        self._balanced: Any = None             # the cluster of the last plan without gains
        self._found: List[Gain] = []
        self._since: Optional[float] = None    # when a gain was found first, without end
        self._is_noted = False                 # has that been told?
        self._log = UpmapLog(session)
        self._sent: Dict[str, LoggedCommand] = {}   # PG → its last upmap items of ours

    def observe(self, session: Session) -> List[str]:
        """What is wrong now."""
        now, has_sent = session.clock.now, self._has_sent(session)
        if has_sent or not self._is_clock_steady(session) or not _can_be_judged(session):
            self._begin_anew()
            return []
        state = session.module.balancer.status.state
        if state == "planning":   # it may rest again when that is made
            return []
        if state not in ("balanced", "stuck"):
            self._begin_anew()
            return []
        self._plan_where_changed(session)
        if not self._found:
            self._since = None
            return []
        if self._since is None:
            self._since, self._is_noted = now, False
        relieved = max(gain.relieved for gain in self._found)
        most = session.module.settings().sleep_interval + _allowed(session, relieved)
        if now - self._since <= most or self._is_noted:
            return []
        self._is_noted = True
        return [f"{self._found[0].what} for {int(now - self._since)} s, and it is {state}:"
                f" {session.module.balancer.status.reason}"]

    def _begin_anew(self) -> None:
        self._since, self._seen, self._found = None, None, []
        self._planned_at = float("-inf")

    def _is_clock_steady(self, session: Session) -> bool:
        """False for the length of a cooldown after the wall clock was set, as it counts by that."""
        now, offset = session.clock.now, session.clock() - session.clock.now
        if abs(offset - self._offset) > 1.0:
            self._offset, self._set_at = offset, now
        return session.module is not None and (
            now - self._set_at >= session.module.settings().pg_cooldown)

    def _has_sent(self, session: Session) -> bool:
        """Whether the module has sent upmap items since the last look; notes them. What others
        send is no drift."""
        sent = self._log.fresh()
        if any(entry.sender != MGR for entry in sent):
            self._balanced = None
        fresh = {str(entry.command["pgid"]): entry for entry in sent if entry.sender == MGR}
        self._sent.update(fresh)
        return bool(fresh)

    def _plan_where_changed(self, session: Session) -> None:
        """Plans are not cheap: one where the cluster is another, and seldom."""
        cluster, settings = session.cluster, session.module.settings()
        levels, nearfull = truth.arrived(cluster), cluster.map.ratio("nearfull_ratio")
        osdmap = cluster.map
        seen = (osdmap.upmap_items, osdmap.osds, osdmap.pools, cluster.crush, settings,
                nearfull, osdmap.ratio("backfillfull_ratio"))
        least = _SAME * max(0.001, settings.min_gain)
        changed = [osd for osd, level in levels.items()
                   if abs(level - self._levels.get(osd, math.inf)) >= least]
        has_changed = bool(changed) or seen != self._seen or len(levels) != len(self._levels)
        if not has_changed and not self._has_cooled(session.clock.now, settings.pg_cooldown):
            return
        overfull = any(level > nearfull and self._levels.get(osd, 0.0) <= nearfull
                       for osd, level in levels.items())
        if session.clock.now - self._planned_at < _PLAN_SECONDS and not overfull:
            return
        self._seen, self._levels, self._planned_at = seen, levels, session.clock.now
        drained = cluster_view.drained(session)
        plan = plan_of(session, self._staying(session, levels, nearfull), drained)
        self.plans += 1
        self._found, rules = gains(session, plan, drained), (drained, *seen[1:])
        if not self._found:
            self._balanced = rules
        elif self._balanced == rules:
            drift = _DRIFT if settings.min_gain else 0.0
            self._found = [gain for gain in self._found if gain.relieved or gain.ratio >= drift]

    def _has_cooled(self, now: float, cooldown: float) -> bool:
        """Whether a PG's cooldown has ended since the last plan."""
        return any(self._planned_at < entry.sent_at + cooldown <= now
                   for entry in self._sent.values())

    def _staying(self, session: Session, levels: Dict[int, float],
                 nearfull: float) -> FrozenSet[str]:
        """PGs that were moved a short while ago, but for those on OSDs above nearfull; and PGs
        whose items the monitor has refused, or dropped of late (X2 tells when they go again)."""
        cluster, cooldown = session.cluster, session.module.settings().pg_cooldown
        stay = set()
        for pgid, entry in self._sent.items():
            full = any(levels.get(osd, 0.0) > nearfull for osd in cluster.map.up.get(pgid, ()))
            seconds = session.clock.now - entry.sent_at
            is_dropped = not entry.kept and seconds < _DROPPED_SECONDS
            is_cooling = seconds < cooldown and not full
            if is_dropped or is_cooling or entry.returncode:
                stay.add(pgid)
        return frozenset(stay)


def _allowed(session: Session, relieved: float) -> float:
    osdmap = session.cluster.map
    if relieved > osdmap.ratio("backfillfull_ratio"):
        return _FULL_SECONDS
    if relieved > 0.0:
        return _NEARFULL_SECONDS
    return _SECONDS


def _can_be_judged(session: Session) -> bool:
    """Whether nothing moves, nothing is broken, and the mgr is told of all as it is."""
    module, simulation, cluster = session.module, session.simulation, session.cluster
    if cluster_view.is_away(session) or is_held(session):
        return False
    if not (module.settings().active and simulation.idle() and simulation.reports.is_fresh):
        return False
    for pool in cluster.map.pools.values():
        if pool["pg_num"] != pool.get("pg_num_target", pool["pg_num"]):
            return False
    for pg in cluster.unclean.values():
        if not pg_reports.state_of(cluster, pg).startswith("active+clean"):
            return False
    return _MISPREDICTED not in session.mgr.health_checks

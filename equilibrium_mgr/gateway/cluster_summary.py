"""What can be read of a cluster of any size in a few milliseconds, on every release.

It shows whether something may be sent and whether a full reading is worth its cost, and it has
present figures for commands. It needs no dump of the osdmap, no up sets and no statistics of single
PGs.

The space of pools as `ceph df` has it: the mgr computes get('df') with the code of the monitor
(PGMapDigest::dump_pool_stats_full in Ceph's src/mon/PGMap.cc).
"""
from __future__ import annotations

import json
from itertools import chain
from types import MappingProxyType
from typing import Any, Dict, FrozenSet, Mapping, NamedTuple, Optional, Sequence

from ..plan.options import PgShardLimits


class OsdSummary(NamedTuple):
    """One OSD. Sizes are None while it has not reported (it is out, down, or new)."""

    up: bool
    is_in: bool
    reweight: float              # as `ceph osd reweight` sets it; 0 where it is out
    crush_weight: float
    size_bytes: Optional[int]
    used_bytes: Optional[int]
    device_class: str
    pgs: Optional[int]           # that it has data of, as it reports them

    @property
    def utilization(self) -> Optional[float]:
        """Used bytes as a ratio of the size; None while the OSD has not reported."""
        return self.used_bytes / self.size_bytes if self.size_bytes and (
            self.used_bytes is not None) else None


class PoolSummary(NamedTuple):
    """One pool, as its PGs report it."""

    pg_num: int                  # PGs that have statistics
    states: Mapping[str, int]    # PG state as Ceph names it (`active+clean`) → PGs
    omap_bytes: int              # of one copy, as deep scrubs have measured it


class Fullness(NamedTuple):
    """Numbers of OSDs, each in the highest of these that it is in, as Ceph's health has them."""

    nearfull: int = 0
    backfillfull: int = 0
    full: int = 0


def fullness_of(health: str) -> Fullness:
    """Returns the numbers that the text of get('health') has; none of a text that is garbled."""
    try:
        checks = json.loads(health)["checks"]
        return Fullness(*[
            int(checks[code]["summary"]["count"]) if code in checks else 0
            for code in ("OSD_NEARFULL", "OSD_BACKFILLFULL", "OSD_FULL")])
    except (KeyError, TypeError, ValueError):
        return Fullness()


class ClusterSummary(NamedTuple):
    """The cluster at one moment. Immutable, so that every thread may keep it."""

    taken_at: float              # seconds since the epoch
    epoch: int                   # of the osdmap
    crush_version: int
    osds: Mapping[int, OsdSummary]
    pools: Mapping[int, PoolSummary]
    misplaced_copies: int        # object copies that are not where they should be
    mon_connected: bool
    builtin_active: bool         # the built-in balancer runs and is switched on
    flags: Optional[FrozenSet[str]]           # of the osdmap; None where they were not read
    min_compat_client: Optional[str]          # as the flags
    stale_osds: FrozenSet[int]                # up and in, but silent for too long
    #: seconds since the epoch: first sight of the oldest report among OSDs that are up and in
    statistics_at: Optional[float] = None
    degraded_copies: int = 0     # object copies that are missing
    fullness: Fullness = Fullness()
    max_pg_shards: PgShardLimits = PgShardLimits()

    @property
    def without_pgs(self) -> FrozenSet[int]:
        """OSDs that are up and report that they have nothing of any PG."""
        return frozenset(osd for osd, one in self.osds.items()
                         if one.up and one.pgs == 0) - self.stale_osds


_NOTHING: Mapping[str, Any] = {}


def summarize_osds(tree: Mapping[str, Any],
                   osd_stats: Sequence[Mapping[str, Any]]) -> Mapping[int, OsdSummary]:
    """OSD id → its summary, by get('osd_map_tree') and the rows of get('osd_stats'). An OSD under
    several roots has the largest of its CRUSH weights."""
    reports = {int(stats["osd"]): stats for stats in osd_stats}
    osds: Dict[int, OsdSummary] = {}
    for node in chain(tree.get("nodes", ()), tree.get("stray", ())):   # stray: outside of CRUSH
        if node.get("type") != "osd" or not node.get("exists", 1):
            continue
        osd = int(node["id"])
        weight = float(node.get("crush_weight", 0.0))
        if osd in osds:
            osds[osd] = osds[osd]._replace(crush_weight=max(weight, osds[osd].crush_weight))
            continue
        reweight = float(node.get("reweight", 0.0))
        report = reports.get(osd, _NOTHING)
        statfs = report.get("statfs") or _NOTHING
        total = int(statfs.get("total", 0))
        used = total - int(statfs.get("available", 0))
        osds[osd] = OsdSummary(   # by position: half the time, and this is done every round
            node.get("status") == "up", reweight > 0.0, reweight, weight,
            total if total > 0 else None, max(0, used) if total > 0 else None,
            str(node.get("device_class", "")), report.get("num_pgs"))
    return MappingProxyType(osds)


def summarize_pools(pool_stats: Sequence[Mapping[str, Any]],
                    pg_status: Mapping[str, Any]) -> Mapping[int, PoolSummary]:
    """Pool id → its summary, by the rows of get('pool_stats') and get('pg_status')."""
    states: Dict[int, Mapping[str, int]] = {
        int(pool["pool_id"]): MappingProxyType({
            str(entry["state_name"]): int(entry["count"]) for entry in pool["pg_state_counts"]})
        for pool in pg_status.get("pgs_by_pool_state", [])}
    return MappingProxyType({int(pool["poolid"]): PoolSummary(
        int(pool.get("num_pg", 0)), states.get(int(pool["poolid"]), MappingProxyType({})),
        int(pool.get("stat_sum", {}).get("num_omap_bytes", 0))) for pool in pool_stats})


def flags_of(stat: str) -> FrozenSet[str]:
    """The flags in the output of `osd stat` (`flags noout,norebalance` in its last line)."""
    for line in stat.splitlines():
        word, _, flags = line.strip().partition(" ")
        if word == "flags":
            return frozenset(flag.strip() for flag in flags.split(",") if flag.strip())
    return frozenset()


class PoolSpaceNow(NamedTuple):
    """Ceph's own figures of one pool at this moment; None for what a release does not tell."""

    name: str
    stored: Optional[int]            # client bytes
    percent_used: Optional[float]    # a ratio: used ÷ (used + available), raw bytes of the pool
    max_avail: Optional[int]         # client bytes

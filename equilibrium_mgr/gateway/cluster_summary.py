"""The summary of a cluster. Reading it takes a few milliseconds, at any size and release.

It shows whether the module may send moves and whether a full reading is worth its cost. Commands
show its present figures. It needs no dump of the osdmap, no up sets and no statistics of single
PGs.

Also the space of pools as `ceph df` shows it: the mgr computes get('df') with the code of the
monitor (PGMapDigest::dump_pool_stats_full in Ceph's src/mon/PGMap.cc).
"""
from __future__ import annotations

import json
from itertools import chain
from types import MappingProxyType
from typing import Any, Dict, FrozenSet, Mapping, NamedTuple, Optional, Sequence

from ..plan.options import PgShardLimits


class OsdSummary(NamedTuple):
    """One OSD. Sizes are None if the mgr has no report of it: it is out or new, or has been down
    since the mgr became active."""

    up: bool
    is_in: bool
    reweight: float              # as `ceph osd reweight` sets it; 0 if it is out
    crush_weight: float
    size_bytes: Optional[int]
    used_bytes: Optional[int]
    device_class: str
    pgs: Optional[int]           # PGs with data on it, by its own report

    @property
    def utilization(self) -> Optional[float]:
        """Returns the used bytes as a ratio of the size; None without a report."""
        if not self.size_bytes or self.used_bytes is None:
            return None
        return self.used_bytes / self.size_bytes


class PoolSummary(NamedTuple):
    """One pool, as its PGs report it."""

    pg_num: int                  # PGs that have statistics
    states: Mapping[str, int]    # PG state as Ceph names it (`active+clean`) → PGs
    omap_bytes: int              # of one copy, as deep scrubs have measured it


class Fullness(NamedTuple):
    """Numbers of OSDs above Ceph's full ratios, as its health checks count them. An OSD counts
    only for the highest ratio that it is above."""

    nearfull: int = 0
    backfillfull: int = 0
    full: int = 0


#: Ceph's health checks of full OSDs, with counts of 0.
_NOT_FULL = dict.fromkeys(("OSD_NEARFULL", "OSD_BACKFILLFULL", "OSD_FULL"),
                          {"summary": {"count": 0}})


def fullness_of(health: str) -> Fullness:
    """Returns the numbers in the text of get('health'); zeros if the text is garbled."""
    try:
        checks = {**_NOT_FULL, **json.loads(health)["checks"]}
        return Fullness(*[int(checks[code]["summary"]["count"]) for code in _NOT_FULL])
    except (KeyError, TypeError, ValueError):
        return Fullness()


class ClusterSummary(NamedTuple):
    """The cluster at one moment. Immutable, so that every thread may keep it."""

    taken_at: float              # seconds since the epoch
    epoch: int                   # of the osdmap
    crush_version: int
    osds: Mapping[int, OsdSummary]
    pools: Mapping[int, PoolSummary]
    misplaced_copies: int        # object copies that are not on an OSD of the up set
    mon_connected: bool
    builtin_active: bool         # the built-in balancer is on, in a mode that moves data
    flags: Optional[FrozenSet[str]]           # of the osdmap; None if they were not read
    min_compat_client: Optional[str]          # like the flags
    stale_osds: FrozenSet[int]                # up and in, but with stale statistics
    #: when the oldest of the last reports of OSDs that are up and in was first seen, in seconds
    #: since the epoch; None if that is not known
    statistics_at: Optional[float] = None
    degraded_copies: int = 0     # object copies that are missing
    fullness: Fullness = Fullness()
    max_pg_shards: PgShardLimits = PgShardLimits()

    @property
    def without_pgs(self) -> FrozenSet[int]:
        """Returns the OSDs that are up and report no data of any PG, except stale ones."""
        empty = [osd for osd, one in self.osds.items() if one.up and one.pgs == 0]
        return frozenset(empty) - self.stale_osds


_NOTHING: Mapping[str, Any] = MappingProxyType({})


def summarize_osds(tree: Mapping[str, Any],
                   osd_stats: Sequence[Mapping[str, Any]]) -> Mapping[int, OsdSummary]:
    """Returns OSD id → its summary, by get('osd_map_tree') and the rows of get('osd_stats').

    An OSD under several roots has the largest of its CRUSH weights.
    """
    reports = {stats["osd"]: stats for stats in osd_stats}
    osds: Dict[int, OsdSummary] = {}
    for node in chain(tree.get("nodes", ()), tree.get("stray", ())):   # stray: outside of CRUSH
        if node.get("type") != "osd" or not node.get("exists", 1):
            continue
        osd = node["id"]
        weight = node.get("crush_weight", 0.0)
        if osd in osds:
            osds[osd] = osds[osd]._replace(crush_weight=max(weight, osds[osd].crush_weight))
            continue
        reweight = float(node.get("reweight", 0.0))
        report = reports.get(osd, _NOTHING)
        statfs = report.get("statfs") or _NOTHING
        size = statfs.get("total", 0)
        used = None
        if size > 0:
            used = max(0, size - statfs.get("available", 0))
        osds[osd] = OsdSummary(   # each round does this: keywords would take twice the time
            node.get("status") == "up", reweight > 0.0, reweight, weight,
            size or None, used, node.get("device_class", ""), report.get("num_pgs"))
    return MappingProxyType(osds)


def summarize_pools(pool_stats: Sequence[Mapping[str, Any]],
                    pg_status: Mapping[str, Any]) -> Mapping[int, PoolSummary]:
    """Returns pool id → its summary, by the rows of get('pool_stats') and get('pg_status')."""
    states: Dict[int, Mapping[str, int]] = {}
    for row in pg_status.get("pgs_by_pool_state", []):
        states[row["pool_id"]] = MappingProxyType({
            entry["state_name"]: entry["count"] for entry in row["pg_state_counts"]})
    pools: Dict[int, PoolSummary] = {}
    for row in pool_stats:
        pool = row["poolid"]
        omap_bytes = row.get("stat_sum", {}).get("num_omap_bytes", 0)
        pools[pool] = PoolSummary(row.get("num_pg", 0), states.get(pool, _NOTHING), omap_bytes)
    return MappingProxyType(pools)


def flags_of(stat: str) -> FrozenSet[str]:
    """Returns the flags in the output of `osd stat` (`flags noout,norebalance` in its last
    line)."""
    for line in stat.splitlines():
        word, _, flags = line.strip().partition(" ")
        if word == "flags":
            return frozenset(filter(None, map(str.strip, flags.split(","))))
    return frozenset()


class PoolSpaceNow(NamedTuple):
    """Ceph's own present figures of one pool; None if the release has no such figure."""

    name: str
    stored: Optional[int]            # client bytes
    percent_used: Optional[float]    # a ratio: used ÷ (used + available), raw bytes of the pool
    max_avail: Optional[int]         # client bytes

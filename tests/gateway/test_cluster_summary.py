"""What can be read of the cluster in a few milliseconds."""
from __future__ import annotations

from typing import Any, Dict, List, Mapping

import pytest
from tests.support.clusters.unit_cluster import Cluster, hosts
from tests.support.units import GIB

from equilibrium_mgr.gateway.cluster_summary import (
    OsdSummary, flags_of, summarize_osds, summarize_pools)


def summarized(nodes: List[Dict[str, Any]], stray: List[Dict[str, Any]],
               stats: List[Dict[str, Any]]) -> Mapping[int, OsdSummary]:
    return summarize_osds({"nodes": nodes, "stray": stray}, stats)


def node(osd: int, **fields: Any) -> Dict[str, Any]:
    return {"id": osd, "type": "osd", "exists": 1, "status": "up", "crush_weight": 1.0,
            "reweight": 1.0, "device_class": "hdd", **fields}


def stats(osd: int, total: int, available: int) -> Dict[str, Any]:
    return {"osd": osd, "statfs": {"total": total, "available": available}}


def test_osds_as_the_tree_and_their_reports_tell() -> None:
    osds = summarized(
        [{"id": -1, "type": "root", "children": [0, 1, 2]}, node(0), node(1, status="down"),
         node(2, reweight=0.0), node(3, status="destroyed")], [node(7, crush_weight=0.0)],
        [stats(0, 100 * GIB, 25 * GIB), stats(1, 10 * GIB, 10 * GIB), stats(2, 0, 0)])
    assert set(osds) == {0, 1, 2, 3, 7}
    assert osds[0].up and osds[0].is_in and osds[0].utilization == 0.75
    assert (osds[0].size_bytes, osds[0].used_bytes) == (100 * GIB, 75 * GIB)
    assert not osds[1].up and osds[1].used_bytes == 0 and osds[1].utilization == 0.0
    assert not osds[2].is_in and osds[2].utilization is None       # out: it is not counted
    assert not osds[3].up and osds[7].crush_weight == 0.0


def test_osd_under_two_roots_counts_once() -> None:
    osds = summarized([node(0, crush_weight=0.5), node(0, crush_weight=2.0)], [], [])
    assert osds[0].crush_weight == 2.0


def test_pools_with_their_states() -> None:
    cluster = Cluster(hosts(3)).pool(1, size=2).pool(2, size=3)
    cluster.pg("1.0", [0, 1], num_bytes=GIB, objects=10).pg("2.0", [0, 1, 2], num_bytes=5 * GIB)
    status = {"pgs_by_pool_state": [
        {"pool_id": 1, "pg_state_counts": [{"state_name": "active+clean", "count": 1}]}]}
    pools = summarize_pools(cluster.pool_stats(), status)
    assert pools[1].pg_num == 1
    assert pools[1].states == {"active+clean": 1} and pools[2].states == {}


@pytest.mark.parametrize("stat, flags", [
    ("3 osds: 3 up (since 7s), 3 in (since 13s); epoch: e16\n", ""),
    ("3 osds: 3 up (since 9s), 3 in (since 15s); epoch: e18\n"
     "flags pauserd,pausewr,norebalance\n", "pauserd pausewr norebalance"),
    ("4 osds: 3 up, 3 in; epoch: e9; 12 remapped pgs\nflags noout\n", "noout"), ("", "")])
def test_flags_in_the_words_of_real_monitors(stat: str, flags: str) -> None:
    """Seen on 16.2.15 and 20.2.4."""
    assert flags_of(stat) == set(flags.split())

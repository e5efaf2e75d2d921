"""What can be read of the cluster in a few milliseconds."""
from __future__ import annotations

from typing import Any, Dict

import pytest
from tests.support.clusters.unit_cluster import Cluster, hosts
from tests.support.units import GIB

from equilibrium_mgr.gateway.cluster_summary import flags_of, summarize_osds, summarize_pools


def node(osd: int, **fields: Any) -> Dict[str, Any]:
    return {"id": osd, "type": "osd", "exists": 1, "status": "up", "crush_weight": 1.0,
            "reweight": 1.0, "device_class": "hdd", **fields}


def stats(osd: int, total: int, available: int) -> Dict[str, Any]:
    return {"osd": osd, "statfs": {"total": total, "available": available}}


def test_osds_as_the_tree_and_their_reports_tell() -> None:
    root = {"id": -1, "type": "root", "children": [0, 1, 2]}
    nodes = [root, node(0), node(1, status="down"), node(2, reweight=0.0),
             node(3, status="destroyed")]
    reports = [stats(0, 100, 25), stats(1, 10, 10), stats(2, 0, 0)]
    osds = summarize_osds({"nodes": nodes, "stray": [node(7, crush_weight=0.0)]}, reports)
    shown = []
    for osd, one in osds.items():
        shown.append((osd, one.up, one.is_in, one.size_bytes, one.used_bytes, one.utilization))
    wanted = [
        (0, True, True, 100, 75, 0.75),
        (1, False, True, 10, 0, 0.0),
        (2, True, False, None, None, None),       # out: it is not counted
        (3, False, True, None, None, None),
        (7, True, True, None, None, None)]
    assert shown == wanted
    assert osds[7].crush_weight == 0.0


def test_osd_under_two_roots_counts_once() -> None:
    twice = [node(0, crush_weight=0.5), node(0, crush_weight=2.0)]
    assert summarize_osds({"nodes": twice}, [])[0].crush_weight == 2.0


def test_pools_with_their_states() -> None:
    cluster = Cluster(hosts(3)).pool(1, size=2).pool(2, size=3)
    cluster.pg("1.0", "0 1", num_bytes=GIB, objects=10).pg("2.0", "0 1 2", num_bytes=5 * GIB)
    counts = [{"state_name": "active+clean", "count": 1}]
    pools = summarize_pools(cluster.pool_stats(), {
        "pgs_by_pool_state": [{"pool_id": 1, "pg_state_counts": counts}]})
    assert (pools[1].pg_num, pools[1].states) == (1, {"active+clean": 1})
    assert pools[2].states == {}


@pytest.mark.parametrize("stat, flags", [
    ("3 osds: 3 up (since 7s), 3 in (since 13s); epoch: e16\n", ""),
    ("3 osds: 3 up (since 9s), 3 in (since 15s); epoch: e18\n"
     "flags pauserd,pausewr,norebalance\n", "pauserd pausewr norebalance"),
    ("4 osds: 3 up, 3 in; epoch: e9; 12 remapped pgs\nflags noout\n", "noout"), ("", "")])
def test_flags_in_the_words_of_real_monitors(stat: str, flags: str) -> None:
    """Seen on 16.2.15 and 20.2.4."""
    assert flags_of(stat) == set(flags.split())

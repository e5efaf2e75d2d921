"""A snapshot's OSDs, pools, transfers and figures."""
from __future__ import annotations

from typing import Any, Dict, List

import pytest
from tests.support.clusters.unit_cluster import NONE, Cluster, hosts
from tests.support.units import GIB, TIB


def test_osd_without_statistics_is_no_target_and_no_crash() -> None:
    cluster = Cluster(hosts(3)).pool(1, size=2).pg("1.0", "0 1").pg("1.1", "1 2")
    cluster.without_statistics, cluster.sizes[1], cluster.used[1] = [2], 0, 0
    assert [cluster.snapshot().osds[osd].unusable_reason() for osd in range(3)] == [
        None, "without statistics", "without statistics"]


@pytest.mark.parametrize("fields, obstacle", [
    ({"state": ["destroyed", "exists"], "up": 0}, "destroyed"),
    ({"state": ["exists"], "up": 0}, "down"),
    ({"in": 0, "weight": 0.0}, "out"),
    ({"weight": 0.0}, "out"),
    ({"weight": 0.3}, None),
])
def test_who_can_take_a_shard(fields: Dict[str, Any], obstacle: str) -> None:
    cluster = Cluster(hosts(2)).pool(1, size=1).pg("1.0", [0]).osd(1, **fields)
    assert cluster.snapshot().osds[1].unusable_reason() == obstacle


def test_osd_in_the_map_but_not_in_crush() -> None:
    cluster = Cluster(hosts(2)).pool(1, size=2).pg("1.0", "0 1")
    cluster.osds[7] = {"osd": 7, "up": 1, "in": 1, "weight": 1.0, "state": ["exists", "up"]}
    cluster.sizes[7] = TIB
    osd = cluster.snapshot().osds[7]
    assert (osd.host, osd.device_class) == ("", "none")


@pytest.mark.parametrize("k, acting, inbound, outbound", [
    (0, [3, 1, 2], {0: 2}, {3: 8}),
    (0, [1, 0, 2], {}, {}),   # in another order
    (1, [3, 1, 2], {0: 2}, {3: 8}),
    (1, [1, 0, 2], {0: 8, 1: 8}, {0: 8, 1: 8})])   # positions move
def test_what_comes_and_goes(k: int, acting: List[int], inbound: Dict[int, int],
                             outbound: Dict[int, int]) -> None:
    """A quarter of 8 GiB is to come; where OSDs exchange positions they report nothing of it."""
    cluster = Cluster(hosts(4)).pool(1, size=3, k=k)
    cluster.pg("1.0", "0 1 2", num_bytes=8 * GIB, acting=acting, uncopied_ratio=0.25)
    for osd in cluster.snapshot().osds.values():
        come, go = inbound.get(osd.id, 0) * GIB, outbound.get(osd.id, 0) * GIB
        assert (osd.inbound_bytes, osd.outbound_bytes) == (come, go)
        assert osd.target_bytes == osd.used_bytes + come - go


def test_ratios_that_are_unset_have_ceph_s_defaults() -> None:
    """OSDs take a backfillfull ratio below nearfull for nearfull."""
    cluster = Cluster(hosts(2)).pool(1, size=2).pg("1.0", "0 1")
    cluster.extra.update(full_ratio=0, backfillfull_ratio=0, nearfull_ratio=0)
    snapshot = cluster.snapshot()
    assert (snapshot.full_ratio, snapshot.backfillfull_ratio) == (0.95, 0.85)


def test_a_down_osd_degrades_its_pools_before_pg_status_says_so() -> None:
    cluster = Cluster(hosts(5)).pool(1, size=2).pool(2, size=2).pool(3, size=2, k=1)
    cluster.pg("1.0", [0]).pg("1.1", "0 1").pg("2.0", "0 1").pg("3.0", [NONE, 1])
    cluster.osd(4, up=0)
    states = cluster.snapshot().pool_states
    assert {pool: states[pool].degraded for pool in states} == {1: 1, 3: 1}


def test_what_pg_status_says_of_a_down_osd_is_not_counted_twice() -> None:
    cluster = Cluster(hosts(5)).pool(1, size=2).pg("1.0", [0]).pg("1.1", [1]).pg("1.2", [2])
    cluster.osd(4, up=0)
    cluster.pg_status = {"pgs_by_pool_state": [{"pool_id": 1, "pg_state_counts": [
        {"state_name": "active+undersized+degraded", "count": 1},
        {"state_name": "peering", "count": 1}]}]}
    states = cluster.snapshot().pool_states[1]
    assert (states.inactive, states.degraded) == (1, 2)

"""The osdmap: each epoch is dumped once, and what others have changed shows at the next look."""
from __future__ import annotations

import pytest
from tests.gateway.fake_mgr import open_gateway, small
from tests.support.clusters.unit_cluster import NONE, Cluster, hosts

from equilibrium_mgr.gateway.gateway import NotReady


def test_what_others_change_shows_at_the_next_look_also_after_one_that_failed() -> None:
    cluster = small()
    gateway, mgr, _ = open_gateway(cluster)
    gateway.snapshot()
    cluster.epoch += 1
    cluster.pg("1.0", "3 1", items="0>3").pool(3, size=2).pg("3.0", "0 1")
    del cluster.pools[2]
    cluster.crush = dict(cluster.crush, buckets=list(reversed(cluster.crush["buckets"])))
    cluster.extra.update(crush_version=6, full_ratio=0.97)
    mgr.missing = ["osd_stats"]
    with pytest.raises(NotReady):
        gateway.snapshot()
    mgr.missing = []
    for _ in range(2):
        snapshot = gateway.snapshot()
        assert mgr.calls["dump"] == 2
        assert snapshot.pgs["1.0"].up == (3, 1) and snapshot.upmap_items == {"1.0": ((0, 3),)}
        assert set(snapshot.pools) == {1, 3} and "3.0" in snapshot.pgs
        assert (snapshot.crush_version, snapshot.full_ratio) == (6, 0.97)


def test_acting_as_ceph_computes_it_not_as_the_map_keeps_it() -> None:
    """pg_temp of EC-optimized pools has the shards that can be primary first."""
    cluster = small()
    cluster.extra.update(pg_temp=[{"pgid": "1.1", "osds": [2, 1]}])
    gateway, _, _ = open_gateway(cluster)
    assert gateway.snapshot().pgs["1.1"].acting == (1, 2)
    cluster.epoch += 1
    cluster.pg("1.1", "1 2", acting="3 2", state="active+remapped")
    assert gateway.snapshot().pgs["1.1"].acting == (3, 2)


def test_holes_of_erasure_coded_pools() -> None:
    cluster = Cluster(hosts(6)).pool(1, size=3, k=2).pg("1.0", "0 1 2")
    gateway, _, _ = open_gateway(cluster)
    gateway.snapshot()
    cluster.epoch += 1
    cluster.osd(1, up=0, state=["exists"])
    cluster.pg("1.0", [0, NONE, 2], state="active+undersized")
    gateway.snapshot()
    reading = gateway.last_reading
    assert reading is not None and reading.up["1.0"] == (0, NONE, 2)

"""Pools of which pg_num changes, and those on their OSDs, are left alone meanwhile."""
from __future__ import annotations

import pytest
from tests.support.clusters.unit_cluster import Cluster, hosts
from tests.support.fakes import Harness
from tests.support.rules import OSD_RULE
from tests.support.units import GIB


@pytest.mark.parametrize("changing", [1, 2])
def test_pools_on_the_osds_of_a_pool_whose_pg_num_changes_are_not_planned(changing: int) -> None:
    """Pools 1 and 2 share OSDs, pool 3 has OSDs of its own and goes on."""
    harness = Harness(two_roots(), active=True)
    split(harness.gateway.cluster, changing, True)
    for _ in range(4):
        harness.round(60)
        harness.jobs.run()
    assert harness.gateway.sent and all(pgid.startswith("3.") for pgid in harness.gateway.sent)
    harness.gateway.arrive()
    for _ in range(4):
        harness.round(60)
        harness.jobs.run()
    assert harness.balancer.state == "waiting"
    assert harness.balancer.reason.startswith(f"pg_num of pool 'pool{changing}' is changing")
    split(harness.gateway.cluster, changing, False)
    for _ in range(6):
        harness.round(60)
        harness.jobs.run()
    assert any(pgid.startswith("1.") for pgid in harness.gateway.sent)


def two_roots() -> Cluster:
    rules = {0: OSD_RULE, 1: "take default~ssd; choose firstn 0 osd; emit"}
    cluster = Cluster(hosts(6), {0: "take default~hdd; choose firstn 0 osd; emit", 1: rules[1]},
                      classes={3: "ssd", 4: "ssd", 5: "ssd"})
    cluster.pool(1, size=1).pool(2, size=1).pool(3, size=1, rule=1)
    for ps in range(9):
        cluster.pg(f"1.{ps:x}", [0], num_bytes=5 * GIB, objects=10)
        cluster.pg(f"3.{ps:x}", [3], num_bytes=5 * GIB, objects=10)
    for ps in range(3):
        cluster.pg(f"2.{ps:x}", [ps], num_bytes=GIB, objects=10)
    return cluster


def split(cluster: Cluster, pool: int, begins: bool) -> None:
    cluster.osd_map()   # fills in what pools have by default
    cluster.pools[pool]["pg_num_target"] = cluster.pools[pool]["pg_num"] * (2 if begins else 1)

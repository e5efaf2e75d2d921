"""What is too small to matter to an OSD makes no plan, and ends none."""
from __future__ import annotations

from tests.support.clusters.unit_cluster import Cluster
from tests.support.fakes import Harness
from tests.support.rounds import uneven
from tests.support.units import GIB, MIB


def beside_a_small_pool() -> Cluster:
    cluster = uneven(pgs=24, osds=6, num_bytes=2 * GIB).pool(2, size=1, name="rgw.log")
    for ps in range(32):
        cluster.pg(f"2.{ps:x}", [ps % 6], num_bytes=MIB // 32, objects=1)
    return cluster


def swing(cluster: Cluster, ratio: float) -> None:
    for pgid, record in cluster.records.items():
        if pgid.startswith("2."):
            cluster.records[pgid] = record._replace(num_bytes=int(MIB // 32 * ratio))


def test_swinging_pool_of_a_mebibyte_makes_no_plan() -> None:
    harness = Harness(beside_a_small_pool(), active=True)
    for _ in range(8):
        harness.round(60)
        harness.jobs.run()
        harness.gateway.arrive()
    assert harness.balancer.state == "balanced"
    plans = 0
    for minute in range(0, 24 * 60, 5):
        swing(harness.gateway.cluster, 1.07 if minute % 10 else 1.0)
        harness.round(300)
        plans += harness.jobs.run()
    assert plans == 0 and harness.balancer.state == "balanced"


def test_swinging_pool_of_a_mebibyte_ends_no_plan() -> None:
    harness = Harness(beside_a_small_pool(), active=True, max_moves_per_round=1, sleep_interval=900)
    harness.round()
    plans = harness.jobs.run()
    for minute in range(0, 450, 15):
        swing(harness.gateway.cluster, 2.0 if minute % 30 else 1.0)
        harness.round(900)
        harness.gateway.arrive()
        plans += harness.jobs.run()
    assert harness.balancer.status.last_execution is not None
    assert harness.balancer.status.last_execution["outcome"] == "completed" and plans <= 2

"""What is too small to matter to an OSD makes no plan, and ends none."""
from __future__ import annotations

from builders import GIB, MIB, Cluster
from fakes import Desk
from rounds import uneven


def beside_a_small_pool() -> Cluster:
    cluster = uneven(pgs=24, osds=6, num_bytes=2 * GIB).pool(2, size=1, name="rgw.log")
    for ps in range(32):
        cluster.pg("2.%x" % ps, [ps % 6], num_bytes=MIB // 32, objects=1)
    return cluster


def swing(cluster: Cluster, ratio: float) -> None:
    for pgid, record in cluster.records.items():
        if pgid.startswith("2."):
            cluster.records[pgid] = record._replace(num_bytes=int(MIB // 32 * ratio))


def test_swinging_pool_of_a_mebibyte_makes_no_plan() -> None:
    desk = Desk(beside_a_small_pool(), active=True)
    for _ in range(8):
        desk.round(60)
        desk.jobs.run()
        desk.gateway.arrive()
    assert desk.balancer.state == "balanced"
    plans = 0
    for minute in range(0, 24 * 60, 5):
        swing(desk.gateway.cluster, 1.07 if minute % 10 else 1.0)
        desk.round(300)
        plans += desk.jobs.run()
    assert plans == 0 and desk.balancer.state == "balanced"


def test_swinging_pool_of_a_mebibyte_ends_no_plan() -> None:
    desk = Desk(beside_a_small_pool(), active=True, max_moves_per_round=1, sleep_interval=900)
    desk.round()
    plans = desk.jobs.run()
    for minute in range(0, 450, 15):
        swing(desk.gateway.cluster, 2.0 if minute % 30 else 1.0)
        desk.round(900)
        desk.gateway.arrive()
        plans += desk.jobs.run()
    assert desk.balancer.last_walk is not None
    assert desk.balancer.last_walk["outcome"] == "through" and plans <= 2

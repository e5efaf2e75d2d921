"""What passes within seconds is looked at again within seconds, and is no trouble at once."""
from __future__ import annotations

from tests.support.clusters.unit_cluster import Cluster, hosts
from tests.support.fakes import Harness
from tests.support.rounds import kept, small_plan, uneven
from tests.support.rules import OSD_RULE
from tests.support.units import GIB


def inactive(cluster: Cluster, count: int) -> None:
    cluster.pg_status = {"pgs_by_pool_state": [{"pool_id": 1, "pg_state_counts": [
        {"state_name": "peering", "count": count}] if count else []}]}


def executing() -> Harness:
    harness = Harness(uneven())
    harness.balancer.execute("p", kept(harness, plan=small_plan(6)))
    inactive(harness.gateway.cluster, 1)
    return harness


def test_moment_of_peering_is_looked_at_again_after_seconds() -> None:
    harness = executing()
    harness.balancer.require_observation()
    assert harness.balancer.round() <= 10.0
    assert harness.balancer.status.state == "waiting" and (
        "peering" not in harness.balancer.status.state)
    assert harness.balancer.status.reason == "pool 'pool1' has 1 PG inactive"
    inactive(harness.gateway.cluster, 0)
    assert harness.round(10) == "moving" and harness.gateway.sent


def test_what_does_not_pass_blocks() -> None:
    harness = executing()
    states, full_readings = [], []
    for _ in range(6):
        harness.balancer.require_observation()
        full_readings.append(harness.balancer.round())
        states.append(harness.balancer.status.state)
        harness.now += full_readings[-1]
    assert states == ["waiting"] * 3 + ["blocked"] * 3
    assert full_readings[3:] == [60.0] * 3
    assert harness.balancer.status.reason == "pool 'pool1' has 1 PG inactive" and (
        not harness.gateway.sent)


def test_pgs_that_a_pg_num_touches_are_not_planned() -> None:
    """All of pool 1 but 1.8 are to be split; that one and other pools go on."""
    harness = Harness(two_roots(), active=True)
    split(harness.gateway.cluster, 1, True)
    for _ in range(4):
        harness.round(60)
        harness.jobs.run()
    assert "1.8" in harness.gateway.sent and "3.0" in harness.gateway.sent
    harness.gateway.arrive()
    for _ in range(8):
        harness.round(60)
        harness.jobs.run()
    assert harness.balancer.status.state == "waiting"
    assert harness.balancer.status.reason_code == "pg_num_changing"
    assert [pgid for pgid in harness.gateway.sent if pgid.startswith("1.")] == ["1.8"]
    split(harness.gateway.cluster, 1, False)
    for _ in range(6):
        harness.round(60)
        harness.jobs.run()
    assert sum(pgid.startswith("1.") for pgid in harness.gateway.sent) > 1


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

"""What passes within seconds is looked at again within seconds, and is no trouble at once."""
from __future__ import annotations

from tests.support.clusters.unit_cluster import Cluster
from tests.support.fakes import Harness
from tests.support.rounds import executing, small_plan, uneven


def inactive(cluster: Cluster, count: int) -> None:
    cluster.pg_status = {"pgs_by_pool_state": [{"pool_id": 1, "pg_state_counts": [
        {"state_name": "peering", "count": count}] if count else []}]}


def peering() -> Harness:
    harness = executing(Harness(uneven()), small_plan(6))
    inactive(harness.cluster, 1)
    return harness


def test_moment_of_peering_is_looked_at_again_after_seconds() -> None:
    harness = peering()
    harness.balancer.require_observation()
    assert harness.balancer.round() <= 10.0
    assert harness.state == "waiting"
    assert "peering" not in harness.state
    assert harness.reason == "pool 'pool1' has 1 PG inactive"
    inactive(harness.cluster, 0)
    assert harness.round(10) == "moving"
    assert harness.sent


def test_what_does_not_pass_blocks() -> None:
    harness = peering()
    states, full_readings = [], []
    for _ in range(6):
        harness.balancer.require_observation()
        full_readings.append(harness.balancer.round())
        states.append(harness.state)
        harness.now += full_readings[-1]
    assert states == ["waiting"] * 3 + ["blocked"] * 3
    assert full_readings[3:] == [60.0] * 3
    assert harness.reason == "pool 'pool1' has 1 PG inactive"
    assert not harness.sent

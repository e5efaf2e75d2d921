"""A summary instead of a full look where nothing can have changed."""
from __future__ import annotations

from tests.support.fakes import Harness
from tests.support.rounds import executing, uneven


def test_summary_is_enough_until_budget_becomes_free() -> None:
    harness = Harness(uneven())
    harness.gateway.ratio = 0.25
    harness.cluster.pg_status = {"misplaced_objects": 30, "misplaced_total": 120}
    executing(harness)
    assert harness.round() == "throttled"
    full_readings = harness.looks
    harness.now += 60
    harness.balancer.round()
    assert harness.looks == full_readings
    assert harness.sent == []
    harness.cluster.pg_status = {"misplaced_objects": 5, "misplaced_total": 120}
    harness.now += 60
    harness.balancer.round()
    assert harness.looks > full_readings
    assert harness.sent == ["1.0", "1.1"]

"""A summary instead of a full look where nothing can have changed."""
from __future__ import annotations

from tests.support.fakes import Harness
from tests.support.rounds import kept, uneven


def test_summary_is_enough_until_budget_becomes_free() -> None:
    harness = Harness(uneven())
    harness.gateway.ratio = 0.25
    harness.gateway.cluster.pg_status = {"misplaced_objects": 30, "misplaced_total": 120}
    harness.balancer.execute("p", kept(harness))
    assert harness.round() == "throttled"
    full_readings = harness.gateway.full_readings
    harness.now += 60
    harness.balancer.round()
    assert harness.gateway.full_readings == full_readings and harness.gateway.sent == []
    harness.gateway.cluster.pg_status = {"misplaced_objects": 5, "misplaced_total": 120}
    harness.now += 60
    harness.balancer.round()
    assert harness.gateway.full_readings > full_readings and harness.gateway.sent == ["1.0", "1.1"]

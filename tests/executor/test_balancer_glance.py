"""A summary instead of a full look where nothing can have changed."""
from __future__ import annotations

from fakes import Desk
from rounds import at_rest, kept, uneven


def test_nothing_is_read_while_nothing_happens() -> None:
    desk = at_rest(uneven())
    looks = desk.gateway.looks
    for _ in range(120):
        desk.now += 60
        desk.balancer.round()
    assert desk.balancer.state == "balanced" and desk.gateway.looks == looks


def test_glance_waits_for_budget_to_become_free() -> None:
    desk = Desk(uneven())
    desk.gateway.ratio = 0.25
    desk.gateway.cluster.pg_status = {"misplaced_objects": 30, "misplaced_total": 120}
    desk.balancer.execute("p", kept(desk))
    assert desk.round() == "throttled"
    looks = desk.gateway.looks
    desk.now += 60
    desk.balancer.round()
    assert desk.gateway.looks == looks and desk.gateway.sent == []
    desk.gateway.cluster.pg_status = {"misplaced_objects": 5, "misplaced_total": 120}
    desk.now += 60
    desk.balancer.round()
    assert desk.gateway.looks > looks and desk.gateway.sent == ["1.0", "1.1"]

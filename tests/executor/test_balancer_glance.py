"""A glance instead of a look where nothing can have changed."""
from __future__ import annotations

from fakes import Desk
from rounds import kept, uneven


def test_glance_spares_the_full_look_while_nothing_happens() -> None:
    desk = Desk(uneven())
    desk.round()
    looks = desk.gateway.looks
    desk.now += 60
    desk.balancer.round()
    assert desk.gateway.looks == looks
    desk.gateway.cluster.epoch += 1
    desk.balancer.round()
    assert desk.gateway.looks == looks + 1


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
    desk.balancer.round()
    assert desk.gateway.looks > looks and desk.gateway.sent == ["1.0", "1.1"]

"""The list of drains is changed in the middle of something: what is known of it, and sent."""
from __future__ import annotations

from typing import Any, List

import pytest

from equilibrium_mgr.snapshot import reason_codes as codes
from tests.support.fakes import Harness
from tests.support.few import few
from tests.support.rounds import kept, small_plan, uneven

from .test_rounds import DRAIN, at, drained, run


@pytest.mark.parametrize("moment", ["look", "store", "decided"])
def test_nothing_of_a_named_plan_goes_to_an_osd_once_drain_add_has_answered(moment: str) -> None:
    """The plan goes on with what does not lead there."""
    harness = Harness(uneven())
    first, second = small_plan(4, target=1), small_plan(4, target=2)
    changes = (*first.changes[:2], *second.changes[2:])
    plan = kept(harness, plan=first._replace(changes=changes))

    def add() -> None:
        if not harness.drains.drains.names:
            harness.drain({1: "osd.1"})
    at(harness, moment, add)
    harness.balancer.execute("p", plan)
    run(harness)
    assert harness.drains.drains.osds == {1}
    assert sorted(harness.sent) == ["1.2", "1.3"]
    assert not any(1 in up for up in harness.cluster.up.values())


def test_a_drain_that_begins_during_the_look_of_a_command_is_taken_up_at_once() -> None:
    """Not with the next look that is due, ten minutes later."""
    harness = run(drained())

    def add() -> None:
        if len(harness.drains.drains.names) == 1:
            harness.drain({1: "osd.1"})
    harness.gateway.before_snapshot = add
    harness.now += 60
    harness.balancer.request_observation()
    harness.balancer.round()   # nothing else makes it look
    assert harness.drains.drains.osds == {0, 1}
    harness.gateway.before_snapshot = lambda: None
    looks = harness.looks
    harness.now += 1
    harness.balancer.round()
    assert harness.looks > looks


@pytest.mark.parametrize("limits", few([
    {"pool_ids": "2"}, {"device_classes": "tape"}, {"from_buckets": "osd.1"}], 1))
def test_limits_of_balancing_do_not_name_themselves_for_a_stuck_drain(limits: Any) -> None:
    """They do not bind drains, so that the true reason stays, and is tried again."""
    cluster = uneven()
    cluster.pool(2, size=1).pg("2.0", "1")
    harness = Harness(cluster, active=True, fill_limit=0.01, max_upmap_items=0.0, **limits)
    harness.drain(DRAIN)
    made: List[int] = []
    plan = harness.planning.planner

    def counted(*given: Any, **named: Any) -> Any:
        made.append(1)
        return plan(*given, **named)
    harness.planning.planner = counted
    run(harness, 20)
    stuck = {one.code for one in harness.drains.stuck}
    assert stuck == {codes.FILL_LIMIT}, stuck
    assert len(made) <= 4   # in twenty minutes
    cluster.sizes = {osd: 100 * size for osd, size in cluster.sizes.items()}   # disks have grown
    harness.now += 6 * 3600.0
    run(harness, 12)
    assert not any(0 in up for up in harness.cluster.up.values())


def test_a_drain_whose_osd_is_destroyed_was_not_switched_off() -> None:
    """Automatic balancing has never been on: the list is empty, and the episode says so."""
    harness = Harness(uneven(), max_upmap_items=0.0, max_moves_per_round=1)
    harness.drain(DRAIN)
    run(harness, 2)
    assert harness.sent
    harness.cluster.osd(0, up=0, state=["exists", "destroyed"])
    run(harness, 3)
    assert not harness.drains.drains.names
    assert harness.history[-1]["outcome"] == "dropped: the drained OSDs are gone or have a new disk"

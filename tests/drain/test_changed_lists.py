"""The list of drains is changed in the middle of something: what is known of it, and sent."""
from __future__ import annotations

from typing import Any

import pytest
from tests.support.fakes import Harness
from tests.support.loop_driver import Loop
from tests.support.rounds import kept, small_plan, successor, uneven

from equilibrium_mgr.drain.drain_list import DrainList
from equilibrium_mgr.drain.status import DrainStatus, Remaining, StopCheck
from equilibrium_mgr.plan.model import StuckShards
from equilibrium_mgr.snapshot import reason_codes as codes

from .test_rounds import DRAIN, drained, outcomes, run

STUCK = StuckShards(0, codes.FILL_LIMIT, 12, 60, "1.0")


@pytest.mark.parametrize("moment", ["look", "store", "decided"])
def test_nothing_of_a_named_plan_goes_to_an_osd_once_drain_add_has_answered(moment: str) -> None:
    """The plan goes on with what does not lead there."""
    harness = Harness(uneven())
    kept(harness, plan=small_plan(4)._replace(changes=(
        *small_plan(4, target=1).changes[:2], *small_plan(4, target=2).changes[2:])))

    def add(*_: Any) -> None:
        if not harness.balancer.drains.status.drains.names:
            harness.balancer.change_drains(lambda drains: drains.with_osds({1: "osd.1"}))
    if moment == "store":
        harness.kv.before_write = lambda key: add() if key == "changes/1" else None
    elif moment == "decided":
        harness.gateway.before_placement_check = add
    else:
        harness.gateway.before_send_check = add
    harness.balancer.execute("p", harness.plan_store.get("p"))
    run(harness)
    assert harness.balancer.drains.status.drains.osds == frozenset((1,))
    assert sorted(harness.gateway.sent) == ["1.2", "1.3"]
    assert not any(1 in up for up in harness.gateway.cluster.up.values())


def test_what_could_not_leave_once_is_not_said_of_a_new_drain() -> None:
    harness = drained(to_buckets="osd.0")
    run(harness)
    assert sum(one.shards for one in harness.balancer.drains.status.stuck) == 12
    harness.balancer.change_drains(lambda drains: drains.without(frozenset((0,))))
    run(harness, 1)
    harness.options["to_buckets"] = None
    harness.balancer.change_drains(lambda drains: drains.with_osds(DRAIN))
    harness.round(60)   # the plan is in the making
    assert harness.balancer.drains.status.stuck == ()
    assert harness.balancer.drains.status.has_work
    run(harness)
    assert not any(0 in up for up in harness.gateway.cluster.up.values())


def test_an_empty_osd_that_is_listed_anew_is_asked_about_at_once() -> None:
    harness = run(drained())
    for _ in range(2):
        harness.balancer.change_drains(lambda drains: drains.without(frozenset((0,))))
        harness.balancer.change_drains(lambda drains: drains.with_osds(DRAIN))
        harness.round(1)
        assert harness.balancer.drains.status.stop_check == StopCheck(True, "")
    harness.balancer.change_drains(lambda drains: drains.with_osds({1: "osd.1"}))
    harness.balancer.change_drains(lambda drains: drains.without(frozenset((1,))))
    harness.round(1)
    assert harness.balancer.drains.status.is_safe(0) is True


def test_a_drain_that_begins_during_the_look_of_a_command_is_taken_up_at_once() -> None:
    """Not with the next look that is due, ten minutes later."""
    harness = run(drained())

    def add() -> None:
        if len(harness.balancer.drains.status.drains.names) == 1:
            harness.balancer.change_drains(lambda drains: drains.with_osds({1: "osd.1"}))
    harness.gateway.before_snapshot = add
    harness.now += 60
    harness.balancer.request_observation()
    harness.balancer.round()   # nothing else makes it look
    assert harness.balancer.drains.status.drains.osds == frozenset((0, 1))
    harness.gateway.before_snapshot = lambda: None
    looks = harness.gateway.full_readings
    harness.now += 1
    harness.balancer.round()
    assert harness.gateway.full_readings > looks


@pytest.mark.parametrize("active", [False, True], ids=["drain", "balancing"])
def test_balancing_that_an_option_ends_is_not_ended_by_an_earlier_drain_rm(active: bool) -> None:
    """Whether that drain was carried out by itself, or by automatic balancing."""
    harness = drained(active=active, max_misplaced_ratio=0.1)
    run(harness, 3)
    harness.balancer.change_drains(lambda drains: drains.without(frozenset((0,))))
    run(harness, 2)
    harness.options["active"] = True   # as `ceph config set` does
    run(harness, 4)
    assert harness.balancer.status.episode is not None
    harness.options["active"] = False
    run(harness, 2)
    assert outcomes(harness)[-1] == "stopped: automatic balancing was switched off"


def test_one_of_two_drains_that_ends_is_not_the_end_of_the_other() -> None:
    harness = drained(max_misplaced_ratio=0.1)
    harness.balancer.change_drains(lambda drains: drains.with_osds({1: "osd.1"}))
    run(harness, 3)
    harness.balancer.change_drains(lambda drains: drains.without(frozenset((1,))))
    harness.balancer.drains.replace(lambda drains: drains.paused(True))
    run(harness, 2)
    assert outcomes(harness)[-1] == "stopped: automatic balancing was switched off"


def test_what_one_osd_cannot_lose_does_not_hide_the_work_on_another() -> None:
    drains = DrainList().with_osds({0: "osd.0", 1: "osd.1"})
    left = {0: Remaining(3, 3), 1: Remaining(5, 5)}
    assert DrainStatus(drains, left, (STUCK,)).has_work
    assert DrainStatus(drains, left, (STUCK,), down=frozenset((0,))).has_work
    assert not DrainStatus(drains, {**left, 1: Remaining(5, 5, 5)}, (STUCK,)).has_work


def test_a_successor_knows_its_drains_before_its_first_round() -> None:
    harness = run(drained(max_misplaced_ratio=0.1), 3)
    again = successor(harness)
    assert again.balancer.drain_status().drains.osds == frozenset((0,))


def test_each_shard_leaves_when_its_own_pg_cooldown_is_over() -> None:
    """Not when the last of them is."""
    harness = drained(pg_cooldown=7200)
    cooldown = harness.balancer.dispatcher.cooldown
    cooldown.start(["1.0"], harness.now - 6000)
    cooldown.start(["1.1"], harness.now - 3000)
    cooldown.start(["1.2"], harness.now)
    sent = {}
    for minute in range(150):
        run(harness, 1)
        sent.update({pgid: sent.get(pgid, minute) for pgid in harness.gateway.sent})
    assert len(sent) == 12 and outcomes(harness) == ["completed: osd.0 is empty"]
    assert [sent[pgid] <= minutes + 12 for pgid, minutes in (
        ("1.0", 20), ("1.1", 70), ("1.2", 120))] == [True] * 3, sent


def test_what_comes_back_while_others_wait_for_pg_cooldown_leaves_again() -> None:
    harness = run(drained(pg_cooldown=72000, sleep_interval=60), 3)
    loop = Loop(harness)
    harness.balancer.dispatcher.cooldown.start(["1.0"], harness.now)
    harness.balancer.dispatcher.cooldown.moved = {"1.0": harness.now}
    for pgid in ("1.0", "1.1"):
        harness.gateway.set_items(pgid, [0], [])
    harness.gateway.arrive()

    def go_on(_: int) -> None:
        harness.jobs.run()
        harness.gateway.arrive()
    loop.run(1800.0, go_on)
    assert 0 in harness.gateway.cluster.up["1.0"] and harness.balancer.state == "waiting"
    assert 0 not in harness.gateway.cluster.up["1.1"]
    harness.gateway.set_items("1.2", [0], [])
    harness.gateway.arrive()
    loop.run(1800.0, go_on)
    assert 0 not in harness.gateway.cluster.up["1.2"]


@pytest.mark.parametrize("limits", [
    {"pool_ids": "2"}, {"device_classes": "tape"}, {"from_buckets": "osd.1"}])
def test_limits_of_balancing_do_not_name_themselves_for_a_stuck_drain(limits: Any) -> None:
    """They do not bind drains, so that the true reason stays, and is tried again."""
    cluster = uneven()
    cluster.pool(2, size=1).pg("2.0", [1])
    harness = Harness(cluster, active=True, fill_limit=0.01, max_upmap_items=0.0, **limits)
    harness.balancer.change_drains(lambda drains: drains.with_osds(DRAIN))
    made = []
    plan = harness.planning.planner
    harness.planning.planner = lambda *given, **named: made.append(1) or plan(*given, **named)
    run(harness, 20)
    stuck = {one.code for one in harness.balancer.drains.status.stuck}
    assert stuck == {codes.FILL_LIMIT}, stuck
    assert len(made) <= 4   # in twenty minutes
    cluster.sizes = {osd: 100 * size for osd, size in cluster.sizes.items()}   # disks have grown
    harness.now += 6 * 3600.0
    run(harness, 12)
    assert not any(0 in up for up in harness.gateway.cluster.up.values())

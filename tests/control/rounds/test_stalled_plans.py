"""No plan is kept open for ever by what waits for ever, nor blind to what happens meanwhile."""
from __future__ import annotations

from typing import Any, List

import pytest

from equilibrium_mgr.plan.model import Plan
from equilibrium_mgr.planner.planner import make_plan
from tests.support.fakes import Harness
from tests.support.rounds import executing, small_plan, uneven

SCRUBBED = "active+clean+scrubbing+deep"


def scrubbed(harness: Harness, pgid: str) -> None:
    harness.report(pgid, state=SCRUBBED)


def one_waits(**options: Any) -> Harness:
    """An automatic plan of which all has gone but for one PG in a scrub that never ends."""
    harness = Harness(uneven(), active=True, **options)
    plans: List[Plan] = []

    def planner(*arguments: Any) -> Plan:
        plans.append(make_plan(*arguments))
        return plans[-1]
    harness.planning.planner = planner
    harness.plan()
    scrubbed(harness, plans[0].changes[-1].pgid)
    harness.round(60)
    harness.arrive()
    scrubbed(harness, plans[0].changes[-1].pgid)
    return harness


def test_time_in_which_everything_is_stopped_does_not_count() -> None:
    harness = one_waits()
    harness.round(60)
    harness.cluster.extra["flags"] = "norebalance"
    harness.rounds(5, 3600)
    harness.cluster.extra["flags"] = ""
    harness.round(60)
    assert harness.execution is not None
    assert harness.execution.remaining_moves


def test_a_clock_that_jumps_ahead_gives_nothing_up() -> None:
    harness = one_waits(max_wait=3600)
    harness.round(60)
    harness.round(8 * 3600)     # ntp found the hour
    assert harness.execution is not None
    assert harness.execution.remaining_moves


@pytest.mark.parametrize("arrives, gives_up", [(True, False), (False, True)])
def test_what_the_throttle_holds_up_is_kept_behind_what_only_waits(arrives: bool,
                                                                   gives_up: bool) -> None:
    """The first PG is scrubbed for hours; meanwhile large PGs arrive that the others wait for."""
    harness = Harness(uneven())
    harness.gateway.ratio = 0.05
    executing(harness, small_plan(3))
    scrubbed(harness, "1.0")
    for look in range(100):
        harness.cluster.pg_status = {
            "misplaced_objects": 5000 - look * arrives, "misplaced_total": 10000}
        harness.round(600)
    assert (harness.execution is None) == gives_up
    assert not harness.sent


@pytest.mark.parametrize("is_named", [True, False])
def test_one_pg_that_never_arrives_keeps_nothing_else_from_being_balanced(is_named: bool) -> None:
    """Missing an object, or in backfill_toofull: all was sent, and one PG is never clean."""
    harness = Harness(uneven(pgs=24), active=True, max_misplaced_ratio=1.0, max_wait=3600)
    if is_named:
        executing(harness, small_plan(1))
        harness.round(60)
    else:
        harness.plan(60)
        harness.round(60)
    stuck = harness.sent[0]
    harness.arrive()
    cluster = harness.cluster
    cluster.acting[stuck] = [0]
    harness.report(stuck, state="active+backfill_toofull+remapped", reported_epoch=10 ** 6)
    cluster.pg_status = {"misplaced_objects": 10, "misplaced_total": 240}
    for _ in range(30):
        harness.plan(300)
    assert harness.execution is None or harness.execution.name == ""
    assert len(harness.sent) > 1   # the others are balanced
    assert harness.balancer.execute("q", small_plan(2))


def test_a_cooldown_longer_than_max_wait_gives_nothing_up() -> None:
    harness = Harness(uneven(), max_misplaced_ratio=1.0, pg_cooldown=86400, max_wait=3600)
    harness.round(60)
    harness.balancer.dispatcher.cooldown.start([f"1.{n:x}" for n in range(4)], harness.now)
    executing(harness)
    harness.rounds(200, 300)
    assert harness.execution is not None
    assert not harness.execution.dropped
    for _ in range(100):
        harness.round(300)
        harness.arrive()
    assert len(harness.sent) == 4


def test_a_plan_whose_last_pgs_have_no_whole_copy_up_has_not_waited_for_max_wait() -> None:
    """It ends at once: nothing of them can arrive."""
    harness = Harness(uneven(), max_misplaced_ratio=1.0, max_wait=3600)
    executing(harness, small_plan(1))
    harness.round(60)
    harness.arrive()
    harness.cluster.acting["1.0"] = [0]
    harness.report("1.0", state="down+remapped", reported_epoch=10 ** 6)
    harness.rounds(3, 60)
    assert harness.execution is None
    assert harness.history[-1]["outcome"].endswith("or no whole copy of them is up")

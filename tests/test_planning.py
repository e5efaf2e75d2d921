"""The planning desk: which plans are in the making, and what becomes of them."""
from __future__ import annotations

from typing import Any, List

from fakes import Desk
from random_clusters import random_cluster

from equilibrium_mgr import planning
from equilibrium_mgr.planner.options import PlanOptions
from equilibrium_mgr.planner.plan import Plan
from equilibrium_mgr.planner.planner import make_plan

OPTIONS = PlanOptions()


def open_desk() -> Desk:
    return Desk(random_cluster(1))


def test_named_plan_is_made_by_the_job_and_kept() -> None:
    desk = open_desk()
    assert desk.planning.submit_named("p", OPTIONS, 10.0)
    assert set(desk.planning.in_the_making()) == {"p"} and desk.shelf.heads() == {}
    assert desk.gateway.looks == 0                  # nobody who submits waits for a reading
    desk.jobs.run()
    assert desk.planning.in_the_making() == {}
    assert desk.shelf.get("p") == make_plan(random_cluster(1).snapshot())


def test_one_plan_of_a_name_at_a_time() -> None:
    desk = open_desk()
    assert desk.planning.submit_named("p", OPTIONS, 10.0)
    assert not desk.planning.submit_named("p", OPTIONS, 10.0)
    assert desk.planning.submit_named("q", OPTIONS, 10.0)
    assert desk.jobs.run() == 2
    assert desk.planning.submit_named("p", OPTIONS, 10.0)


def test_failure_is_remembered_until_the_next_attempt() -> None:
    desk = open_desk()
    desk.gateway.not_ready = "the mgr has no df yet"
    desk.planning.submit_named("p", OPTIONS, 10.0)
    desk.jobs.run()
    assert "no df yet" in str(desk.planning.failure("p"))
    assert desk.planning.in_the_making() == {} and desk.shelf.heads() == {}
    desk.gateway.not_ready = ""
    desk.planning.submit_named("p", OPTIONS, 10.0)
    assert desk.planning.failure("p") is None
    desk.jobs.run()
    assert set(desk.shelf.heads()) == {"p"} and desk.planning.failure("p") is None


def test_automatic_plan_is_handed_over_and_not_kept() -> None:
    desk = open_desk()
    handed: List[Plan] = []
    snapshot = desk.gateway.cluster.snapshot()
    assert desk.planning.submit_automatic(snapshot, OPTIONS, 10.0, handed.append)
    desk.jobs.run()
    assert handed == [make_plan(snapshot)]
    assert desk.shelf.heads() == {} and desk.gateway.looks == 0


def test_stopped_desk_keeps_nothing() -> None:
    desk = open_desk()
    desk.planning.submit_named("p", OPTIONS, 10.0)
    desk.planning.stop()
    desk.jobs.run()
    assert desk.shelf.heads() == {} and desk.planning.in_the_making() == {}


def test_time_limit_ends_the_plan_with_what_it_has() -> None:
    desk = open_desk()
    desk.planning.submit_named("p", OPTIONS, 0.0)
    desk.jobs.run()
    plan = desk.shelf.get("p")
    assert plan.moves == () and plan.stop_reason == "the time limit is reached"


def test_progress_tells_the_moves_so_far(mocker: Any) -> None:
    desk = open_desk()
    seen: List[int] = []

    def slow(snapshot: Any, options: Any, checkpoint: Any) -> Plan:
        assert checkpoint(0) and not clock.sleep.called       # not yet worth a pause
        for moves in (3, 8):
            now.append(now[-1] + 1.0)
            assert checkpoint(moves)
            seen.append(desk.planning.in_the_making()["p"].moves)
        return make_plan(snapshot, options)
    now = [50.0]
    clock = mocker.patch.object(planning, "time")
    clock.monotonic.side_effect = lambda: now[-1]
    mocker.patch.object(planning, "make_plan", side_effect=slow)
    desk.planning.submit_named("p", OPTIONS, 100.0)
    desk.jobs.run()
    assert seen == [3, 8] and clock.sleep.call_count == 2     # others get the interpreter

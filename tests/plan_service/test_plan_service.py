"""The planning harness: plans in the making, and what becomes of them."""
from __future__ import annotations

from typing import List

from tests.plan_service.kept_plans import plan_as_kept
from tests.support.clusters.random_clusters import random_cluster
from tests.support.fakes import Harness

from equilibrium_mgr.plan.model import Plan
from equilibrium_mgr.plan.options import PlanOptions

OPTIONS = PlanOptions()


def open_harness() -> Harness:
    return Harness(random_cluster(1))


def test_named_plan_is_made_by_the_job_and_kept() -> None:
    harness = open_harness()
    assert harness.planning.submit_named("p", OPTIONS, 10.0)
    assert set(harness.planning.plans_in_progress()) == {"p"} and harness.plan_store.heads() == {}
    assert harness.gateway.full_readings == 0    # nobody who submits waits for a reading
    harness.jobs.run()
    assert harness.planning.plans_in_progress() == {}
    assert harness.plan_store.get("p") == plan_as_kept(random_cluster(1).snapshot())


def test_failure_is_remembered_until_the_next_attempt() -> None:
    harness = open_harness()
    harness.gateway.not_ready = "the mgr has no df yet"
    harness.planning.submit_named("p", OPTIONS, 10.0)
    harness.jobs.run()
    assert "no df yet" in str(harness.planning.last_failure("p"))
    assert harness.planning.plans_in_progress() == {} and harness.plan_store.heads() == {}
    harness.gateway.not_ready = ""
    harness.planning.submit_named("p", OPTIONS, 10.0)
    assert harness.planning.last_failure("p") is None
    harness.jobs.run()
    assert set(harness.plan_store.heads()) == {"p"} and harness.planning.last_failure("p") is None


def test_automatic_plan_is_handed_over_and_not_kept() -> None:
    harness = open_harness()
    handed: List[Plan] = []
    snapshot = harness.gateway.cluster.snapshot()
    assert harness.planning.submit_automatic(snapshot, OPTIONS, 10.0,
                                             lambda plan: handed.append(plan))
    harness.jobs.run()
    assert handed == [plan_as_kept(snapshot)]
    assert harness.plan_store.heads() == {} and harness.gateway.full_readings == 0


def test_a_plan_waits_until_remapped_pgs_show_whether_they_move() -> None:
    harness = open_harness()
    harness.gateway.unsettled = [20.0, 3.0]
    harness.planning.submit_named("p", OPTIONS, 10.0)
    harness.jobs.run()
    assert harness.jobs.waited == [21.0, 4.0] and harness.gateway.full_readings == 3
    assert set(harness.plan_store.heads()) == {"p"}


def test_a_plan_that_waits_makes_do_with_what_it_has_when_the_mgr_is_not_ready() -> None:
    harness = open_harness()
    harness.gateway.unsettled = [20.0]

    def wait(seconds: float) -> bool:
        harness.gateway.not_ready = "a pool is being created"
        return True
    harness.jobs.wait = wait  # type: ignore[method-assign]
    harness.planning.submit_named("p", OPTIONS, 10.0)
    harness.jobs.run()
    assert set(harness.plan_store.heads()) == {"p"} and harness.planning.last_failure("p") is None


def test_time_limit_ends_the_plan_with_what_it_has() -> None:
    harness = open_harness()
    harness.planning.submit_named("p", OPTIONS, 0.0)
    harness.jobs.run()
    plan = harness.plan_store.get("p")
    assert plan.moves == () and plan.stop_reason == "the time limit is reached"


def test_a_plan_does_not_wait_for_ever_for_a_map_that_never_rests() -> None:
    harness = open_harness()
    harness.gateway.unsettled = [20.0] * 99
    harness.planning.submit_named("p", OPTIONS, 10.0)
    harness.jobs.run()
    assert len(harness.jobs.waited) == 3 and set(harness.plan_store.heads()) == {"p"}

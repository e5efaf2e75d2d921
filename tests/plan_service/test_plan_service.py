"""The planning harness: plans in the making, and what becomes of them."""
from __future__ import annotations

from typing import List, Set

import pytest
from tests.plan_service.kept_plans import plan_as_kept
from tests.support.clusters.random_clusters import random_cluster
from tests.support.fakes import Harness

from equilibrium_mgr.plan.model import Plan
from equilibrium_mgr.plan.options import PlanOptions

OPTIONS = PlanOptions()


@pytest.fixture
def harness() -> Harness:
    return Harness(random_cluster(1))


def kept(harness: Harness, seconds: float = 10.0) -> Set[str]:
    """The plans that are kept once a plan p was asked for and made."""
    harness.planning.submit_named("p", OPTIONS, seconds)
    harness.jobs.run()
    assert harness.planning.plans_in_progress() == {}
    return set(harness.plan_store.heads())


def test_named_plan_is_made_by_the_job_and_kept(harness: Harness) -> None:
    assert harness.planning.submit_named("p", OPTIONS, 10.0)
    assert set(harness.planning.plans_in_progress()) == {"p"} and harness.plan_store.heads() == {}
    assert harness.gateway.full_readings == 0    # nobody who submits waits for a reading
    assert kept(harness) == {"p"}
    assert harness.plan_store.get("p") == plan_as_kept(random_cluster(1).snapshot())


def test_failure_is_remembered_until_the_next_attempt(harness: Harness) -> None:
    harness.gateway.not_ready = "the mgr has no df yet"
    assert kept(harness) == set()
    assert "no df yet" in str(harness.planning.last_failure("p"))
    harness.gateway.not_ready = ""
    harness.planning.submit_named("p", OPTIONS, 10.0)
    assert harness.planning.last_failure("p") is None
    assert kept(harness) == {"p"} and harness.planning.last_failure("p") is None


def test_automatic_plan_is_handed_over_and_not_kept(harness: Harness) -> None:
    handed: List[Plan] = []
    snapshot = harness.gateway.cluster.snapshot()
    assert harness.planning.submit_automatic(snapshot, OPTIONS, 10.0, handed.append)
    harness.jobs.run()
    assert handed == [plan_as_kept(snapshot)]
    assert harness.plan_store.heads() == {} and harness.gateway.full_readings == 0


@pytest.mark.parametrize("unsettled, waited", [
    ([20.0, 3.0], [21.0, 4.0]),
    ([20.0] * 99, [21.0, 21.0, 21.0])])   # a map that never rests
def test_a_plan_waits_until_remapped_pgs_show_whether_they_move(
        harness: Harness, unsettled: List[float], waited: List[float]) -> None:
    harness.gateway.unsettled = unsettled
    assert kept(harness) == {"p"} and harness.jobs.waited == waited
    assert harness.gateway.full_readings == 1 + len(waited)


def test_a_plan_that_waits_makes_do_with_what_it_has_when_the_mgr_is_not_ready(
        harness: Harness) -> None:
    harness.gateway.unsettled = [20.0]

    def wait(seconds: float) -> bool:
        harness.gateway.not_ready = "a pool is being created"
        return True
    harness.jobs.wait = wait  # type: ignore[method-assign]
    assert kept(harness) == {"p"} and harness.planning.last_failure("p") is None


def test_time_limit_ends_the_plan_with_what_it_has(harness: Harness) -> None:
    assert kept(harness, seconds=0.0) == {"p"}
    plan = harness.plan_store.get("p")
    assert plan.moves == () and plan.stop_reason == "the time limit is reached"

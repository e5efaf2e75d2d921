"""The planning harness: plans in the making, what becomes of them, and comparisons of aims."""
from __future__ import annotations

from typing import Any, Dict, List, Optional

from tests.plan_service.kept_plans import plan_as_kept
from tests.support.clusters.random_clusters import random_cluster
from tests.support.fakes import Harness, KeyValueStore

from equilibrium_mgr.plan.model import Plan
from equilibrium_mgr.plan.options import PlanOptions
from equilibrium_mgr.plan_service.plan_service import AimComparison
from equilibrium_mgr.planner.planner import make_plan

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


# -- comparisons ---------------------------------------------------------------------------------

LIMITED = PlanOptions(pool_ids=frozenset((1, 2)), max_moves=6, fill_limit=0.8, aim="even")
PRESENT = PlanOptions(device_classes=frozenset(("ssd",)))


class Planner:
    """Stands in for make_plan: notes the options of every plan; some aims fail."""

    def __init__(self, harness: Harness, *failing: str) -> None:
        self.asked: List[PlanOptions] = []
        self.failing = failing
        harness.planning.planner = self

    def __call__(self, snapshot: Any, options: PlanOptions) -> Plan:
        self.asked.append(options)
        if options.aim in self.failing:
            raise RuntimeError("no plan\nfor you")
        return make_plan(snapshot, options)


def harness_with_plan(name: str = "p", options: PlanOptions = LIMITED) -> Harness:
    harness = open_harness()
    add_plan(harness, name, options)
    return harness


def add_plan(harness: Harness, name: str, options: PlanOptions = LIMITED) -> None:
    assert harness.planning.submit_named(name, options, 10.0)
    harness.jobs.run()


def compare(harness: Harness, name: str = "p", seconds: float = 10.0) -> AimComparison:
    comparison = harness.planning.compare(name, PRESENT, seconds)
    assert comparison is not None
    return comparison


def states(comparison: Optional[AimComparison]) -> Dict[str, str]:
    assert comparison is not None
    return {aim: figures.state for aim, figures in comparison.aims.items()}


def test_other_aims_are_planned_by_jobs_and_not_by_who_asks(mocker: Any) -> None:
    harness = harness_with_plan()
    planner = Planner(harness)
    for _ in range(3):
        assert states(compare(harness)) == {"space": "planning", "least-motion": "planning"}
    assert planner.asked == [] and len(harness.jobs.waiting) == 2
    harness.jobs.run()
    for _ in range(3):
        assert states(compare(harness)) == {"space": "ready", "least-motion": "ready"}
    assert len(planner.asked) == 2 and harness.jobs.waiting == []


def test_comparison_has_the_limits_that_the_plan_had(mocker: Any) -> None:
    harness = harness_with_plan()
    planner = Planner(harness)
    assert compare(harness).options_known
    harness.jobs.run()
    assert planner.asked == [LIMITED._replace(aim="space"), LIMITED._replace(aim="least-motion")]


def test_after_a_failover_the_present_settings_are_taken(mocker: Any) -> None:
    first = harness_with_plan()
    harness = Harness(random_cluster(1), kv=KeyValueStore(first.kv.values))
    planner = Planner(harness)
    assert not compare(harness).options_known
    harness.jobs.run()
    assert planner.asked == [PRESENT._replace(aim="space"), PRESENT._replace(aim="least-motion")]
    assert states(compare(harness)) == {"space": "ready", "least-motion": "ready"}


def test_failure_is_told_once_and_tried_again(mocker: Any) -> None:
    harness = harness_with_plan()
    planner = Planner(harness, "least-motion")
    compare(harness)
    harness.jobs.run()
    told = compare(harness)
    assert states(told) == {"space": "ready", "least-motion": "failed"}
    assert "RuntimeError" in str(told.aims["least-motion"].failure)
    assert harness.planning.last_failure("p") is None
    planner.failing = ()
    assert states(compare(harness)) == {"space": "ready", "least-motion": "planning"}
    harness.jobs.run()
    assert states(compare(harness)) == {"space": "ready", "least-motion": "ready"}


def test_new_plan_of_a_name_is_compared_anew(mocker: Any) -> None:
    harness = harness_with_plan()
    compare(harness)
    harness.jobs.run()
    add_plan(harness, "p", OPTIONS)
    planner = Planner(harness)
    assert states(compare(harness)) == {"even": "planning", "least-motion": "planning"}
    harness.jobs.run()
    assert planner.asked == [OPTIONS._replace(aim="even"), OPTIONS._replace(aim="least-motion")]


def test_a_plan_that_is_gone_is_not_compared_any_more(mocker: Any) -> None:
    harness = harness_with_plan()
    planner = Planner(harness)
    compare(harness)
    harness.plan_store.remove("p")
    harness.jobs.run()
    assert planner.asked == [] and harness.planning.compare("p", PRESENT, 10.0) is None


def test_a_plan_does_not_wait_for_ever_for_a_map_that_never_rests() -> None:
    harness = open_harness()
    harness.gateway.unsettled = [20.0] * 99
    harness.planning.submit_named("p", OPTIONS, 10.0)
    harness.jobs.run()
    assert len(harness.jobs.waited) == 3 and set(harness.plan_store.heads()) == {"p"}

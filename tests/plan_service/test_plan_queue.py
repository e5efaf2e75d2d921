"""Plans in the making: how many, in what order, and how one is cancelled."""
from __future__ import annotations

import threading
from typing import Any, List

import pytest
from tests.support.clusters.random_clusters import random_cluster
from tests.support.fakes import Harness

from equilibrium_mgr.plan.options import PlanOptions
from equilibrium_mgr.planner.planner import make_plan
from equilibrium_mgr.runtime.time_slice import give_way

OPTIONS = PlanOptions()


class Planner:
    """Plans in the place of make_plan and remembers for whom: max_moves tells the plans apart."""

    def __init__(self, harness: Harness) -> None:
        self.made: List[Any] = []
        self.during: Any = lambda: None
        harness.planning.planner = self

    def __call__(self, snapshot: Any, options: PlanOptions) -> Any:
        self.made.append(options.max_moves)
        self.during()
        return make_plan(snapshot, options)


def numbered(number: int) -> PlanOptions:
    return OPTIONS._replace(max_moves=number)


def test_a_plan_that_waits_is_cancelled_at_once(mocker: Any) -> None:
    harness = Harness(random_cluster(1))
    planner = Planner(harness)
    harness.planning.submit_named("p", numbered(1), 10.0)
    harness.planning.submit_named("q", numbered(2), 10.0)
    assert harness.planning.cancel("p") and set(harness.planning.plans_in_progress()) == {"q"}
    assert not harness.planning.cancel("p")
    harness.jobs.run()
    assert planner.made == [2] and set(harness.plan_store.heads()) == {"q"}
    assert harness.planning.last_failure("p") is None


@pytest.mark.parametrize("again", [False, True])
def test_a_plan_that_is_made_is_cancelled_where_it_next_gives_way(mocker: Any, again: bool) -> None:
    harness = Harness(random_cluster(1))
    planner = Planner(harness)
    went_on: List[bool] = []

    def cancel() -> None:
        planner.during = lambda: None
        assert harness.planning.cancel("p")
        assert harness.planning.plans_in_progress() == {}
        if again:
            assert harness.planning.submit_named("p", numbered(2), 10.0)
        threading.Event().wait(0.01)    # past the next turn of others
        went_on.append(give_way(5))
    planner.during = cancel
    harness.planning.submit_named("p", numbered(1), 10.0)
    harness.jobs.run()
    assert went_on == [False]
    assert planner.made == ([1, 2] if again else [1])
    assert set(harness.plan_store.heads()) == ({"p"} if again else set())
    assert harness.planning.plans_in_progress() == {} and harness.planning.last_failure("p") is None


def test_a_plan_cancelled_while_it_is_written_does_not_stay(mocker: Any) -> None:
    harness = Harness(random_cluster(1))
    Planner(harness)

    def cancel(_key: str) -> None:
        harness.planning.cancel("p")
    harness.kv.before_write = cancel
    harness.planning.submit_named("p", numbered(1), 10.0)
    harness.jobs.run()
    assert harness.plan_store.heads() == {}


def test_an_automatic_plan_is_made_before_named_ones_that_wait(mocker: Any) -> None:
    harness = Harness(random_cluster(1))
    planner = Planner(harness)
    for number in range(1, 4):
        harness.planning.submit_named(f"p{number}", numbered(number), 10.0)
    harness.planning.submit_automatic(random_cluster(1).snapshot(), numbered(99), 10.0,
                                      lambda plan: None)
    harness.jobs.run()
    assert planner.made == [99, 1, 2, 3]

"""Plans in the making: how many, in what order, and how one is cancelled."""
from __future__ import annotations

import threading
from typing import Any, List

import pytest
from fakes import Desk
from random_clusters import random_cluster

from equilibrium_mgr import planning
from equilibrium_mgr.planner.options import PlanOptions
from equilibrium_mgr.planner.planner import make_plan

OPTIONS = PlanOptions()


class Planner:
    """Plans in the place of make_plan and remembers for whom: max_moves tells the plans apart."""

    def __init__(self, mocker: Any) -> None:
        self.made: List[Any] = []
        self.during: Any = lambda checkpoint: None
        mocker.patch.object(planning, "make_plan", self)

    def __call__(self, snapshot: Any, options: PlanOptions, checkpoint: Any) -> Any:
        self.made.append(options.max_moves)
        self.during(checkpoint)
        return make_plan(snapshot, options, checkpoint)


def numbered(number: int) -> PlanOptions:
    return OPTIONS._replace(max_moves=number)


def test_an_automatic_plan_waits_for_one_named_plan_at_most(mocker: Any) -> None:
    desk, planner = Desk(random_cluster(1)), Planner(mocker)
    for number in range(1, 6):
        desk.planning.submit_named("p%d" % number, numbered(number), 10.0)
    desk.planning.submit_automatic(random_cluster(1).snapshot(), numbered(99), 10.0,
                                   lambda plan: None)
    desk.jobs.run()
    assert planner.made == [99, 1, 2, 3, 4, 5]


def test_named_and_automatic_plans_alternate(mocker: Any) -> None:
    desk, planner = Desk(random_cluster(1)), Planner(mocker)
    snapshot = random_cluster(1).snapshot()
    desk.planning.submit_automatic(snapshot, numbered(99), 10.0, lambda plan: None)
    desk.planning.submit_named("p", numbered(1), 10.0)
    desk.planning.submit_named("q", numbered(2), 10.0)
    desk.jobs.waiting.pop(0)[1]()
    assert planner.made == [99]
    desk.planning.submit_automatic(snapshot, numbered(99), 10.0, lambda plan: None)
    desk.jobs.run()
    assert planner.made == [99, 1, 99, 2]


def test_a_plan_that_waits_is_cancelled_at_once(mocker: Any) -> None:
    desk, planner = Desk(random_cluster(1)), Planner(mocker)
    desk.planning.submit_named("p", numbered(1), 10.0)
    desk.planning.submit_named("q", numbered(2), 10.0)
    assert desk.planning.cancel("p") and set(desk.planning.in_the_making()) == {"q"}
    assert not desk.planning.cancel("p")
    desk.jobs.run()
    assert planner.made == [2] and set(desk.shelf.heads()) == {"q"}
    assert desk.planning.failure("p") is None


@pytest.mark.parametrize("again", [False, True])
def test_a_plan_that_is_made_is_cancelled_at_its_next_checkpoint(mocker: Any, again: bool) -> None:
    desk, planner = Desk(random_cluster(1)), Planner(mocker)
    went_on: List[bool] = []

    def cancel(checkpoint: Any) -> None:
        planner.during = lambda checkpoint: None
        assert desk.planning.cancel("p")
        assert desk.planning.in_the_making() == {}
        if again:
            assert desk.planning.submit_named("p", numbered(2), 10.0)
        threading.Event().wait(0.01)    # past the next turn of others
        went_on.append(checkpoint(5))
    planner.during = cancel
    desk.planning.submit_named("p", numbered(1), 10.0)
    desk.jobs.run()
    assert went_on == [False]
    assert planner.made == ([1, 2] if again else [1])
    assert set(desk.shelf.heads()) == ({"p"} if again else set())
    assert desk.planning.in_the_making() == {} and desk.planning.failure("p") is None


def test_a_plan_cancelled_while_it_is_written_does_not_stay(mocker: Any) -> None:
    desk = Desk(random_cluster(1))
    Planner(mocker)
    desk.kv.before_write = lambda key: desk.planning.cancel("p") and None
    desk.planning.submit_named("p", numbered(1), 10.0)
    desk.jobs.run()
    assert desk.shelf.heads() == {}


def test_failures_are_not_kept_for_ever(mocker: Any) -> None:
    desk = Desk(random_cluster(1))
    mocker.patch.object(planning, "make_plan", side_effect=KeyError("osd.7"))
    for number in range(150):
        desk.planning.submit_named("p%d" % number, OPTIONS, 10.0)
        desk.jobs.run()
    failed = [number for number in range(150) if desk.planning.failure("p%d" % number)]
    assert 10 <= len(failed) <= 100 and failed[-1] == 149

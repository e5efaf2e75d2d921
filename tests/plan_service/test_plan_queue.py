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


class Queue(Harness):
    """Remembers for whom it has planned: max_moves tells the plans apart."""

    def __init__(self) -> None:
        super().__init__(random_cluster(1))
        self.made: List[Any] = []
        self.during: Any = lambda: None
        self.planning.planner = self._plan

    def _plan(self, snapshot: Any, options: PlanOptions) -> Any:
        self.made.append(options.max_moves)
        self.during()
        return make_plan(snapshot, options)

    def submit(self, name: str, number: int) -> None:
        assert self.planning.submit_named(name, PlanOptions(max_moves=number), 10.0)

    def assert_ended(self, made: List[int], *kept: str) -> None:
        self.jobs.run()
        assert self.made == made and set(self.plan_store.heads()) == set(kept)
        assert self.planning.plans_in_progress() == {}
        assert self.planning.last_failure("p") is None


def test_a_plan_that_waits_is_cancelled_at_once() -> None:
    queue = Queue()
    queue.submit("p", 1)
    queue.submit("q", 2)
    assert queue.planning.cancel("p") and set(queue.planning.plans_in_progress()) == {"q"}
    assert not queue.planning.cancel("p")
    queue.assert_ended([2], "q")


@pytest.mark.parametrize("again, kept", [(2, ["p"]), (0, [])])
def test_a_plan_that_is_made_is_cancelled_where_it_next_gives_way(again: int,
                                                                  kept: List[str]) -> None:
    queue = Queue()
    went_on: List[bool] = []

    def cancel() -> None:
        queue.during = lambda: None
        assert queue.planning.cancel("p")
        assert queue.planning.plans_in_progress() == {}
        if again:
            queue.submit("p", again)
        threading.Event().wait(0.01)    # past the next turn of others
        went_on.append(give_way(5))
    queue.during = cancel
    queue.submit("p", 1)
    queue.assert_ended([1, 2][:1 + len(kept)], *kept)
    assert went_on == [False]


def test_a_plan_cancelled_while_it_is_written_does_not_stay() -> None:
    queue = Queue()
    queue.kv.before_write = lambda _key: queue.planning.cancel("p")
    queue.submit("p", 1)
    queue.assert_ended([1])


def test_an_automatic_plan_is_made_before_named_ones_that_wait() -> None:
    queue = Queue()
    for number, name in enumerate(("p1", "p2", "p3"), start=1):
        queue.submit(name, number)
    queue.planning.submit_automatic(random_cluster(1).snapshot(), PlanOptions(max_moves=99), 10.0,
                                    lambda plan: None)
    queue.assert_ended([99, 1, 2, 3], "p1", "p2", "p3")

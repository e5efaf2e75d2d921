"""Answers on failures: a job computes them, they are kept for a while, failures are told."""
from __future__ import annotations

import logging
from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple

import pytest
from tests.support.clusters.unit_cluster import Cluster, hosts
from tests.support.fakes import FakeGateway, KeyValueStore
from tests.support.giving_way import Asked
from tests.support.rules import HOST_RULE
from tests.support.units import GIB

from equilibrium_mgr.plan.options import PlanOptions
from equilibrium_mgr.plan.placement import placement
from equilibrium_mgr.plan.store import PlanStore
from equilibrium_mgr.plan_service.plan_service import (
    MAX_ANSWERS, ChangeAnswer, FailureAnswer, FailureQuestion, PlanService, all_steered)
from equilibrium_mgr.runtime.time_slice import giving_way
from equilibrium_mgr.what_if.change import Changes
from equilibrium_mgr.what_if.failure import Failure, recover
from mgr_stub.host.module_host import InlineJobs

HOST_0 = Failure("h0", "host", frozenset({0}))
HOST = FailureQuestion(HOST_0)


class HeldJobs(InlineJobs):
    """Jobs that run when the test says so."""

    def run_pending(self) -> int:
        return 0

    def run(self) -> int:
        return super().run_pending()


class Case:
    """A service over four hosts of one OSD; CRUSH gives osd.3 for each that fails."""

    def __init__(self, jobs: InlineJobs) -> None:
        cluster = Cluster(hosts(4)).pool(1, size=2).pg("1.0", "0 1", GIB).pg("1.1", "1 2", GIB)
        self.now = 1000.0
        self.gateway: Any = FakeGateway(cluster)
        self.gateway.up_sets_without = self.up_sets_without
        self.gateway.epoch = lambda: cluster.epoch
        self.asked: List[Sequence[int]] = []
        self.service = PlanService(self.gateway, PlanStore(KeyValueStore()), jobs,
                                   lambda: self.now, logging.getLogger("test"))

    def ask(self) -> Optional[FailureAnswer]:
        answer = self.service.failure(HOST)
        assert not isinstance(answer, str)
        return answer

    def up_sets_without(self, osds: Sequence[int],
                        pgids: Iterable[str]) -> Dict[str, Tuple[int, ...]]:
        """Only osd.0 fails here, and osd.3 is in its place."""
        self.asked.append(osds)
        assert list(osds) == [0] and list(pgids) == ["1.0"]
        return {"1.0": (3, 1)}


def test_a_job_computes_and_who_asks_does_not_wait() -> None:
    jobs = HeldJobs()
    case = Case(jobs)
    assert case.ask() is None and case.ask() is None
    assert (jobs.pending, case.asked) == (["failure of h0"], [])
    jobs.run()
    answer = case.ask()
    assert answer is not None and answer.recovery is not None and answer.worst is None
    assert (answer.recovery.copied_shards, answer.epoch, jobs.pending) == (1, 100, [])


def test_questions_do_not_pile_up() -> None:
    jobs = HeldJobs()
    case = Case(jobs)
    snapshot = case.gateway.snapshot()
    removals = [Changes(removed=frozenset({osd})) for osd in range(MAX_ANSWERS + 1)]
    for one in removals[:-1]:
        assert case.service.changes(one, snapshot) is None
    assert case.service.changes(removals[-1], snapshot) == f"{MAX_ANSWERS} others wait"
    assert len(jobs.pending) == MAX_ANSWERS
    jobs.run()
    assert isinstance(case.service.changes(removals[0], snapshot), ChangeAnswer)


@pytest.mark.parametrize("epochs, seconds, asked", [
    (0, 599.0, 1), (0, 601.0, 2), (1, 59.0, 1), (1, 61.0, 2)])
def test_an_answer_serves_for_a_while(epochs: int, seconds: float, asked: int) -> None:
    case = Case(InlineJobs())
    assert case.ask() is not None
    case.now += seconds
    case.gateway.cluster.epoch += epochs
    assert case.ask() is not None    # another one where it does not
    assert len(case.asked) == asked


def test_a_failed_job_is_told_once_and_tried_again() -> None:
    jobs = HeldJobs()
    case = Case(jobs)
    case.gateway.not_ready = "the mgr has no df yet"
    assert case.ask() is None
    jobs.run()
    assert "no df yet" in str(case.service.failure(HOST))
    assert case.ask() is None
    case.gateway.not_ready = ""
    jobs.run()
    assert case.ask() is not None


def test_steering_is_computed_of_as_many_failures_as_there_is_time_for() -> None:
    cluster = Cluster(hosts(5), {0: HOST_RULE}).pool(1, size=2)
    cluster.pg("1.0", [0, 1], 20 * GIB).pg("1.1", [2, 3], 20 * GIB)
    cluster.osd(4, used=60 * GIB)
    placed = placement(cluster.snapshot())
    first = recover(placed, HOST_0, {"1.0": (4, 1)})
    second = recover(placed, Failure("h2", "host", frozenset({2})), {"1.1": (4, 3)})
    whole = all_steered(placed, [first, second], PlanOptions())
    assert list(whole) == [first.failure, second.failure]
    assert whole[first.failure].is_finished
    assert whole[first.failure].elsewhere == 1   # to an emptier OSD than CRUSH's
    asked = Asked()
    with giving_way(asked):
        all_steered(placed, [first], PlanOptions())
    for most, is_finished in ((0, False), (len(asked) + 3, True)):
        with giving_way(Asked(most)):
            part = all_steered(placed, [first, second], PlanOptions())
        assert list(part) == [first.failure]
        assert part[first.failure].is_finished == is_finished

"""Answers on failures: a job computes them, they are kept for a while, failures are told."""
from __future__ import annotations

import logging
from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple

import pytest
from tests.support.clusters.unit_cluster import Cluster, hosts
from tests.support.fakes import FakeGateway
from tests.support.units import GIB

from equilibrium_mgr.plan.store import PlanStore
from equilibrium_mgr.plan_service.plan_service import (
    MAX_ANSWERS, ChangeAnswer, FailureAnswer, FailureQuestion, PlanService)
from equilibrium_mgr.runtime.time_slice import give_way
from equilibrium_mgr.what_if.change import Changes
from equilibrium_mgr.what_if.failure import Failure
from mgr_stub.host.module_host import InlineJobs

HOST = FailureQuestion(Failure("h0", "host", frozenset({0})))


class HeldJobs(InlineJobs):
    """Jobs that run when the test says so."""

    def run_pending(self) -> int:
        return 0

    def run(self) -> int:
        return super().run_pending()


class Case:
    """A service over four hosts of one OSD; CRUSH gives osd.3 for each that fails."""

    def __init__(self, jobs: InlineJobs) -> None:
        cluster = Cluster(hosts(4)).pool(1, size=2).pg("1.0", [0, 1], GIB).pg("1.1", [1, 2], GIB)
        self.now = 1000.0
        gateway: Any = FakeGateway(cluster)
        gateway.up_sets_without = self.up_sets_without
        gateway.epoch = lambda: cluster.epoch
        self.gateway: Any = gateway
        self.asked: List[Sequence[int]] = []
        self.service = PlanService(
            self.gateway, PlanStore({}), jobs,   # type: ignore[arg-type]
            lambda: self.now, logging.getLogger("test"))

    def ask(self, question: FailureQuestion) -> Optional[FailureAnswer]:
        answer = self.service.failure(question)
        assert not isinstance(answer, str)
        return answer

    def up_sets_without(self, osds: Sequence[int],
                        pgids: Iterable[str]) -> Dict[str, Tuple[int, ...]]:
        self.asked.append(osds)
        give_way()
        return {pgid: tuple(3 if osd in osds else osd for osd in self.gateway.cluster.up[pgid])
                for pgid in pgids}


def test_a_job_computes_and_who_asks_does_not_wait() -> None:
    jobs = HeldJobs()
    case = Case(jobs)
    assert case.ask(HOST) is None and case.ask(HOST) is None
    assert (jobs.pending, case.asked) == (["failure of h0"], [])
    jobs.run()
    answer = case.ask(HOST)
    assert answer is not None and answer.recovery is not None and answer.worst is None
    assert answer.recovery.copied_shards == 1 and answer.epoch == 100
    assert jobs.pending == []


def test_the_worst_failure_maps_for_each_domain() -> None:
    case = Case(InlineJobs())
    answer = case.ask(FailureQuestion(None))
    assert answer is not None and answer.worst is not None
    assert sorted(map(list, case.asked)) == [[0], [1], [2], [3]]
    assert answer.worst["host"].failures == 4


def test_questions_do_not_pile_up() -> None:
    jobs = HeldJobs()
    case = Case(jobs)
    snapshot = case.gateway.snapshot()
    told = [case.service.changes(Changes(removed=frozenset({osd})), snapshot)
            for osd in range(MAX_ANSWERS + 5)]
    assert told == [None] * MAX_ANSWERS + [f"{MAX_ANSWERS} others wait"] * 5
    assert len(jobs.pending) == MAX_ANSWERS
    jobs.run()
    assert isinstance(case.service.changes(Changes(removed=frozenset({0})), snapshot), ChangeAnswer)


@pytest.mark.parametrize("epochs, seconds, serves", [
    (0, 599.0, True), (0, 601.0, False), (1, 59.0, True), (1, 61.0, False)])
def test_an_answer_serves_for_a_while(epochs: int, seconds: float, serves: bool) -> None:
    case = Case(InlineJobs())
    assert case.ask(HOST) is not None
    case.now += seconds
    case.gateway.cluster.epoch += epochs
    assert case.ask(HOST) is not None    # another one where it does not
    assert len(case.asked) == (1 if serves else 2)


def test_a_failed_job_is_told_once_and_tried_again() -> None:
    jobs = HeldJobs()
    case = Case(jobs)
    case.gateway.not_ready = "the mgr has no df yet"
    assert case.ask(HOST) is None
    jobs.run()
    assert "no df yet" in str(case.service.failure(HOST))
    assert case.ask(HOST) is None
    case.gateway.not_ready = ""
    jobs.run()
    assert case.ask(HOST) is not None

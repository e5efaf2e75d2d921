"""What has happened between the look that a command decided by and the moment that its plan goes:
the answer says of when it is, and what has arrived moves back within the limits."""
from __future__ import annotations

import errno
from typing import Any, List, Tuple

import pytest

from equilibrium_mgr.control.journal import Journal
from equilibrium_mgr.execution.batch import Decision, next_batch
from equilibrium_mgr.execution.round_state import ThrottleLimits
from equilibrium_mgr.execution.execution import Execution, ExecutionUpdate
from equilibrium_mgr.plan.model import FREEZE, UNDO, PgChange
from mgr_stub.console.session import Session
from tests.commands.asking import run as said
from tests.execution.limits import FREE, limited
from tests.support.clusters.unit_cluster import Cluster, hosts
from tests.support.units import GIB

from .test_undo_commands import items, session

__all__ = ["session"]   # the fixture

RAW, MOVED = (0, 1), (2, 1)


def arrived(count: int) -> Cluster:
    """PGs that upmap items have moved from osd.0 to osd.2."""
    cluster = Cluster(hosts(8)).pool(1, size=2)
    for number in range(count):
        cluster.pg(f"1.{number:x}", MOVED, num_bytes=GIB, objects=10, items="0>2")
    return cluster


def back(count: int) -> List[PgChange]:
    """As an undo has them that has found them on their way."""
    return [PgChange(f"1.{number:x}", RAW, MOVED, RAW, (), 0, GIB, 10) for number in range(count)]


def decided(count: int, limits: ThrottleLimits) -> Decision:
    return next_batch(arrived(count).snapshot(), back(count), limits, {}, kind=UNDO)


@pytest.mark.parametrize("limits, most", [
    (limited(max_moves_per_round=1), 1), (limited(max_misplaced_ratio=0.3), 2),
    (FREE, 4)])
def test_what_has_arrived_meanwhile_is_bound_by_all_limits(
        limits: ThrottleLimits, most: int) -> None:
    decision = decided(4, limits)
    assert [change.shards for change in decision.send] == [1] * most
    assert len(decision.waiting) == 4 - most


def test_it_counts_as_planned_and_sent() -> None:
    execution = Execution("undo-1", back(4), 0.0, UNDO)
    assert execution.planned_moves == 0
    execution.apply(ExecutionUpdate(sent=decided(4, limited(max_moves_per_round=3)).send))
    assert (execution.planned_moves, execution.sent_moves) == (3, 3)
    assert execution.sent_bytes == 3 * GIB


def test_the_same_osds_by_other_items_are_not_what_the_pg_had() -> None:
    """As where others have written more pairs than they needed."""
    cluster = Cluster(hosts(8)).pool(1, size=2).pg("1.0", "3 2", objects=10,
                                                   items="0>3 1>2")
    change = PgChange("1.0", RAW, (3, 2), (2, 3), ((0, 2), (1, 3)), 0, GIB, 10)
    snapshot = cluster.snapshot()
    assert next_batch(snapshot, [change], FREE, {}, kind=UNDO).send == [change]
    assert next_batch(snapshot, [change], FREE, {}, kind=FREEZE).done == [change]


def test_a_look_from_before_the_last_batch_is_not_acted_on(
        session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command comes between the end of a batch and the view that shows it."""
    answers: List[Tuple[int, str, str]] = []
    real = Journal.record_sent

    def record_sent(journal: Journal, *arguments: Any) -> None:
        answers.append(session.command("equilibrium undo --dry-run p"))
        real(journal, *arguments)
    monkeypatch.setattr(Journal, "record_sent", record_sent)
    said(session, "equilibrium execute p")
    session.host.run_for(1.0)
    assert items(session)
    (code, _, message), = answers
    assert code == -errno.EAGAIN
    assert "older than what was sent last; a look has been started" in message


def test_the_plan_that_pins_may_end_while_freeze_asks(
        session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its name is of the same moment as what is said of it."""
    kept = Execution("freeze-1", back(1), 0.0, FREEZE)
    monkeypatch.setattr(type(session.module.balancer), "execution", kept)
    code, _, why = session.command("equilibrium freeze")
    assert code == -errno.EAGAIN
    assert why.startswith("plan 'freeze-1' is sending its pins") and "rm freeze-1'" in why

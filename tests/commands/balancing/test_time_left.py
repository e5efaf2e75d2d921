"""How far an execution has come, and when it will be complete, against what then happens."""
from __future__ import annotations

from typing import Callable, List, NamedTuple, Optional

import pytest

from equilibrium_mgr.execution.execution import ExecutionProgress
from mgr_stub.console.session import Session

from ..asking import ask, optimize, run


class _Told(NamedTuple):
    """What was told at one moment."""

    at: float
    progress: ExecutionProgress
    eta_seconds: Optional[float]


def executed(session: Session, every: int, fail_at: int = -1) -> List[_Told]:
    """What was told until the execution was complete, and in the end; with a failover."""
    told: List[_Told] = []
    for number in range(2000):
        run(session, f"sim run {every}s")
        if number == fail_at:
            run(session, "sim failover", f"sim run {every}s", f"sim run {every}s")
        ask(session, "status")   # has the next round look
        progress = session.module.balancer.status.progress
        if progress is None:
            break
        now = session.clock.now
        told.append(_Told(now, progress, progress.eta_seconds(now)))
    return told


def slow(session: Session) -> Session:
    """As slow as real disks: it takes hours."""
    speeds = session.simulation.backfill.bytes_per_second
    speeds.update({name: speed / 4 for name, speed in speeds.items()})
    return session


def started(open_session: Callable[..., Session]) -> Session:
    session = slow(open_session(18))
    optimize(session)
    run(session, "equilibrium execute p")
    return session


@pytest.mark.parametrize("fail_at", [
    pytest.param(-1, marks=pytest.mark.full, id="one mgr"), pytest.param(6, id="failover")])
def test_the_eta_is_within_0_5_to_2_of_the_truth_from_10_to_90_per_cent(
        open_session: Callable[..., Session], fail_at: int) -> None:
    session = started(open_session)
    told = executed(session, 180, fail_at)
    end, asked = session.clock.now, 0
    for at, progress, eta in told:
        assert progress.bytes_done is not None
        assert progress.bytes_total
        if 0.1 <= progress.bytes_done / progress.bytes_total <= 0.9:
            assert eta is not None, (at, eta, end - at)
            assert 0.5 <= eta / (end - at) <= 2.0, (at, eta, end - at)
            asked += 1
    assert asked > 10


def test_what_arrives_at_once_takes_its_rounds(session: Session) -> None:
    run(session, "config set mgr mgr/equilibrium/max_backfills_per_osd 1")
    optimize(session, "p cephfs_metadata --aim even")
    known, begin = ask(session, "eval p"), session.clock.now
    assert "in about 9m00s (9 rounds" in ask(session, "report p")["html"]
    run(session, "equilibrium execute p")
    executed(session, 10)
    assert known["expected_seconds"] == pytest.approx(session.clock.now - begin, rel=0.15)
    assert known["expected_from"] == "9 rounds, a sleep_interval each"

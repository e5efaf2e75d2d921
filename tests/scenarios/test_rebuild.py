"""What the screens say while Ceph rebuilds lost shards for hours, and after a second failure."""
from __future__ import annotations

from pathlib import Path
from typing import Any, Iterator, List

import pytest

from mgr_stub.console.session import Session

from . import drive
from .test_steering import Rebuild

_STEERING = ("steer_recovery", "hold_placement")


@pytest.fixture
def session(balanced: Path) -> Iterator[Session]:
    made = Session.from_state(str(balanced), release=18)
    for name in _STEERING:
        drive.command(made, option(name, True))
    for line in ("balancer off", "equilibrium on", "sim run 5m", "sim backfill rate 5M"):
        drive.command(made, line)
    yield made
    made.close()


def option(name: str, value: Any) -> str:
    return f"config set mgr mgr/equilibrium/{name} {str(value).lower()}"


def lose(session: Session, host: str) -> None:
    """The OSDs of a host are down, and out after ten minutes."""
    drive.command(session, f"sim host down {host}")
    drive.command(session, "sim run 10m")


def outcomes(session: Session, since: float) -> List[str]:
    """How the episodes ended that have begun since then."""
    return [entry["outcome"] for entry in session.module.balancer.status.history
            if entry["started_at"] >= since]


def test_a_rebuild_of_hours_is_never_called_stuck(session: Session) -> None:
    began = session.clock()
    lose(session, "host3")
    rebuild = Rebuild()
    codes = set()
    for _ in range(80):
        drive.command(session, "sim run 1m")
        rebuild.observe(session)
        codes.add(session.module.balancer.status.reason_code)
    assert rebuild.minutes > 60
    assert not rebuild.wrong
    assert "degraded" in codes
    assert outcomes(session, began) == []


def test_a_rebuild_that_stands_still_is_called_stuck(session: Session) -> None:
    lose(session, "host3")
    drive.command(session, "sim run 30m")
    drive.command(session, "sim backfill rate 0")
    states = set()
    for _ in range(40):
        drive.command(session, "sim run 4m")
        states.add(session.module.balancer.status.state)
    assert "stuck" in states

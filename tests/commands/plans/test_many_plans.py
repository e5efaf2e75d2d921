"""Bounds on plans: in the making and kept, cancelled by `rm` and `reset`."""

from __future__ import annotations

import errno
import threading
from typing import Any, Callable, Iterator

import pytest

from mgr_stub.console.session import Session

from ..asking import ask, refused, refuses, run


@pytest.fixture
def held(open_session: Callable[..., Session]) -> Iterator[Session]:
    """A session whose job thread makes nothing until `release` is set."""
    session = open_session(18, own_job_thread=True)
    session.command("sim run 1s")
    release = threading.Event()
    session.module.jobs.submit("hold", release.wait)
    session.release = release    # type: ignore[attr-defined]
    yield session
    release.set()


def making(session: Session) -> Any:
    return {plan["plan"] for plan in ask(session, "ls")["plans"] if plan["state"] == "planning"}


def test_few_plans_are_in_the_making_at_once(held: Session) -> None:
    answers = [held.command(f"equilibrium optimize q{number}")[0] for number in range(30)]
    accepted = answers.count(0)
    assert 1 < accepted <= 10
    assert answers == [0] * accepted + [-errno.EAGAIN] * (30 - accepted)
    assert "being made" in refused(held, "equilibrium optimize other")[1]
    run(held, "equilibrium rm q0", "equilibrium optimize other")
    assert making(held) == {f"q{number}" for number in range(1, accepted)} | {"other"}


def test_those_in_the_making_count_as_kept(held: Session, mocker: Any) -> None:
    mocker.patch("equilibrium_mgr.commands.base.MAX_PLANS", 3)
    run(held, *(f"equilibrium optimize q{number}" for number in range(3)))
    refuses(held, "optimize q3", errno.ENOSPC)
    refuses(held, "optimize q2", errno.EAGAIN)    # is being made already

"""Bounds on plans: in the making and kept, cancelled by `rm` and `reset`."""

from __future__ import annotations

import errno
import threading
from typing import Any, Callable, Iterator

import pytest

from mgr_stub.console.session import Session

from ..asking import ask, refused, run


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


def wait_until(true: Callable[[], Any]) -> None:
    for _ in range(600):
        if true():
            return
        threading.Event().wait(0.05)
    raise AssertionError("not within 30 s")


def test_few_plans_are_in_the_making_at_once(held: Session) -> None:
    answers = [held.command(f"equilibrium optimize q{number}")[0] for number in range(30)]
    accepted = answers.count(0)
    assert 1 < accepted <= 10 and answers == [0] * accepted + [-errno.EAGAIN] * (30 - accepted)
    assert "being made" in refused(held, "equilibrium optimize other")[1]
    run(held, "equilibrium rm q0", "equilibrium optimize other")
    assert making(held) == {f"q{number}" for number in range(1, accepted)} | {"other"}


def test_those_in_the_making_count_as_kept(held: Session, mocker: Any) -> None:
    mocker.patch("equilibrium_mgr.commands.plan_commands.MAX_PLANS", 3)
    run(held, *(f"equilibrium optimize q{number}" for number in range(3)))
    assert refused(held, "equilibrium optimize q3")[0] == -errno.ENOSPC
    assert refused(held, "equilibrium optimize q2")[0] == -errno.EAGAIN    # is being made already


def test_a_plan_that_is_made_again_goes_with_the_one_that_is_kept(held: Session) -> None:
    held.release.set()   # type: ignore[attr-defined]
    run(held, "equilibrium optimize p")
    wait_until(lambda: not held.module.plan_service.plans_in_progress())
    again = threading.Event()
    held.module.jobs.submit("hold", again.wait)
    run(held, "equilibrium optimize p --replace", "equilibrium rm p")
    again.set()
    done = threading.Event()
    held.module.jobs.submit("after", done.set)
    assert done.wait(60) and ask(held, "ls")["plans"] == []

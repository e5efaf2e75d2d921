"""A plan in the making, in a thread of its own: no other command waits for it."""

from __future__ import annotations

import errno
import threading
import time
from typing import Any, Callable, Iterator

import pytest

from mgr_stub.console.session import Session
from tests.support.giving_way import give_way

from ..asking import ask, count_commands, refuses, run


class SlowPlanner:
    """Stands in for make_plan: holds a plan back until `let_go` is set or the module stops."""

    def __init__(self, make_plan: Callable[..., Any]) -> None:
        self.started = threading.Event()
        self.let_go = threading.Event()
        self._make_plan = make_plan

    def __call__(self, snapshot: Any, options: Any) -> Any:
        self.started.set()
        while not self.let_go.wait(0.005):
            if not give_way(7):
                break
        return self._make_plan(snapshot, options)


@pytest.fixture
def session(open_session: Callable[..., Session]) -> Session:
    session = open_session(18, own_job_thread=True)
    run(session, "sim run 1s")
    return session


@pytest.fixture
def planner(session: Session) -> Iterator[SlowPlanner]:
    service = session.module.plan_service
    slow = service.planner = SlowPlanner(service.planner)
    yield slow
    slow.let_go.set()


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "that took too long"
        time.sleep(0.005)


def plan_slowly(session: Session, planner: SlowPlanner, name: str = "p") -> None:
    run(session, f"equilibrium optimize {name} --replace")
    assert planner.started.wait(10)
    wait_until(lambda: session.module.plan_service.plans_in_progress()[name].moves == 7)


def test_the_plan_itself_gives_eagain(session: Session, planner: SlowPlanner) -> None:
    plan_slowly(session, planner)
    sent = count_commands(session)
    for verb in ("show", "eval", "dump", "execute", "optimize"):
        refuses(session, f"{verb} p", errno.EAGAIN, "7 moves", "'p'")
    assert sent == []
    planner.let_go.set()
    wait_until(lambda: not session.module.plan_service.plans_in_progress())
    assert ask(session, "show p")["moves"]
    assert [p["state"] for p in ask(session, "ls")["plans"]] == ["ready"]


def test_a_plan_that_fails(session: Session) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("boom\nand more")
    session.module.plan_service.planner = fail
    run(session, "equilibrium optimize p")
    wait_until(lambda: not session.module.plan_service.plans_in_progress())
    for verb in ("show", "eval", "dump", "execute"):
        refuses(session, f"{verb} p", errno.ENOENT, "boom")
    assert ask(session, "ls") == {"plans": []}


def test_a_failure_that_is_asked_for_waits_for_the_plan(session: Session,
                                                        planner: SlowPlanner) -> None:
    plan_slowly(session, planner)
    refuses(session, "eval --fail osd.6", errno.EAGAIN, "is being computed; ask again")
    planner.let_go.set()
    wait_until(lambda: session.command("equilibrium eval --fail osd.6")[0] == 0)

"""`freeze`: what it answers, and what comes of it."""

from __future__ import annotations

import errno
from typing import Any, Callable, Dict

import pytest

from mgr_stub.console.session import Session

from ..asking import ask, refuses, run


@pytest.fixture
def expanded(open_session: Callable[..., Session]) -> Session:
    """A host was added under norebalance a while ago; nothing has been looked at since."""
    session = open_session(18)
    session.command("equilibrium eval")   # has the cluster looked at
    run(session, "sim run 20s", "sim flag set norebalance", "sim host add new0 4 8T",
        "sim run 40s")
    return session


def looked_at(session: Session, line: str) -> Dict[str, Any]:
    """The answer at the second attempt: the first has the cluster looked at."""
    refuses(session, f"{line}", errno.EAGAIN, "try again")
    run(session, "sim run 20s")
    answer: Dict[str, Any] = ask(session, line)
    return answer


def test_a_dry_run_sends_nothing(expanded: Session) -> None:
    assert looked_at(expanded, "freeze --dry-run")["pinned_pgs"] > 100
    run(expanded, "sim run 5m")
    assert not expanded.cluster.map.upmap_items
    assert ask(expanded, "ls")["plans"] == []


def test_nothing_else_may_be_executed_meanwhile(expanded: Session) -> None:
    run(expanded, "equilibrium optimize p", "equilibrium execute p")
    refuses(expanded, "freeze", errno.EBUSY, "equilibrium rm p")

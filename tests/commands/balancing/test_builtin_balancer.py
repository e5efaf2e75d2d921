"""The built-in balancer: refused beside it, switched off by `on`, waited for, noticed later."""

from __future__ import annotations

import errno
from typing import Any, Callable, Dict

import pytest

from mgr_stub.console.session import Session
from tests.support.releases import RELEASES

from ..asking import ask, count_commands, health, optimize, refuses, run, state


def with_builtin(session: Session) -> Session:
    """The built-in balancer is on; it looks every 300 s."""
    run(session, "config set mgr mgr/balancer/sleep_interval 300", "balancer on", "sim run 1s")
    return session


@pytest.fixture(params=RELEASES)
def beside_any(request: Any, open_session: Callable[..., Session]) -> Session:
    return with_builtin(open_session(request.param))


@pytest.fixture
def beside(open_session: Callable[..., Session]) -> Session:
    return with_builtin(open_session(18))


def test_execute_is_refused(beside: Session) -> None:
    optimize(beside)
    sent = count_commands(beside)
    refuses(beside, "execute p", errno.EPERM, "ceph balancer off")
    run(beside, "sim run 20m")
    assert sent == []
    assert state(beside) == "off"
    run(beside, "balancer off", "equilibrium execute p", "sim run 299s")
    assert sent == []   # it may be sending its last batch still
    assert "built-in balancer" in ask(beside, "status")["reason"]
    run(beside, "sim run 62s")
    assert sent


def test_on_switches_it_off_and_waits(beside_any: Session) -> None:
    sent = count_commands(beside_any)
    answer = ask(beside_any, "on")
    assert answer == {"active": True, "builtin_balancer_switched_off": True, "resumed_drains": []}
    assert not beside_any.mgr.balancer.active
    assert beside_any.mgr.balancer.wakeups == 2
    assert run(beside_any, "config get mgr mgr/equilibrium/active") == "true"
    assert state(beside_any) == "waiting"
    assert "switched off" not in run(beside_any, "equilibrium on")
    run(beside_any, "sim run 299s")
    assert sent == []
    assert "built-in balancer" in ask(beside_any, "status")["reason"]
    run(beside_any, "sim run 62s")
    assert sent
    assert state(beside_any) == "moving"


@pytest.fixture
def beside_reads(open_session: Callable[..., Session]) -> Session:
    """The built-in balancer is on in mode `read`."""
    session = open_session(20)
    run(session, "osd set-require-min-compat-client reef", "balancer mode read", "balancer on")
    return session


def primaries(session: Session) -> Dict[str, int]:
    return dict(session.cluster.map.chosen_primaries)


def test_in_mode_read_it_stays_on(beside_reads: Session) -> None:
    sent = count_commands(beside_reads)
    assert ask(beside_reads, "on")["builtin_balancer_switched_off"] is False
    assert run(beside_reads, "equilibrium on").splitlines() == [
        "automatic balancing is on",
        "the built-in balancer stays on: in mode read it moves no data"]
    assert beside_reads.mgr.balancer.active
    run(beside_reads, "sim run 5m")
    assert sent
    status = ask(beside_reads, "status")
    assert status["builtin_balancer_active"] is False
    assert status["state"] == "moving"
    assert primaries(beside_reads)
    assert health(beside_reads) == {}
    assert "built-in" not in run(beside_reads, "equilibrium status")
    assert run(beside_reads, "equilibrium off").splitlines() == ["automatic balancing is off"]

"""The serve loop outlives exceptions, says so, backs off, and goes on."""

from __future__ import annotations

import errno
from typing import Any, List

import pytest

from mgr_stub.console.session import Session

from ..asking import ask, count_commands, health, optimize, run, state


def boom(*_: Any, **__: Any) -> None:
    raise RuntimeError("boom")


def delays(session: Session, rounds: int) -> List[float]:
    """Seconds until the next round, after each of so many; the first one is due at once."""
    session.module.balancer.require_observation()
    session.host.run_pending()
    found = [session.host.next_round - session.clock.now]
    for _ in range(rounds - 1):
        session.host.run_next_round()
        found.append(session.host.next_round - session.clock.now)
    return found


def test_failing_rounds(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    run(session, "equilibrium on")
    sent = count_commands(session)
    with monkeypatch.context() as patch:
        patch.setattr(session.module.gateway, "snapshot", boom)
        assert delays(session, 8) == [15.0, 30.0, 60.0, 120.0, 240.0, 480.0, 600.0, 600.0]
        error = health(session)["MGR_EQUILIBRIUM_ERROR"]
        assert error["severity"] == "warning"
        assert "boom" in "\n".join(error["detail"])
        for line in ("status", "eval", "ls", "pool ls", "dump-state"):
            ask(session, line)                  # commands answer all the while
    assert sent == []
    run(session, "sim run idle")
    assert health(session) == {}
    assert state(session) == "balanced"
    assert delays(session, 1) == [60.0]


def test_one_bad_look_delays_no_execution(session: Session,
                                          monkeypatch: pytest.MonkeyPatch) -> None:
    """An execution whose first round fails begins with the next one."""
    optimize(session)
    sent = count_commands(session)
    with monkeypatch.context() as patch:
        patch.setattr(session.module.gateway, "snapshot", boom)
        run(session, "equilibrium execute p")
        assert "boom" in session.module._failure
        assert health(session) == {}   # one is no check yet
    run(session, "sim run 1m")
    assert sent
    assert health(session) == {}


def test_commands_of_a_mgr_that_knows_nothing_yet(session: Session,
                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    """EAGAIN and a sentence, as for everything that a moment's patience cures."""
    get = session.mgr.get
    monkeypatch.setattr(session.mgr, "get", lambda name: None if name == "df" else get(name))
    for line in ("pool ls", "pool add vms", "optimize p vms"):
        rc, out, err = session.command("equilibrium " + line)
        assert (rc, out) == (-errno.EAGAIN, "")
        assert "try again" in err
        assert "\n" not in err

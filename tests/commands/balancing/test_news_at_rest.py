"""A rest is not told beside what speaks against it, though the cluster is not looked at yet."""

from __future__ import annotations

import pytest

from mgr_stub.console.session import Session

from ..asking import ask, run, state


@pytest.fixture
def idle(session: Session) -> Session:
    run(session, "equilibrium on", "sim run idle", "sim run 5m")
    assert state(session) in ("balanced", "stuck")
    return session


@pytest.mark.parametrize("event", ["sim osd down 3", "sim osd reweight 3 0.5"])
def test_what_has_come_since_is_told_at_once(idle: Session, event: str) -> None:
    run(idle, event, "sim run 10s")
    status = ask(idle, "status")
    assert status["state"] == "waiting"
    assert "the cluster has changed" in status["reason"]
    assert "balanced since 2026-01-01 00:2" in status["reason"]
    full_readings = idle.mgr.calls["pg_progress"]
    run(idle, "sim run 10s")
    ask(idle, "status")
    assert idle.mgr.calls["pg_progress"] == full_readings   # to tell it costs none

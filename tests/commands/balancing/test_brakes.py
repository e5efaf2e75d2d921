"""A window that cannot be read, and failovers at odd moments."""

from __future__ import annotations

from typing import Any

import pytest

from mgr_stub.console.session import Session

from ..asking import ask, run, state


def set_options(session: Session, **options: Any) -> None:
    run(session, *(f"config set mgr mgr/equilibrium/{name} {value}"
                   for name, value in options.items()))


def test_a_window_that_cannot_be_read_never_opens(session: Session) -> None:
    set_options(session, begin_time="noon")
    run(session, "equilibrium on", "sim run 2m")
    status = ask(session, "status")
    assert state(session) == "waiting" and "begin_time" in status["reason"]
    assert status["action"].startswith("set begin_time and end_time so that the window opens;")
    assert ask(session, "explain")["action"] == status["action"]
    set_options(session, begin_time="0000")
    run(session, "sim run 2m")
    assert state(session) == "moving"


@pytest.mark.full
def test_failovers_at_odd_moments_leave_legal_upmaps_only(session: Session) -> None:
    """Every upmap in the map is one that the monitor keeps, and the end is a rest."""
    run(session, "equilibrium on")
    for seconds in (1, 61, 2, 59, 60, 7, 120):
        run(session, f"sim run {seconds}s", "sim failover")
        assert "MGR_EQUILIBRIUM_ERROR" not in session.mgr.health_checks
    run(session, "sim run idle")
    assert state(session) == "balanced" and ask(session, "status")["rejected"] == []
    stored = session.simulation.store.keys
    assert max(len(value.encode()) for value in stored.values()) <= 65536
    writes = session.mgr.store.writes
    run(session, "sim run 30m")
    assert session.mgr.store.writes == writes

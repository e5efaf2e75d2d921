"""A window that cannot be read, and failovers at odd moments."""

from __future__ import annotations

from typing import Any

import pytest

from mgr_stub.console.session import Session

from ..asking import ask, run, state


def set_options(session: Session, **options: Any) -> None:
    run(session, *(f"config set mgr mgr/equilibrium/{name} {value}"
                   for name, value in options.items()))


@pytest.mark.full
def test_a_window_that_cannot_be_read_never_opens(session: Session) -> None:
    set_options(session, begin_time="noon")
    run(session, "equilibrium on", "sim run 2m")
    status = ask(session, "status")
    assert state(session) == "waiting"
    assert "begin_time" in status["reason"]
    assert status["action"].startswith("set begin_time and end_time so that the window opens;")
    assert ask(session, "explain")["action"] == status["action"]
    set_options(session, begin_time="0000")
    run(session, "sim run 2m")
    assert state(session) == "moving"

"""Flags of the osdmap that operators set and forget: nothing else is blamed."""
from __future__ import annotations

from typing import Iterator

import pytest
from mgr_stub.console.session import Session
from tests.commands.asking import ask, run
from tests.support.few import few


@pytest.fixture
def session() -> Iterator[Session]:
    made = Session.from_state(None, release=18, seed=0, frozen=False)
    yield made
    made.close()


@pytest.mark.parametrize("flag", few(["norebalance", "nobackfill", "norecover"], 1))
def test_what_a_flag_halts_does_not_end_by_itself_and_no_osd_is_slow(
        flag: str, session: Session) -> None:
    run(session, "equilibrium on", "sim run 30m", f"osd set {flag}", "sim run 2h")
    moving = [row["pgid"] for row in ask(session, "moves")["moves"] if row["origin"] == "plan"]
    assert ask(session, f"explain {moving[0]}")["action"] == f"'ceph osd unset {flag}'"
    assert ask(session, "status")["slow_osds"] == []


@pytest.mark.full
def test_the_first_screen_in_an_outage_tells_how_old_its_figures_are(session: Session) -> None:
    """At rest nobody has looked since the host went down."""
    run(session, "equilibrium on", "sim run 6h", "osd set noout", "sim host down host1",
        "sim run 20h")
    screen = run(session, "equilibrium status")
    assert screen.startswith("cluster:")
    assert "host1" in screen
    assert "figures:     of " in screen

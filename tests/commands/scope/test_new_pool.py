"""A plan that is newer than the last look."""

from __future__ import annotations

import errno

import pytest

from mgr_stub.console.session import Session

from tests.commands.asking import ask, optimize, refused, run
from tests.support.few import few


@pytest.mark.parametrize("command", few(["eval", "df", "report"], 1))
def test_figures_with_a_plan_are_of_a_look_that_shows_what_it_moves(
        session: Session, command: str) -> None:
    run(session, "equilibrium optimize old", "equilibrium execute old", "sim run 1h")
    ask(session, "eval")
    for pgid in list(session.cluster.map.upmap_items):
        run(session, f"osd rm-pg-upmap-items {pgid}")
    plan = optimize(session)
    code, said = refused(session, f"equilibrium {command} p")
    assert code == -errno.EAGAIN
    assert said.startswith("the plan is newer than the last look")
    wait_for_a_look(session, f"{command} p")
    run(session, f"equilibrium {command} p")
    assert ask(session, "eval p")["applicable_changes"] == len(plan["predicted_up"])


def wait_for_a_look(session: Session, line: str) -> None:
    """Of the looks that commands ask for one begins in so many seconds."""
    for _ in range(20):
        run(session, "sim run 1s")
        session.command(f"equilibrium {line}")
    run(session, "sim run 1s")

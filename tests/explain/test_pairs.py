"""`explain PGID OSD` on the simulated cluster: planned moves, and the checks of the throttle."""
from __future__ import annotations

from mgr_stub.console.session import Session
from tests.commands.asking import ask
from tests.readme.blocks import HANDBOOK
from tests.commands.conftest import demo_state, open_session, session  # noqa: F401

from equilibrium_mgr.execution.checks import CHECKS
from equilibrium_mgr.report.explain.pair import SENDER


def test_every_check_of_the_throttle_is_shown(session: Session) -> None:   # noqa: F811
    rows = ask(session, "explain 2.1f 14")["checks"]
    assert len([row for row in rows if row["stage"] == SENDER]) == 1 + sum(
        not check.of_batch for check in CHECKS)
    page = (HANDBOOK / "troubleshooting.md").read_text(encoding="utf-8").partition("| check |")[2]
    told = [name for line in page.partition("\n\n")[0].split("\n")[2:]
            for name in line.split("|")[1].strip().split(", ")]
    assert len(told) == len(set(told))
    assert set(told) == {*(row["check"] for row in rows), "plan"}

"""`status` says where the urgent misplaced limit is in effect."""
from __future__ import annotations

from typing import Callable

from mgr_stub.console.session import Session
from tests.commands.asking import ask, run

OPTION = "config set mgr mgr/equilibrium/"


def test_the_urgent_limit_is_shown_where_it_is_in_effect(
        open_session: Callable[..., Session]) -> None:
    """osd.6 is at 85 %: above backfillfull only once that is lower."""
    session = open_session(18)
    run(session, f"{OPTION}start_delay 0", f"{OPTION}urgent_misplaced_ratio 0.3",
        "sim backfill rate 4M", "equilibrium on", "sim run 3m")
    assert "urgent" not in run(session, "equilibrium status").split("options:")[0]
    assert ask(session, "status")["limits"]["urgent_osds"] == []
    run(session, "sim osd full-ratios 0.75 0.84 0.95", "sim run 6m")
    said = " ".join(run(session, "equilibrium status").split())
    assert "urgent limit 30.00% for what leaves osd.6, above backfillfull" in said
    assert ask(session, "status")["limits"]["urgent_osds"] == [6]
    run(session, f"{OPTION}urgent_misplaced_ratio 0.01", "sim run 3m")
    assert ask(session, "status")["limits"]["urgent_osds"] == []

"""`status` says where the urgent misplaced limit is in effect, and what a new mgr does not know."""
from __future__ import annotations

from typing import Callable

import pytest
from mgr_stub.console.session import Session
from tests.commands.asking import ask, run, words

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
    said = words(session, "status")
    assert "urgent limit 30.00% for what leaves osd.6, too full or soon so" in said
    assert ask(session, "status")["limits"]["urgent_osds"] == [6]
    run(session, f"{OPTION}urgent_misplaced_ratio 0.01", "sim run 3m")
    assert ask(session, "status")["limits"]["urgent_osds"] == []


@pytest.mark.parametrize("screen", ["status", "explain"])
def test_what_nobody_has_reported_yet_is_not_called_inactive(
        screen: str, open_session: Callable[..., Session]) -> None:
    """It becomes that after SILENT_SECONDS; which OSDs do not report is said from the beginning."""
    session = open_session(18)
    run(session, f"{OPTION}start_delay 0", "equilibrium on", "sim run 3m", "sim failover",
        "sim stats gap 10m 4 6", "sim run 1m")

    def said() -> str:
        return words(session, f"{screen}")
    assert "not been reported yet since this mgr became active: osd.4, osd.6 do not" in said()
    assert "do: nothing; it ends by itself when their OSDs have reported" in said()
    assert "inactive" not in said()
    assert "cannot be read" not in said()
    run(session, "sim run 2m")
    assert "as far as is known cannot be read or written: osd.4, osd.6 do not report" in said()
    assert "restart osd.4" in said()
    assert "mgr fail" not in said()
    assert "since this mgr became active" not in said()
    assert "do: restart osd.4," in run(session, "equilibrium explain osd.4")
    run(session, "sim run 10m")
    assert "cluster:" not in said()

"""What screens say of OSDs that have just gone down, or are too full for a moment."""
from __future__ import annotations

from pathlib import Path

from tests.commands.asking import ask, run
from tests.explain.followed import explained, open_cluster
from tests.explain.same_figures import differing


def test_a_down_osd_is_not_the_fullest(tmp_path: Path) -> None:
    """It was; nothing can be moved off it, so that it has no part in the bound."""
    session = open_cluster("random", 20, tmp_path)
    run(session, "equilibrium status", "sim run 2m")
    fullest = ask(session, "status")["classes"][0]["fullest_osd"]
    run(session, "equilibrium on", "osd set noout", f"sim osd down {fullest}", "sim run 5m")
    explained(session, "")
    assert not differing(session)
    row, = ask(session, "status")["classes"]
    assert row["fullest_osd"] != fullest and row["bound_utilization"] < row["max_utilization"]
    session.close()

"""What is said of lowered weights, followed."""
from __future__ import annotations

import errno
import re
from pathlib import Path
from typing import Any, Dict, List

from mgr_stub.console.session import Session
from tests.commands.asking import ask, run
from tests.explain.followed import open_cluster


def again(session: Session, command: str) -> None:
    """Asks until there is an answer."""
    while session.command(command)[0] == -errno.EAGAIN:
        run(session, "sim run 10s")
    run(session, "sim run 1m")


def said(session: Session) -> List[Dict[str, Any]]:
    return [one for one in ask(session, "explain")["advice"] if one["code"] == "reweight"]


def test_weights_are_left_without_more_copies_than_balancing_needs(tmp_path: Path) -> None:
    """Weights of another time: upmap items have held the data where it was."""
    session = open_cluster("random", 20, tmp_path)
    for command in ("osd set norebalance", "osd reweight 3 0.6", "osd reweight 7 0.7",
                    "equilibrium freeze", "osd unset norebalance", "equilibrium on"):
        again(session, command)
    run(session, "sim run 12h")
    before = said(session)
    assert len(before) == 1 and before[0]["figures"]["held_osds"] == [3, 7]
    assert before[0]["figures"]["bound_ratio"] > before[0]["figures"]["proven_ratio"] + 0.005
    for command in re.findall(r"'ceph ([^']+)'", before[0]["sentence"]):
        again(session, command)
    run(session, "sim run 12h")
    assert not said(session)
    row = ask(session, "status")["classes"][0]
    assert row["bound_utilization"] <= before[0]["figures"]["proven_ratio"] + 0.001
    session.close()

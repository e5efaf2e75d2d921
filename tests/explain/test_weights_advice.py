"""What is said of lowered weights, followed."""
from __future__ import annotations

import errno
import re
from pathlib import Path
from typing import Any, Dict, List

import pytest
from mgr_stub.console.session import Session
from tests.commands.asking import ask, paste, run
from tests.explain.followed import open_cluster


def again(session: Session, command: str) -> None:
    """Asks until there is an answer."""
    while session.command(command)[0] == -errno.EAGAIN:
        run(session, "sim run 10s")
    run(session, "sim run 1m")


def said(session: Session) -> List[Dict[str, Any]]:
    return [one for one in ask(session, "explain")["advice"] if one["code"] == "reweight"]


def without_freeze(lines: List[str]) -> List[str]:
    return [line for line in lines if "freeze" not in line]


def test_weights_are_left_without_more_copies_than_balancing_needs(tmp_path: Path) -> None:
    """Weights of another time: upmap items have held the data where it was."""
    session = open_cluster("random", 20, tmp_path)
    for command in ("osd set norebalance", "osd reweight 3 0.6", "osd reweight 7 0.7",
                    "equilibrium freeze", "osd unset norebalance", "equilibrium on"):
        again(session, command)
    run(session, "sim run 12h")
    before = said(session)
    assert len(before) == 1
    assert before[0]["figures"]["held_osds"] == [3, 7]
    assert before[0]["figures"]["bound_ratio"] > before[0]["figures"]["proven_ratio"] + 0.005
    told = re.findall(r"'(ceph [^']+)'", before[0]["sentence"])
    pasted = paste(session, run(session, "equilibrium explain"))
    assert without_freeze(pasted) == without_freeze(told)
    assert len(pasted) == len(told) + 1
    run(session, "sim run 12h")
    assert not said(session)
    row = ask(session, "status")["classes"][0]
    assert row["bound_utilization"] <= before[0]["figures"]["proven_ratio"] + 0.001
    session.close()


@pytest.mark.full
def test_an_osd_of_next_to_no_weight_is_emptied_by_what_is_said() -> None:
    """Its last shards are so small that no move of them gains anything."""
    session = Session.from_state(None)
    for command in ("osd set norebalance", "sim osd crush-reweight 8 0.0001", "equilibrium freeze",
                    "osd unset norebalance", "equilibrium on"):
        again(session, command)
    run(session, "sim run 12h")
    sentence, = [one for one in ask(session, "explain osd.8")["sentences"]
                 if one.startswith("osd.8 is held to")]
    assert sentence == ("osd.8 is held to less than 1% of its size by its CRUSH weight; 'ceph"
                        " equilibrium drain add osd.8' empties it")
    again(session, re.findall(r"'ceph ([^']+)'", sentence)[0])
    run(session, "sim run 2h")
    assert not [pgid for pgid, up in session.cluster.map.up.items() if 8 in up]
    assert "drain add" not in " ".join(ask(session, "explain osd.8")["sentences"])
    session.close()

"""A failover forgets nothing: what `status`, `moves`, `drain ls` and `explain` say one look after it
is what they say at that moment of the same run without it."""
from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Tuple

import pytest

from mgr_stub.console.session import Session
from mgr_stub.monitor.monitor import MGR
from tests.support.few import few

from . import clusters, drive
from .rules.under_way import SET_ITEMS


class Story(NamedTuple):
    cluster: str
    seed: int
    lines: Tuple[str, ...]


_OUT = "config set mgr mgr/equilibrium/"
_EAGER = (f"{_OUT}start_delay 0", f"{_OUT}sleep_interval 30", f"{_OUT}max_misplaced_ratio 0.05")
_STORIES: Dict[str, Story] = {
    "plain": Story("random", 6, (*_EAGER, "sim backfill rate 20M", "equilibrium on")),
    "logs": Story("logs", 2, (*_EAGER, "sim backfill rate 4M", "equilibrium on")),
    "drain": Story("nested", 3, (*_EAGER, "sim backfill rate 100M", "equilibrium drain add 1")),
    "stopped": Story("random", 6, (*_EAGER, "sim swell rbd 2", "sim backfill rate 100M",
                                   "equilibrium on")),
    "dropped": Story("random", 6, (*_EAGER, "sim mon drop 0.4", "sim backfill rate 20M",
                                   "equilibrium on"))}
_MOMENTS = (120, 420, 1500)
_CASES = [(story, at) for at in _MOMENTS for story in _STORIES]
#: Until the new mgr has looked, and PGs that it has sent have reported.
_LOOK_SECONDS = 150.0
_ASKED = 12   # PGs that are asked for


def _facts(session: Session) -> Dict[str, Any]:
    """What must not depend on which mgr answers: shards in flight of ours, the limits, what is
    stopped, drained or left alone."""
    found: Dict[str, Any] = {}
    status, moves = _ask(session, "status"), _ask(session, "moves")
    found["moving"] = sorted((row["pgid"], row["source"], row["target"], row["origin"], row["state"])
                             for row in moves["moves"])
    # sizes are estimated from what OSDs report, with their noise
    found["bytes"] = {row["pgid"]: round(math.log(row["bytes"]), 1) for row in moves["moves"]}
    found["limits"] = status["limits"]
    found["mispredicted"] = [row["pool_id"] for row in status["mispredicted"]]
    found["drained"] = sorted((row["osd"], row["shards"])
                              for row in _ask(session, "drain ls")["osds"])
    # what the monitor did not keep, and when it is tried again
    found["rejected"] = status["rejected"]
    found["left alone"] = {
        pgid: code for pgid in _sent(session)[:_ASKED]
        for code in [_ask(session, f"explain {pgid}")["reason_code"]]
        if code in ("cooldown", "rejected")}
    return found


def _sent(session: Session) -> List[str]:
    """PGs of which upmap items were sent, by the monitor's log."""
    return sorted({str(entry.command["pgid"]) for entry in session.command_log
                   if entry.sender == MGR and entry.prefix == SET_ITEMS})


def _ask(session: Session, what: str) -> Dict[str, Any]:
    code, out, message = session._module_command(
        ["equilibrium", *what.split(), "--format", "json"])
    assert code == 0, message
    answer: Dict[str, Any] = json.loads(out)
    return answer


def _played(story: Story, at: float, folder: Path, failover: bool) -> Dict[str, Any]:
    folder.mkdir()
    session = clusters.session_of(story.cluster, story.seed, folder)
    for line in story.lines:
        drive.command(session, line)
    session.host.run_for(at)
    # nothing more is sent by either: what is compared is what has been
    drive.command(session, f"{_OUT}max_moves_per_round 1")
    drive.command(session, "osd set norebalance")
    if failover:
        drive.command(session, "sim failover")
    session.host.run_for(_LOOK_SECONDS)
    session.command("equilibrium status")
    session.host.run_for(10.0)
    facts = _facts(session)
    session.close()
    return facts


@pytest.mark.parametrize("case", few(_CASES, 5), ids=lambda case: f"{case[0]}-{case[1]}")
def test_the_next_mgr_says_the_same(case: Tuple[str, int], tmp_path: Path) -> None:
    story, at = _STORIES[case[0]], float(case[1])
    without = _played(story, at, tmp_path / "without", False)
    after = _played(story, at, tmp_path / "after", True)
    wrong: List[str] = [f"{name}: {after[name]} after a failover, {was} without"
                        for name, was in without.items() if after[name] != was]
    assert not wrong, "\n".join(wrong)

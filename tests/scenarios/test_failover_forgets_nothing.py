"""A failover forgets nothing: what `status`, `moves`, `drain ls` and `explain` say a look after it
is what they say at that moment of the same run without it."""
from __future__ import annotations

import math
from operator import itemgetter
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Tuple

import pytest

from mgr_stub.console.session import Session
from tests.support.few import few

from . import clusters, drive
from .rules.under_way import is_ours
from .watch.advice import ask


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
                                   "equilibrium on")),
    "steered": Story("random", 2, (
        *_EAGER, f"{_OUT}steer_recovery true", f"{_OUT}hold_placement true", "equilibrium on",
        "sim run 8h", "sim backfill rate 20M", "sim osd down 1", "sim osd out 1"))}
_MOMENTS = (120, 420, 1500)
_CASES = [(story, at) for at in _MOMENTS for story in _STORIES]
#: Until the new mgr has looked, and PGs that it has sent have reported.
_LOOK_SECONDS = 150
_ASKED = 12   # PGs that are asked for


def _facts(session: Session) -> Dict[str, Any]:
    """What must not depend on which mgr answers: shards in flight of ours, the limits, what is
    stopped, drained or left alone."""
    status, moves = ask(session, "status"), ask(session, "moves")["moves"]
    sent = sorted({str(entry.command["pgid"]) for entry in session.command_log if is_ours(entry)})
    codes = {pgid: ask(session, f"explain {pgid}")["reason_code"] for pgid in sent[:_ASKED]}
    chosen = {pgid: [said for said in ask(session, f"explain {pgid}")["sentences"]
                     if "(equilibrium, " in said] for pgid in sent[-_ASKED:]}
    keys = itemgetter("pgid", "source", "target", "origin", "state")
    return {
        "moving": sorted(map(keys, moves)),
        # sizes are estimated from what OSDs report, with their noise
        "bytes": {row["pgid"]: round(math.log(row["bytes"]), 1) for row in moves},
        "limits": status["limits"],
        "mispredicted": [row["pool_id"] for row in status["mispredicted"]],
        "drained": sorted(map(itemgetter("osd", "shards"), ask(session, "drain ls")["osds"])),
        # what the monitor did not keep, and when it is tried again
        "rejected": status["rejected"],
        "chosen": chosen,
        "left alone": {pgid: code for pgid, code in codes.items()
                       if code in ("cooldown", "rejected")}}


def _played(story: Story, at: int, folder: Path, *lines: str) -> Dict[str, Any]:
    folder.mkdir()
    session = clusters.session_of(story.cluster, story.seed, folder)
    # nothing more is sent by either: what is compared is what has been
    for line in (*story.lines, f"sim run {at}s", f"{_OUT}max_moves_per_round 1",
                 "osd set norebalance", *lines, f"sim run {_LOOK_SECONDS}s",
                 "equilibrium status", "sim run 10s"):
        drive.command(session, line)
    facts = _facts(session)
    session.close()
    return facts


@pytest.mark.parametrize("case", few(_CASES, 3), ids=lambda case: f"{case[0]}-{case[1]}")
def test_the_next_mgr_says_the_same(case: Tuple[str, int], tmp_path: Path) -> None:
    story, at = _STORIES[case[0]], case[1]
    without = _played(story, at, tmp_path / "without")
    after = _played(story, at, tmp_path / "after", "sim failover")
    wrong: List[str] = [f"{name}: {after[name]} after a failover, {was} without"
                        for name, was in without.items() if after[name] != was]
    assert not wrong, "\n".join(wrong)

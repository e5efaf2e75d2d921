"""Each exclusion ends by itself: what the monitor dropped, a pool that was stopped, what was moved
a moment ago. Played at moments when nothing else would end it."""
from __future__ import annotations

from pathlib import Path
from typing import List, NamedTuple, Tuple

import pytest

from mgr_stub.console.session import Session
from tests.support.few import few

from . import clusters, drive
from .rules.under_way import is_ours
from .watch.truth import ask


class Case(NamedTuple):
    """What leads to the exclusion, what is told of it, and by when something is sent again."""

    lines: Tuple[str, ...]     # commands of the simulation
    told: str                  # reason code of `status`; empty where it is not asked
    then: Tuple[str, ...]      # commands that end the cause, or make an OSD full
    within: str                # for so long the simulation runs then


_DROPPED = ("sim mon drop 1", "equilibrium on", "sim run 20m")
_STOPPED = ("sim swell rbd 2", "sim swell fs 2", "sim backfill rate 100M", "equilibrium on",
            "sim run 40m", "sim swell rbd 0", "sim swell fs 0")
#: The fullest OSD is above backfillfull, and below full.
FULL = "full"
CASES = {
    "dropped, full": Case(_DROPPED, "", ("sim mon drop 0", FULL), "12m"),
    "stopped, full": Case(_STOPPED, "mispredicted", (FULL,), "12m"),
    "dropped": Case(_DROPPED, "", ("sim mon drop 0",), "65m"),
    "dropped, told": Case(("config set mgr mgr/equilibrium/pg_cooldown 0", "sim mon drop 0.9",
                           "sim backfill rate 1G", "equilibrium on", "sim run 50m"), "rejected",
                          ("sim mon drop 0",), "40m"),
    "stopped": Case(_STOPPED, "mispredicted", (), "70m")}


def sent(session: Session) -> int:
    return len(list(filter(is_ours, session.command_log)))


def _play(session: Session, lines: Tuple[str, ...]) -> None:
    for line in lines:
        if line == FULL:
            level = max(usage.utilization for usage in session.cluster.usage.values())
            line = f"sim osd full-ratios {level - 0.03:.3f} {level - 0.01:.3f} 0.97"
        drive.command(session, line)


@pytest.mark.parametrize("name", few(CASES, 2))
def test_something_is_sent_again(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    session = clusters.session_of("random", 6, tmp_path)
    drive.command(session, "config set mgr mgr/equilibrium/start_delay 0")
    watch = drive.watched(session)
    _play(session, case.lines)
    if case.told:
        status = ask(session, "status")
        assert status["reason_code"] == case.told, status["reason"]
        assert "by itself" in status["action"] or "tried again at" in status["action"]
    before = sent(session)
    _play(session, (*case.then, f"sim run {case.within}"))
    broken: List[str] = watch.broken
    assert sent(session) > before, ask(session, "status")["reason"]
    assert not broken
    session.close()

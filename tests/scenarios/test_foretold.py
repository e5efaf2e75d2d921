"""What `eval --fail` foretells of a failure happens, with steering and without: the end, the
highest moment, bytes copied, and which of it finds no room.

`--failures N` has OSDs of N random clusters fail, as in test_steering.py.
"""
from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Tuple

import pytest

from mgr_stub.cluster import pg_reports
from mgr_stub.console.session import Session
from mgr_stub.simulation.backfill import Backfill
from tests.commands.asking import ask

from . import clusters, drive
from .test_steering import DOWN_OUT, RATE, lost, sizes

FULL_RATIOS = "sim osd full-ratios 0.70 0.76 0.95"
TOOFULL = "toofull"
#: Points by which the highest moment may be off.
_TWO_POINTS = 0.02
#: Ratio by which the copied bytes may be off, in addition to three shards: some begin to arrive
#: before shards are steered.
_COPIED = 0.03
#: The same of the bytes that find no room: it depends on the order in which PGs come.
_WAITING = 0.25
_STEP = "sim run 5m"
_LONGEST_STEPS = 12 * 60
#: So many steps without a byte: nothing more comes.
_STILL_STEPS = 12


class Happened(NamedTuple):
    """What came of a failure."""

    peak: float
    end: float
    copied_bytes: float
    waiting: int   # PGs that find no room
    by_log: bool   # PGs are recovered by their logs, which nobody can foretell: none is steered


@pytest.fixture
def copied(monkeypatch: pytest.MonkeyPatch) -> List[float]:
    """The bytes that all transfers copy, one number for each span of time."""
    spans: List[float] = []
    copy = Backfill.copy

    def count(backfill: Backfill, seconds: float) -> None:
        spans.append(sum(transfer.rate for transfer in backfill._active) * max(0.0, seconds))
        copy(backfill, seconds)
    monkeypatch.setattr(Backfill, "copy", count)
    return spans


@pytest.mark.parametrize("steers", [False, True])
def test_what_is_foretold_happens(failure_seed: int, steers: bool, tmp_path: Path,
                                  copied: List[float]) -> None:
    session = clusters.session_of("random", failure_seed, tmp_path)
    drive.command(session, "equilibrium on")
    drive.command(session, "sim run 10h")
    drive.command(session, f"sim backfill rate {RATE}")
    osds = lost(failure_seed, session)
    told, happened = play(session, ",".join(map(str, osds)), steers, copied)
    largest, smallest = sizes(failure_seed, tmp_path)
    if steers and not happened.by_log:
        told = told["steered"]
    check(told, happened, largest, largest / smallest)


@pytest.mark.full
def test_what_is_told_to_do_gives_all_of_it_room(copied: List[float]) -> None:
    session = Session.from_state(None, release=18)
    for line in ("balancer off", "equilibrium on", "sim run 10h", FULL_RATIOS):
        drive.command(session, line)
    told, happened = play(session, "host3", True, copied)
    assert told["steered"]["backfill_toofull_pgs"] and happened.waiting
    advice = re.search("osd set-backfillfull-ratio [0-9.]+", told["to_do"])
    assert advice is not None
    drive.command(session, advice[0])
    assert not until_still(session, copied, False).waiting


def play(session: Session, failure: str, steers: bool, copied: List[float]
         ) -> Tuple[Dict[str, Any], Happened]:
    """Returns what is foretold of a failure, and what happens. Balancing is off then."""
    for option in ("steer_recovery", "hold_placement"):
        drive.command(session, f"config set mgr mgr/equilibrium/{option} {str(steers).lower()}")
    drive.command(session, "sim run 5m")
    told: Dict[str, Any] = ask(session, f"eval --fail {failure}")
    if not steers:
        drive.command(session, "equilibrium off")
    copied.clear()
    for osd in told["failure"]["osds"]:
        drive.command(session, f"sim osd down {osd}")
    drive.command(session, DOWN_OUT)
    by_log = any("recover" in state for state in states(session))
    if steers:
        drive.command(session, "sim run 2m")
        drive.command(session, "equilibrium off")
    return told, until_still(session, copied, by_log and steers)


def states(session: Session) -> List[str]:
    """The states of PGs that are not clean."""
    return [pg_reports.state_of(session.cluster, pg) for pg in session.cluster.unclean.values()]


def until_still(session: Session, copied: List[float], by_log: bool) -> Happened:
    """Runs until nothing more is copied."""
    peak = 0.0
    still = 0
    for _ in range(_LONGEST_STEPS):
        before = sum(copied)
        drive.command(session, _STEP)
        peak = max(peak, fullest(session))
        still = still + 1 if sum(copied) == before else 0
        if still > _STILL_STEPS:
            break
    waiting = sum(TOOFULL in state for state in states(session))
    return Happened(peak, fullest(session), sum(copied), waiting, by_log)


def fullest(session: Session) -> float:
    """The highest utilization of an OSD that is in."""
    osd_map = session.cluster.map
    return max(usage.used / usage.total for osd, usage in session.cluster.usage.items()
               if usage.total and osd_map.reweight(osd))


def check(told: Dict[str, Any], happened: Happened, shard: float, shard_ratio: float) -> None:
    """Compares both. `shard`: the bytes of the largest one; `shard_ratio`: of the smallest OSD."""
    text = f"{json.dumps(told)[:900]} {happened}, a shard is {shard_ratio:.3f} of an OSD"
    points = max(_TWO_POINTS, shard_ratio)
    if happened.by_log:   # then steering helps less: it is no worse than CRUSH alone
        assert happened.peak <= told["peak_utilization"] + points, text
        return
    assert abs(told["peak_utilization"] - happened.peak) <= points, text
    assert bool(told["backfill_toofull_pgs"]) == bool(happened.waiting), text
    waiting = told["no_room_bytes"]
    off = abs(told["copied_bytes"] - waiting - happened.copied_bytes)
    assert off <= _COPIED * told["copied_bytes"] + 3 * shard + _WAITING * waiting, text
    if not waiting:
        assert abs(told["max_utilization"] - happened.end) <= shard_ratio / 2, text

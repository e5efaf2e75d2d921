"""A3 nothing waits without end: the relief of an OSD above backfillfull and a drain send something
within ten minutes, whatever else changes how often, or a health check says what holds them."""
from __future__ import annotations

from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Tuple

import pytest

from mgr_stub.console.session import Session
from mgr_stub.mgr.mgr_process import CALLS
from mgr_stub.osdmap.osd_map import MapChange
from tests.support.few import few

from .. import clusters
from ..drive import command, watched
from ..rules.under_way import UpmapLog
from .drift import set_class

#: Of two device classes, each with pools of its own.
_CLUSTER = ("random", 4)
_LONGEST_SECONDS, _SECONDS = 600.0, 1500.0
_SET = "config set mgr mgr/equilibrium/"
#: Changes that there have been before it begins.
_BEFORE = 4
_CHECKS = "MGR_EQUILIBRIUM_"


def _others(session: Session) -> int:
    """An OSD of another class than those that must not wait."""
    return min(osd for osd, name in session.cluster.crush.classes.items() if name != "hdd")


def _crush(session: Session, turn: int) -> List[str]:
    return [f"sim osd crush-reweight {_others(session)} {0.25 + 0.001 * turn:.3f}"]


def _last(session: Session) -> int:
    """An OSD of the same class."""
    return max(osd for osd, name in session.cluster.crush.classes.items() if name == "hdd")


#: (what changes at each turn, every so many seconds)
CHANGES: Dict[str, Tuple[Callable[[Session, int], List[str]], float]] = {
    "nothing": (lambda session, turn: [], 60.0), "each map read": (lambda session, turn: [], 60.0),
    "CRUSH each second": (_crush, 1.0), "CRUSH": (_crush, 50.0),
    "own class": (lambda session, turn: [
        f"sim osd crush-reweight {_last(session)} {0.25 + 0.0001 * turn:.4f}"], 50.0),
    "pools": (lambda session, turn: [f"sim pool rm tmp{turn - 1}" if turn % 2 else
                                     f"sim pool create tmp{turn} pg_num=1 size=3"], 50.0),
    "an OSD flaps": (lambda session, turn: [
        f"sim osd {'up' if turn % 2 else 'down'} {_others(session)}"], 40.0),
    "hosts": (lambda session, turn: [f"sim host add new{turn} 1 256G class=nvme"], 50.0),
    "classes": (lambda session, turn: set_class(
        session, _others(session), "nvme" if turn % 2 else "ssd"), 50.0)}


# -- what must not wait ----------------------------------------------------------------------------

def _relief(session: Session) -> int:
    """Of the fullest OSD of its class, as what it stores comes to take more."""
    usage = session.cluster.usage
    osd = max((osd for osd, name in session.cluster.crush.classes.items() if name == "hdd"),
              key=lambda osd: usage[osd].utilization)
    command(session, f"sim osd allocation 1.2 {osd}")
    level = usage[osd].utilization
    command(session, f"sim osd full-ratios {level - 0.05:.3f} {level - 0.04:.3f} 0.95")
    return osd


def _drain(session: Session) -> int:
    command(session, "equilibrium drain add 0")
    return 0


def _is_done(session: Session, osd: int, subject: str) -> bool:
    cluster = session.cluster
    if subject == "drain":
        return not any(osd in up for up in cluster.map.up.values())
    return cluster.usage[osd].utilization <= cluster.map.ratio("backfillfull_ratio")


def _change_at_each_map(session: Session) -> None:
    """Another osdmap comes whenever one has been read, as where that takes longer than a second."""
    process: Any = session.mgr.process
    call = process.call

    @contextmanager
    def followed(name: str) -> Iterator[None]:
        with call(name):
            yield
        if name == CALLS["map"]:
            session.simulation.apply_change(MapChange(force_epoch=True))
    process.call = followed


#: The others take long, and wait for the same: each change with one of both by turns.
_QUICK = (("CRUSH", "drain"),)
_BY_TURNS = zip(CHANGES, cycle(("relief", "drain")))
_CASES = few([*_QUICK, *(case for case in _BY_TURNS if case not in _QUICK)], len(_QUICK))


@pytest.mark.parametrize("case", _CASES, ids="-".join)
def test_nothing_waits_without_end(case: Tuple[str, str], tmp_path: Path) -> None:
    change, subject = case
    session = clusters.session_of(*_CLUSTER, tmp_path)
    watch = watched(session)
    for line in ("sim backfill rate 1G", "equilibrium on"):
        command(session, line)
    session.host.run_for(7200.0)   # balanced
    for line in ("sim backfill rate 20M", _SET + "max_backfills_per_osd 1"):
        command(session, line)
    happen, every = CHANGES[change]
    for turn in range(_BEFORE):
        for line in happen(session, turn):
            command(session, line)
        session.host.run_for(every)
    if change == "each map read":
        _change_at_each_map(session)
    osd = (_relief if subject == "relief" else _drain)(session)
    start = last = session.clock.now
    waited, log = 0.0, UpmapLog(session)
    while session.clock.now < start + _SECONDS and not _is_done(session, osd, subject):
        turn += 1
        session.host.run_until(start + (turn - _BEFORE + 1) * every)
        for line in happen(session, turn):
            command(session, line)
        checks = [code for code in session.mgr.health_checks if code.startswith(_CHECKS)]
        if log.ours() or checks:
            last = session.clock.now
        waited = max(waited, session.clock.now - last)
    reason = session.module.balancer.status.reason
    session.close()
    assert not watch.broken
    assert waited <= _LONGEST_SECONDS, reason


@pytest.mark.parametrize("forbidding", few(["pool_ids {pool}", "not_buckets {host}"], 1))
def test_options_bind_what_is_under_way_while_crush_does_not_rest(
        forbidding: str, tmp_path: Path) -> None:
    """S12, of a plan that goes on while the map is edited."""
    session = clusters.session_of(*_CLUSTER, tmp_path)
    watch = watched(session)
    for line in ("sim backfill rate 20M", _SET + "max_moves_per_round 1",
                 # plans that steer would take its place
                 _SET + "hold_placement false", _SET + "steer_recovery false",
                 _SET + "max_backfills_per_osd 1", "equilibrium on"):
        command(session, line)
    session.host.run_for(300.0)
    names = {"pool": min(session.cluster.map.pools),
             "host": session.cluster.crush.host_of(_last(session))}
    for turn in range(24):
        for line in _crush(session, turn):
            command(session, line)
        if turn == 4:
            assert session.module.balancer.execution is not None
            command(session, _SET + forbidding.format(**names))
        session.host.run_for(30.0)
    session.close()
    assert not watch.broken

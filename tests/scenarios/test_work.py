"""What the module may cost in each state: readings of the cluster, maps, statistics and plans.

How much work the module makes for the mgr and the monitors, as the simulated mgr counts it.
"""
from __future__ import annotations

import pytest
from pathlib import Path
from typing import Callable, Dict, NamedTuple, Tuple

from mgr_stub.console.session import Session
from mgr_stub.events import cluster_events

from . import clusters


class Work(NamedTuple):
    """Since a mgr became active; of plans alone it is the module's word."""

    full_readings: int = 0          # full readings of the cluster
    pg_stats: int = 0
    osdmap_dumps: int = 0
    kv_writes: int = 0
    plans: int = 0

    def __sub__(self, other: Work) -> Work:
        return Work(*(mine - theirs for mine, theirs in zip(self, other)))


def work_of(session: Session) -> Work:
    """As of now."""
    calls: Dict[str, int] = session.mgr.calls
    return Work(
        full_readings=calls.get("pg_progress", 0),
        pg_stats=calls.get("pg_stats", 0),
        osdmap_dumps=calls.get("osdmap.dump", 0),
        kv_writes=session.mgr.store.writes, plans=(
            session.module.plan_service.plans_begun if session.module is not None else 0))


_SEED = 1
_MINUTE, _HOUR, _DAY = 60.0, 3600.0, 86400.0
_SET = "config set mgr mgr/equilibrium/"
_MOST_LOOKS_BALANCED = 6   # an hour


def open_session(folder: Path) -> Session:
    session = clusters.session_of("random", _SEED, folder)
    session.command(_SET + "start_delay 0")
    session.command("sim backfill rate 1G")
    return session


def balanced(folder: Path, *before: str) -> Session:
    session = open_session(folder)
    for line in (*before, "equilibrium on"):
        session.command(line)
    session.host.run_for(6 * _HOUR)
    assert session.module.balancer.status.state == "balanced"
    return session


def every_minute(session: Session, seconds: float, happen: Callable[[int], None]) -> Work:
    """Lets time pass with something in each minute of it; returns what that cost."""
    simulation = session.simulation
    for minute in range(int(seconds / _MINUTE)):
        simulation.schedule.at(session.clock.now + minute * _MINUTE + 1.0,
                               lambda minute=minute: happen(minute))  # type: ignore[misc]
    before = work_of(session)
    session.host.run_for(seconds)
    return work_of(session) - before


def foreign_epoch(session: Session) -> Callable[[int], None]:
    """Somebody's flag that concerns nobody: an epoch."""
    return lambda minute: cluster_events.set_flag(session.simulation, "noscrub", minute % 2 == 0)


def test_off_costs_nothing_though_an_epoch_comes_each_minute(tmp_path: Path) -> None:
    session = open_session(tmp_path)
    session.host.run_for(600.0)
    epoch = session.cluster.map.epoch
    work = every_minute(session, _DAY, foreign_epoch(session))
    assert session.cluster.map.epoch > epoch + 1400
    assert work == Work()


_GUARDS: Dict[str, Tuple[str, str]] = {   # what stops, and the state that comes of it
    "flag": ("sim flag set norebalance", "blocked"),
    "window": (_SET + "begin_time 1200", "waiting"),
    "builtin": ("sim balancer on", "blocked"),
    "monitor": ("sim mon down", "blocked")}


@pytest.mark.parametrize("under_way", [False, True])
@pytest.mark.parametrize("guard", _GUARDS)
def test_what_stands_in_the_way_is_all_that_is_looked_at(guard: str, under_way: bool,
                                                         tmp_path: Path) -> None:
    session, (line, state) = open_session(tmp_path), _GUARDS[guard]
    before = ("sim backfill rate 1M", "equilibrium on") if under_way else ()
    # what has been sent arrives, and the cluster log has its line of an hour, which is marked once
    lines = [*before, line, "equilibrium on", "sim backfill rate 1G"]
    if guard == "builtin":
        lines.append(line)   # again: `on` has switched it off
    for one in lines:
        session.command(one)
    session.host.run_for(80 * _MINUTE)   # no command: one waits in real time for a monitor
    assert session.module.balancer.status.state == state
    work = every_minute(session, 4 * _HOUR, foreign_epoch(session))
    assert work == Work()


def test_balanced_looks_seldom(tmp_path: Path) -> None:
    session = balanced(tmp_path)
    work = every_minute(session, 6 * _HOUR, foreign_epoch(session))
    assert session.module.balancer.status.state == "balanced"
    assert work.full_readings <= 6 * _MOST_LOOKS_BALANCED
    assert work.pg_stats <= 6
    assert not work.plans and not work.kv_writes


def test_a_tiny_pool_that_swings_makes_no_plan(tmp_path: Path) -> None:
    session = balanced(tmp_path, "sim pool create swings pg_num=8 size=3", "sim write swings 1M")
    before = work_of(session)
    for turn in range(6 * 6):
        session.command(f"sim {'delete' if turn % 2 else 'write'} swings 70K")
        session.host.run_for(600.0)
    work = work_of(session) - before
    assert not work.plans
    assert work.full_readings <= 6 * _MOST_LOOKS_BALANCED

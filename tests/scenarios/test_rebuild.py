"""What the screens say while Ceph rebuilds lost shards for hours, and after a second failure."""
from __future__ import annotations

import random
from pathlib import Path
from typing import Any, Iterator, List

import pytest

from equilibrium_mgr.control.steering import SteeringTrigger
from equilibrium_mgr.plan.model import BALANCE, STEER, has_begun
from equilibrium_mgr.plan.options import PlanOptions, Steering
from equilibrium_mgr.planner.steering import steering_plan
from equilibrium_mgr.runtime.formatting import parse_span
from equilibrium_mgr.snapshot.model import SnapshotPgs
from mgr_stub.console.session import Session
from tests.commands.asking import ask
from tests.support.few import few

from . import drive
from .test_steering import Rebuild, lacking_pgs

_STEERING = ("steer_recovery", "hold_placement")


@pytest.fixture
def session(balanced: Path) -> Iterator[Session]:
    made = Session.from_state(str(balanced), release=18)
    for name in _STEERING:
        drive.command(made, option(name, True))
    for line in ("balancer off", "equilibrium on", "sim run 5m", "sim backfill rate 5M"):
        drive.command(made, line)
    yield made
    made.close()


def option(name: str, value: Any) -> str:
    return f"config set mgr mgr/equilibrium/{name} {str(value).lower()}"


def lose(session: Session, host: str) -> None:
    """The OSDs of a host are down, and out after ten minutes."""
    drive.command(session, f"sim host down {host}")
    drive.command(session, "sim run 10m")


def soon(session: Session) -> float:
    """The highest utilization once all has arrived, as said."""
    view = session.module.balancer.status.view
    return max([usage.max for usage in view.classes_soon.values()])


def outcomes(session: Session, since: float) -> List[str]:
    """How the episodes ended that have begun since then."""
    return [entry["outcome"] for entry in session.module.balancer.status.history
            if entry["started_at"] >= since]


def test_a_rebuild_of_hours_is_never_called_stuck(session: Session) -> None:
    began = session.clock()
    lose(session, "host3")
    rebuild = Rebuild()
    codes = set()
    for _ in range(80):
        drive.command(session, "sim run 1m")
        rebuild.observe(session)
        codes.add(session.module.balancer.status.reason_code)
    assert rebuild.minutes > 60
    assert not rebuild.wrong
    assert "degraded" in codes
    assert outcomes(session, began) == []


def test_a_rebuild_that_stands_still_is_called_stuck(session: Session) -> None:
    lose(session, "host3")
    drive.command(session, "sim run 30m")
    drive.command(session, "sim backfill rate 0")
    balancer = session.module.balancer
    for _ in range(40):
        drive.command(session, "sim run 4m")
        if balancer.status.state == "stuck":
            break
    assert balancer.status.state == "stuck"


def test_pgs_that_could_not_be_steered_are_asked_again(session: Session) -> None:
    """PGs still peer as shards are steered after a second failure."""
    lose(session, "host3")
    drive.command(session, "sim run 5m")
    began = session.clock()
    drive.command(session, "sim peering 100s")
    drive.command(session, "sim osd down 8")
    drive.command(session, "sim run 11m")
    first = session.module.balancer.status.steered
    assert first is not None
    assert first.skipped["it is peering"] > 10
    highest = soon(session)
    drive.command(session, "sim run 5m")
    steered = session.module.balancer.status.steered
    assert steered is not None
    assert "it is peering" not in steered.skipped
    assert steered.at > first.at
    assert soon(session) < highest - 0.05
    times = [row.at for row in session.module.balancer.changes().rows(began) if row.kind == STEER]
    assert max(times) - first.at < 180.0   # when they have peered for so long, and half a minute
    assert len([at for at in times if at > steered.at + 30.0]) == 0


@pytest.mark.parametrize("flaps, most_plans", [(True, 8), (False, 24)])
def test_pgs_that_flap_make_no_plan_each_minute(session: Session, flaps: bool,
                                                most_plans: int) -> None:
    """For three hours PGs peer again and again, or become active one after the other."""
    lose(session, "host3")
    drive.command(session, "sim run 1m")
    balancer = session.module.balancer
    snapshot = balancer.observer.observe(None)
    settings = balancer._settings()
    moving = {pgid: pg for pgid, pg in snapshot.in_flight().items()
              if "backfill" in pg.state and not has_begun(pg)}
    assert len(moving) > 80
    empty = steering_plan(snapshot, PlanOptions(pool_ids=frozenset(), steering=Steering()))
    plan = empty._replace(left_alone=dict.fromkeys(moving, "it is peering"))
    trigger = SteeringTrigger()
    trigger.observe(snapshot, "before", 0.0)
    rng = random.Random(1)
    times = []
    for now in range(60, 3 * 3600, 15):
        pgs = SnapshotPgs(snapshot.pgs)
        for number, (pgid, pg) in enumerate(moving.items()):
            is_active = rng.random() < 0.5 if flaps else number * 120 < now - 600
            if not is_active:
                pgs[pgid] = pg._replace(state="peering")
        pgs.moving = {pgid: pgs[pgid] for pgid in snapshot.in_flight()}
        trigger.observe(snapshot._replace(pgs=pgs), "after", float(now))
        if trigger.is_due(settings, now):
            trigger.begin_plan(settings, snapshot, now)
            trigger.take_up(plan, snapshot, now)
            times.append(now)
    assert 2 < len(times) <= most_plans
    assert min(later - time for time, later in zip(times, times[1:])) >= 30


@pytest.mark.parametrize("failure", few(["sim osd down 6", "sim host down host3"], 1))
def test_the_history_shows_when_a_rebuild_has_ended(session: Session, failure: str) -> None:
    """Balancing may have nothing to do meanwhile: min_gain keeps it from that here."""
    drive.command(session, option("min_gain", 0.9))
    drive.command(session, "sim backfill rate 100M")
    began = session.clock()
    drive.command(session, failure)
    drive.command(session, "sim run 11m")
    whole_at = 0.0
    for _ in range(90):
        drive.command(session, "sim run 4m")
        if not whole_at and not session.cluster.unclean:
            whole_at = session.clock()
        if whole_at and outcomes(session, began):
            break
    entries = [entry for entry in session.module.balancer.status.history
               if entry["started_at"] >= began]
    assert len(entries) == 1
    assert "that are copied anyway" in entries[0]["why"]
    assert 0.0 <= entries[0]["ended_at"] - whole_at + 240.0 <= 900.0


def test_a_new_mgr_does_not_call_moves_of_crush_its_own() -> None:
    """Monitors drop upmap items that name lost OSDs, also those of moves that have arrived."""
    session = Session.from_state(release=18)
    for name in _STEERING:
        drive.command(session, option(name, False))
    for line in ("balancer off", "equilibrium on", "sim run 10h", "sim backfill rate 5M"):
        drive.command(session, line)
    lose(session, "host3")
    drive.command(session, "sim run 2m")
    before = session.module.balancer.status.view
    assert before is not None
    assert before.moving.shards == 0
    drive.command(session, "sim failover")
    drive.command(session, "sim run 3m")
    after = session.module.balancer.status.view
    assert after is not None
    assert after.moving.other_shards > 20
    assert after.moving.shards == 0


def test_balancing_goes_on_when_a_rebuild_has_ended(session: Session) -> None:
    began = session.clock()
    drive.command(session, "sim backfill rate 100M")
    lose(session, "host3")
    drive.command(session, "sim run 6h")
    assert not session.cluster.unclean
    assert outcomes(session, began) == ["balanced"]


@pytest.mark.full
def test_pools_that_are_whole_are_balanced_during_a_rebuild_of_others() -> None:
    """Their PGs are scrubbed for longer than max_wait when the plan is made."""
    session = Session.from_state(release=18)
    ssds = session.cluster.utilizations()["ssd"]
    hdds = session.cluster.utilizations()["hdd"]
    for line in ("balancer off", option("max_wait", 600),
                 f"sim backfill rate 1M {' '.join(map(str, hdds))}", "sim osd out 0",
                 "sim osd lose 0", "sim run 3m"):
        drive.command(session, line)
    for pgid, up in sorted(session.cluster.map.up.items()):
        if ssds.keys() & up:
            drive.command(session, f"sim scrub {pgid} 40m")
    drive.command(session, "equilibrium on")
    drive.command(session, "sim run 3h")
    assert session.cluster.unclean
    after = session.cluster.utilizations()["ssd"].values()
    assert max(after) - min(after) < 0.05
    session.close()


@pytest.mark.full
def test_a_rebuild_of_some_pools_does_not_hide_that_others_are_stuck(balanced: Path) -> None:
    """A pool is far from its bound by max_upmap_items, with PGs that nobody rebuilds; an OSD of
    another class goes and comes."""
    session = Session.from_state(str(balanced), release=18)
    for line in ("balancer off", "sim osd full-ratios 0.93 0.95 0.97", option("max_upmap_items", 2),
                 "sim pool create big pg_num=32 size=3", "equilibrium on", "sim run 5m",
                 "sim write big 10T", "sim run 75m",
                 "sim backfill rate 10M 3 7 11 15 19 23", "sim flag set noout", "sim osd down 12",
                 "sim run 75m"):
        drive.command(session, line)
    states = set()
    for _ in range(4):
        for line in ("sim osd down 3", "sim write fast 4G", "sim run 2m", "sim osd up 3",
                     "sim run 28m"):
            drive.command(session, line)
        states.add(session.module.balancer.status.state)
    assert states == {"stuck"}
    assert "MGR_EQUILIBRIUM_STUCK" in session.mgr.health_checks
    session.close()


def test_the_time_left_of_a_rebuild_is_told(session: Session) -> None:
    drive.command(session, "sim backfill rate 20M")
    lose(session, "host3")
    drive.command(session, "sim run 10m")
    told = ask(session, "status")["rebuilding"]
    seconds = parse_span(told.rpartition(" about ")[2].removesuffix(" left"))
    began = session.clock()
    while lacking_pgs(session):
        drive.command(session, "sim run 2m")
    assert seconds is not None
    assert 0.6 < seconds / (session.clock() - began) < 1.6


def test_balancing_begins_when_a_rebuild_has_ended(session: Session) -> None:
    """It ends just after the plan has waited for longer than max_wait."""
    drive.command(session, option("max_wait", 600))
    lose(session, "host3")
    drive.command(session, "sim run 5m")
    balancer = session.module.balancer
    waiting = balancer.execution
    while balancer.execution is waiting:
        drive.command(session, "sim run 1m")
    drive.command(session, "sim backfill rate 4G")
    drive.command(session, "sim run 7m")
    assert not lacking_pgs(session)
    assert balancer.changes().rows()[-1].kind == BALANCE   # and no longer STEER


@pytest.mark.full
def test_a_plan_for_pools_that_stand_still_is_given_up_during_a_rebuild_of_others() -> None:
    """An OSD of another class is down, and nobody may rebuild its shards."""
    session = Session.from_state(release=18)
    for line in ("balancer off", option("max_wait", 600), "sim flag set noout", "sim osd down 5",
                 "sim backfill rate 100K", "sim osd out 3", "sim osd lose 3", "sim run 2m",
                 "equilibrium on"):
        drive.command(session, line)
    states = set()
    for _ in range(30):
        drive.command(session, "sim run 2m")
        states.add(session.module.balancer.status.state)
    assert "stuck" in states
    session.close()

"""Shards that are copied anyway are steered as far as the options allow, and nobody's moves are
taken back by that."""
from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Iterator, List, Optional, Set

import pytest

from equilibrium_mgr.control.steering import SteeringTrigger
from equilibrium_mgr.crush.placement import NO_OSD
from equilibrium_mgr.plan_service import plan_service
from equilibrium_mgr.plan.model import STEER
from equilibrium_mgr.plan.options import PlanOptions, Steering
from equilibrium_mgr.planner import steering
from equilibrium_mgr.planner.steering import steering_plan
from equilibrium_mgr.runtime.time_slice import giving_way
from equilibrium_mgr.snapshot.model import SnapshotPgs
from mgr_stub.console.session import Session
from mgr_stub.monitor.monitor import MGR
from tests.support.few import few
from tests.support.giving_way import Asked

from . import drive
from .test_rebuild import lose, option, soon
from .rules.under_way import REMOVE_ITEMS, SET_ITEMS

#: A change of weights moves shards, of which no data arrives meanwhile.
_CHANGE = "sim osd crush-reweight 2 0"


@pytest.fixture
def session(balanced: Path) -> Iterator[Session]:
    made = Session.from_state(str(balanced), release=18)
    for line in ("balancer off", option("hold_placement", True), "equilibrium on", "sim run 5m",
                 "sim backfill rate 1000"):
        drive.command(made, line)
    yield made
    made.close()


def sent(session: Session) -> Set[str]:
    """PGs whose upmap items the module has sent."""
    return {str(entry.command["pgid"]) for entry in session.command_log
            if entry.sender == MGR and entry.prefix in (REMOVE_ITEMS, SET_ITEMS)}


def chosen(session: Session) -> Any:
    """What was chosen for shards on their way."""
    return session.module.balancer.status.steered


def test_items_that_somebody_has_removed_are_not_restored(session: Session) -> None:
    removed = sorted(session.cluster.map.upmap_items)[:8]
    for pgid in removed:
        drive.command(session, f"osd rm-pg-upmap-items {pgid}")
    drive.command(session, "sim osd reweight 23 0.99")
    drive.command(session, "sim run 1m")
    assert sent(session).isdisjoint(removed)


def test_pgs_of_other_device_classes_stay_as_they_are(session: Session) -> None:
    drive.command(session, option("device_classes", "ssd"))
    drive.command(session, _CHANGE)
    drive.command(session, "sim run 1m")
    assert not sent(session)
    drive.command(session, option("device_classes", "hdd"))
    drive.command(session, "sim osd crush-reweight 0 0")
    drive.command(session, "sim run 1m")
    assert sent(session)


def test_drains_outside_the_window_do_not_open_it(session: Session) -> None:
    hour = (time.localtime(session.clock()).tm_hour + 5) % 24
    drive.command(session, option("begin_time", f"{hour:02}00"))
    drive.command(session, option("end_time", f"{hour:02}01"))
    drive.command(session, "equilibrium drain add osd.5")
    drive.command(session, "sim run 3m")
    assert sent(session)   # by the drain
    drive.command(session, _CHANGE)
    drive.command(session, "sim run 2m")
    assert chosen(session) is None


def test_drains_do_not_widen_the_pools(session: Session) -> None:
    drive.command(session, option("pool_ids", "3"))
    drive.command(session, "equilibrium drain add osd.7")   # ssd: not of pool 3
    drive.command(session, "sim run 3m")
    before = sent(session)
    drive.command(session, _CHANGE)
    drive.command(session, "sim run 1m")   # although a drain is under way
    assert chosen(session) is not None
    assert {pgid.partition(".")[0] for pgid in sent(session) - before} <= {"3", "5", "6"}


@pytest.mark.parametrize("line", few(["sim mgr fail", option("steer_recovery", True)], 1))
def test_shards_are_steered_although_nobody_saw_the_osds_go_out(session: Session,
                                                                line: str) -> None:
    """By the next mgr, and if the option is switched on in the middle."""
    drive.command(session, option("hold_placement", False))
    drive.command(session, option("steer_recovery", "fail" in line))
    drive.command(session, option("start_delay", 0))
    lose(session, "host0")
    drive.command(session, "sim run 10s")
    began = session.clock()
    drive.command(session, line)
    drive.command(session, "sim run 2m")
    steered = chosen(session)
    assert steered is not None and steered.elsewhere_shards > 10
    highest = soon(session)
    sent_first = session.module.balancer.changes().rows(began)[0]
    assert sent_first.kind == STEER   # not relief of OSDs that steering keeps from being full
    drive.command(session, "sim mgr fail")   # and this one takes nothing of it back
    drive.command(session, "sim run 30s")
    again = chosen(session)
    assert again[1:3] == steered[1:3]   # shards elsewhere, and held
    drive.command(session, "sim run 5m")   # it plans again, and finds nothing to change
    assert chosen(session).elsewhere_shards >= steered.elsewhere_shards
    assert soon(session) <= highest + 0.001


def test_a_plan_is_void_once_its_option_is_off(session: Session,
                                               monkeypatch: pytest.MonkeyPatch) -> None:
    plans = []

    def plan(*arguments: Any) -> Any:
        drive.command(session, option("steer_recovery", True))
        drive.command(session, option("hold_placement", False))
        plans.append(steering_plan(*arguments))
        return plans[-1]
    monkeypatch.setattr(plan_service, "steering_plan", plan)
    drive.command(session, _CHANGE)
    drive.command(session, "sim run 50s")
    assert plans[0].changes and not sent(session)


def test_a_plan_that_cannot_be_made_keeps_no_other_from_being_made(
        session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: Any) -> Any:
        raise ValueError("seen once")
    monkeypatch.setattr(plan_service, "steering_plan", fail)
    drive.command(session, "sim backfill rate 100M")
    drive.command(session, _CHANGE)
    drive.command(session, "sim run 3h")
    assert sent(session)   # by balancing
    assert session.module.balancer.status.state != "planning"


def test_a_change_while_a_plan_is_made_is_not_forgotten(session: Session) -> None:
    """Where OSDs change all the time, the part of the plan that is still valid is carried out."""
    balancer = session.module.balancer
    snapshot = balancer.observer.observe(None)
    settings = balancer._settings()
    plan = steering_plan(snapshot, PlanOptions(steering=Steering()))
    trigger = SteeringTrigger()
    for moment, topology in enumerate(("before", "changed")):
        trigger.observe(snapshot, topology, 1000.0 + moment)
    trigger.begin_plan(settings, snapshot, 1035.0)
    trigger.observe(snapshot, "changed again", 1040.0)
    trigger.take_up(plan, snapshot, 1045.0)
    assert trigger.is_due(settings, 1070.0)
    trigger.begin_plan(settings, snapshot, 1070.0)
    trigger.take_up(plan, snapshot, 1075.0)
    assert not trigger.is_due(settings, 1200.0)


def test_balancing_plans_at_once_if_the_monitor_refuses_everything(session: Session) -> None:
    drive.command(session, "sim mon reject 1.0")
    drive.command(session, _CHANGE)
    drive.command(session, "sim run 2m")
    status = session.module.balancer.status
    assert sent(session) and status.steered is None
    assert status.state != "stuck"


def test_holders_that_clash_by_a_new_rule_are_soon_seen(session: Session,
                                                        monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule now wants five hosts where a PG had two: at most two of its shards may be held."""
    snapshot = session.module.balancer.observer.observe(None)
    pg = next(pg for pg in snapshot.pgs.values() if pg.pool == 3)   # erasure-coded, 3+2
    rule = snapshot.pools[3].rule
    assert rule is not None
    # hosts have four OSDs each, one of them an ssd
    holders = (0, 1, 2, 4, 5)
    assert rule.conflict(holders[:2] + (NO_OSD,) * 3)
    moved = pg._replace(holders=holders, acting=holders, state="active+remapped+backfill_wait",
                        uncopied={}, uncopied_ratio=1.0)
    pgs = SnapshotPgs({**snapshot.pgs, pg.pgid: moved})
    pgs.moving = {pg.pgid: moved}
    asked = []
    refusal = type(rule).refusal

    def count(*arguments: Any) -> Any:
        asked.append(arguments)
        return refusal(*arguments)
    monkeypatch.setattr(type(rule), "refusal", count)
    found, _ = steering._steered_pgs(snapshot._replace(pgs=pgs), PlanOptions(),
                                     Steering(at_rest=frozenset((pg.pgid,))))
    assert len(set(found[pg.pgid].up) & set(holders)) >= 2
    assert len(asked) < 400


def test_a_plan_that_is_to_end_ends(session: Session) -> None:
    drive.command(session, option("hold_placement", False))
    drive.command(session, _CHANGE)
    drive.command(session, "sim run 30s")
    snapshot = session.module.balancer.observer.observe(None)
    moving = frozenset(snapshot.in_flight())
    options = PlanOptions(steering=Steering(at_rest=moving))
    asked = Asked(len(moving) // 2)
    with giving_way(asked):
        part = steering_plan(snapshot, options)
    whole = steering_plan(snapshot, options)
    assert 0 < len(part.changes) < len(whole.changes)
    assert part.skipped["the time for a plan was over"]
    assert part.stop_reason != whole.stop_reason


def test_steering_that_does_not_come_is_not_waited_for_for_ever(
        monkeypatch: pytest.MonkeyPatch) -> None:
    trigger = SteeringTrigger()

    def until(left: Optional[float], now: float) -> Optional[float]:
        monkeypatch.setattr(trigger, "seconds_left", lambda *_: left)
        return trigger.due_at(None, now, False)  # type: ignore[arg-type]
    assert until(20.0, 1000.0) == 1020.0
    assert until(40.0, 1010.0) == 1050.0   # the OSDs have changed once more
    assert until(0.0, 1170.0) == 1050.0
    assert until(0.0, 1171.0) is None
    assert until(None, 1200.0) is None
    assert until(0.0, 1300.0) == 1300.0


def test_osds_that_flap_make_few_plans(session: Session) -> None:
    """For an hour, so fast that the topology is never quiet."""
    balancer = session.module.balancer
    settings = balancer._settings()
    snapshot = balancer.observer.observe(None)
    plan = steering_plan(snapshot, PlanOptions(steering=Steering()))
    trigger = SteeringTrigger()
    times = []
    for now in range(0, 3600, 10):
        trigger.observe(snapshot, now // 20, float(now))
        if trigger.is_due(settings, now):
            trigger.begin_plan(settings, snapshot, now)
            trigger.observe(snapshot, "while it is made", now + 1.0)
            if now % 100:   # else the plan is void
                trigger.take_up(plan, snapshot, now + 1.0)
            times.append(now)
    assert 2 < len(times) <= 12


WILL_NOT_FIT = "MGR_EQUILIBRIUM_WILL_NOT_FIT"


@pytest.mark.parametrize("steers, line, first_seconds", [
    (True, "", None),
    (False, "", 20),
    # steering cannot avoid it, or must not be
    (True, "sim osd full-ratios 0.6 0.65 0.95", 45),
    (True, "sim flag set norebalance", 0)])
def test_nobody_is_warned_of_what_steering_avoids(
        session: Session, steers: bool, line: str, first_seconds: Optional[int]) -> None:
    """By CRUSH alone an OSD would fill to 98 %, with steering to 77 %."""
    drive.command(session, option("steer_recovery", steers))
    drive.command(session, option("hold_placement", False))
    if line:
        drive.command(session, line)
    drive.command(session, "sim host down host3")
    drive.command(session, "sim run 10m")
    warned = []
    for seconds in range(0, 300, 5):
        drive.command(session, "sim run 5s")
        told = session.command("equilibrium status")[1]
        is_raised = WILL_NOT_FIT in session.mgr.health_checks
        if "will not fit" in told or is_raised:
            warned.append(seconds)
    assert bool(warned) == (first_seconds is not None)
    if first_seconds is not None:
        assert first_seconds - 30 <= warned[0] <= first_seconds + 30
        assert is_raised


@pytest.mark.parametrize("lines, least, most", [
    ([], 0, 60),
    (["sim backfill rate 100M", "sim flag set noout", "sim osd down 0"], 200, 300),
    ([option("end_time", "2300")], 200, 300), ([option("from_buckets", "host1")], 200, 300),
    (["sim pool create test pg_num=4 size=7 rule=replicated_ssd"], 0, 60)],
    ids=["followed", "degraded", "window", "buckets", "degraded ssd"])
def test_hosts_that_are_added_beside_full_ones_are_not_kept_empty(
        session: Session, lines: List[str], least: int, most: int) -> None:
    """While pools are degraded, near the end of the window, or with options that leave OSDs out,
    balancing cannot go on from shards that are held; it can if pools of another class are degraded.
    `least`, `most`: shards on their way to the new OSDs."""
    for line in ("sim write vms 2600G", *lines, "sim run 15m", "sim host add newa 4 2T",
                 "sim host add newb 4 2T", "sim run 90s"):
        drive.command(session, line)
    coming = 0
    for pg in session.cluster.unclean.values():
        new = set(session.cluster.map.up[pg.pgid]) - set(pg.held)
        coming += len([osd for osd in new if osd >= 24])
    assert least <= coming <= most

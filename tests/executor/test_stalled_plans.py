"""No plan is kept open for ever by what waits for ever, nor blind to what happens meanwhile."""
from __future__ import annotations

from typing import Any

import pytest
from builders import GIB
from fakes import Desk
from rounds import kept, small_plan, uneven

SCRUBBED = "active+clean+scrubbing+deep"


def scrubbed(desk: Desk, pgid: str) -> None:
    records = desk.gateway.cluster.records
    records[pgid] = records[pgid]._replace(state=SCRUBBED)


def one_waits(**options: Any) -> Desk:
    """An automatic plan of which all has gone but for one PG in a scrub that never ends."""
    desk = Desk(uneven(), active=True, **options)
    desk.round()
    desk.jobs.run()
    ready = desk.balancer._automatic._ready
    assert ready is not None
    scrubbed(desk, ready.plan.changes[-1].pgid)
    desk.round(60)
    desk.gateway.arrive()
    scrubbed(desk, ready.plan.changes[-1].pgid)
    return desk


def test_change_that_waits_for_ever_is_given_up_with_its_reason() -> None:
    desk = one_waits(max_wait=1800)
    for _ in range(28):
        assert desk.round(60) == "blocked"
    for _ in range(5):
        desk.round(60)
    last = desk.balancer.last_walk
    assert last is not None and last["outcome"] == "through"
    dropped, = last["dropped"]
    assert dropped["reason"] == ("waited longer than max_wait (1800 s): pg %s is being scrubbed"
                                 % dropped["pgid"])


def test_other_osds_are_helped_all_the_same() -> None:
    """Seven days; another OSD has passed nearfull meanwhile."""
    desk = one_waits()
    desk.gateway.cluster.osd(2, used=88 * GIB)
    plans = 0
    for _ in range(90):
        desk.round(60)
        plans += desk.jobs.run()
    assert plans >= 1
    assert desk.balancer.walk is None or desk.balancer.walk.sent_moves


def test_target_that_is_down_but_in() -> None:
    desk = Desk(uneven())
    desk.gateway.cluster.osd(1, state=["exists"], up=0)
    desk.balancer.execute("p", kept(desk, plan=small_plan(2)))
    for _ in range(70):
        desk.round(60)
    assert desk.balancer.walk is None and not desk.gateway.sent
    last = desk.balancer.last_walk
    assert last is not None and last["dropped"][0]["reason"].endswith("osd.1 is down")
    assert last["outcome"].startswith("given up: waited longer than max_wait")   # not 'through'


@pytest.mark.parametrize("arrives, gives_up", [(True, False), (False, True)])
def test_throttle_is_waited_for_as_long_as_others_moves_arrive(arrives: bool,
                                                               gives_up: bool) -> None:
    desk = Desk(uneven())
    desk.gateway.ratio = 0.05
    desk.balancer.execute("p", kept(desk, plan=small_plan(2)))
    for look in range(100):
        desk.gateway.cluster.pg_status = {
            "misplaced_objects": 5000 - look // 2 * arrives, "misplaced_total": 10000}
        desk.round(600)
    assert (desk.balancer.walk is None) == gives_up and not desk.gateway.sent


def test_time_in_which_everything_is_stopped_does_not_count() -> None:
    desk = one_waits()
    desk.round(60)
    desk.gateway.cluster.extra["flags"] = "norebalance"
    for _ in range(5):
        desk.round(3600)
    desk.gateway.cluster.extra["flags"] = ""
    desk.round(60)
    assert desk.balancer.walk is not None and desk.balancer.walk.remaining_moves


def test_a_clock_that_jumps_ahead_gives_nothing_up() -> None:
    desk = one_waits(max_wait=3600)
    desk.round(60)
    desk.round(8 * 3600)     # ntp found the hour
    assert desk.balancer.walk is not None and desk.balancer.walk.remaining_moves


def drifting(used: int, **options: Any) -> Desk:
    """One move a round; osd.2 is filled by somebody while they go."""
    desk = Desk(uneven(), active=True, max_moves_per_round=1, **options)
    desk.round()
    desk.jobs.run()
    desk.round(60)
    assert desk.balancer.walk is not None
    desk.gateway.cluster.osd(2, used=used)
    return desk


@pytest.mark.parametrize("used, plans", [(2 * GIB, 0), (60 * GIB, 1), (88 * GIB, 1)])
def test_drift_counts_during_a_plan(used: int, plans: int) -> None:
    desk = drifting(used)
    desk.round(660)
    desk.round(60)
    assert desk.jobs.run() == plans


@pytest.mark.parametrize("arrives, gives_up", [(True, False), (False, True)])
def test_what_the_throttle_holds_up_is_kept_behind_what_only_waits(arrives: bool,
                                                                   gives_up: bool) -> None:
    """The first PG is scrubbed for hours; meanwhile large PGs arrive that the others wait for."""
    desk = Desk(uneven())
    desk.gateway.ratio = 0.05
    desk.balancer.execute("p", kept(desk, plan=small_plan(3)))
    scrubbed(desk, "1.0")
    for look in range(100):
        desk.gateway.cluster.pg_status = {
            "misplaced_objects": 5000 - look * arrives, "misplaced_total": 10000}
        desk.round(600)
    assert (desk.balancer.walk is None) == gives_up and not desk.gateway.sent


@pytest.mark.parametrize("is_named", [True, False])
def test_one_pg_that_never_arrives_keeps_nothing_else_from_being_balanced(is_named: bool) -> None:
    """Missing an object, or in backfill_toofull: of the plan all has gone, and one is never clean."""
    desk = Desk(uneven(pgs=24), active=True, max_misplaced_ratio=1.0, max_wait=3600)
    if is_named:
        desk.balancer.execute("p", kept(desk, plan=small_plan(1)))
        desk.round(60)
    else:
        desk.round(60)
        desk.jobs.run()
        desk.round(60)
    stuck = desk.gateway.sent[0]
    desk.gateway.arrive()
    cluster = desk.gateway.cluster
    cluster.acting[stuck] = [0]
    cluster.records[stuck] = cluster.records[stuck]._replace(
        state="active+backfill_toofull+remapped", reported_epoch=10 ** 6)
    cluster.pg_status = {"misplaced_objects": 10, "misplaced_total": 240}
    for _ in range(30):
        desk.round(300)
        desk.jobs.run()
    assert desk.balancer.walk is None or desk.balancer.walk.name == ""
    assert len(desk.gateway.sent) > 1   # the others are balanced
    assert desk.balancer.execute("q", small_plan(2))


def test_a_cooldown_longer_than_max_wait_gives_nothing_up() -> None:
    desk = Desk(uneven(), max_misplaced_ratio=1.0, pg_cooldown=86400, max_wait=3600)
    desk.round(60)
    desk.balancer._sender.cooldown.note(["1.%x" % n for n in range(4)], desk.now)
    desk.balancer.execute("p", kept(desk))
    for _ in range(200):
        desk.round(300)
    assert desk.balancer.walk is not None and not desk.balancer.walk.dropped
    for _ in range(100):
        desk.round(300)
    assert len(desk.gateway.sent) == 4

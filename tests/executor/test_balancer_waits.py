"""What the loop waits for: the start, the window, the monitor, and its own limits."""
from __future__ import annotations

import time
from typing import Any, Iterator

import pytest
from builders import GIB, change_of, plan_of
from fakes import Desk
from rounds import kept, small_plan, uneven

from equilibrium_mgr.report.status import report_status
from equilibrium_mgr.report.text import format_time


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize("automatic", [True, False])
def test_start_delay(automatic: bool) -> None:
    desk = Desk(uneven(), active=automatic, start_delay=60)
    if not automatic:
        desk.balancer.execute("p", kept(desk))
    assert [desk.round(20), desk.round(20)] == ["waiting", "waiting"]
    assert desk.balancer.reason == (   # whenever that is read
        "the mgr has only just become active (start_delay); nothing is sent before"
        " 1970-01-01 00:17:40 UTC")
    assert desk.jobs.waiting == [] and desk.gateway.sent == []
    assert desk.round(20) == ("planning" if automatic else "moving")


def test_start_delay_is_over_in_time_though_the_clock_was_set_back() -> None:
    desk = Desk(uneven(), start_delay=60)
    desk.balancer.execute("p", kept(desk))
    assert desk.round(-900) == "waiting"
    assert desk.round(61) == "moving"


def test_round_comes_as_soon_as_the_wait_is_over() -> None:
    desk = Desk(uneven(), active=True, start_delay=60)
    desk.now += 45
    assert desk.balancer.round() == pytest.approx(15.0)


def test_outside_the_window() -> None:
    """The clock starts at 00:16:40 on 1970-01-01, a Thursday."""
    desk = Desk(uneven(), active=True, begin_time="0025", end_time="0200")
    assert desk.round() == "waiting" and desk.jobs.waiting == []
    assert desk.balancer.reason == (
        "outside the window of automatic balancing, which opens at 1970-01-01 00:25")
    looks = desk.gateway.looks
    for _ in range(8):
        desk.now += 60
        desk.balancer.round()
    assert desk.gateway.looks == looks       # a glance is enough until it opens
    desk.now = 1500.0
    desk.balancer.round()
    assert desk.balancer.state == "planning" and desk.jobs.run() == 1
    assert desk.round() == "moving"


def test_window_that_closes_stops_automatic_moves_only() -> None:
    desk = Desk(uneven(), active=True, max_moves_per_round=1, begin_time="0000", end_time="0020")
    desk.round()
    desk.jobs.run()
    assert desk.round() == "moving"
    desk.gateway.arrive()
    desk.now = 1200.0
    assert desk.round() == "waiting" and len(desk.gateway.sent) == 1
    desk.balancer.execute("p", kept(desk, plan=plan_of([change_of("1.b", [0], [1])])))
    assert desk.round() == "moving" and desk.gateway.sent[1:] == ["1.b"]


def test_window_that_is_changed_counts_at_once() -> None:
    desk = Desk(uneven(), active=True, begin_weekday=1, end_weekday=2)
    assert desk.round() == "waiting" and "1970-01-05 00:00" in desk.balancer.reason
    desk.options["end_weekday"] = 6
    assert desk.round() == "planning"


def test_monitor_that_takes_nothing_is_left_alone_for_longer_and_longer() -> None:
    desk = Desk(uneven(), max_moves_per_round=1)
    desk.gateway.refuses = {"1.%x" % ps for ps in range(12)}
    desk.balancer.execute("p", kept(desk, plan=small_plan(6)))
    sent_at = []
    for _ in range(60):
        count = len(desk.gateway.batches)
        desk.round(10)
        if len(desk.gateway.batches) > count:
            sent_at.append(desk.now)
    assert [b - a for a, b in zip(sent_at, sent_at[1:])] == [60.0, 120.0, 240.0]
    assert desk.balancer.state == "waiting"
    assert desk.balancer.reason == (
        "the monitor took nothing of the last batch; the next goes at %s"
        % format_time(sent_at[-1] + 480))
    desk.gateway.refuses = set()
    desk.round(480)
    assert desk.gateway.sent[-1] == "1.4"
    desk.gateway.arrive()
    desk.round(60)
    assert desk.gateway.sent[-1] == "1.5"     # the back-off is forgotten


def test_one_refusal_among_others_is_the_pg_s_own() -> None:
    desk = Desk(uneven(), max_moves_per_round=2)
    desk.gateway.refuses = {"1.0"}
    desk.balancer.execute("p", kept(desk))
    desk.round()
    assert desk.round(60) == "moving" and desk.gateway.sent == ["1.0", "1.1", "1.2", "1.3"]


def test_limits_of_the_options_hold() -> None:
    desk = Desk(uneven(), max_backfills_per_osd=2)
    desk.balancer.execute("p", kept(desk))
    assert desk.round() == "moving" and len(desk.gateway.sent) == 2
    assert desk.round(60) == "throttled" and "max_backfills_per_osd" in desk.balancer.reason
    desk.options.update(max_backfills_per_osd=0, max_transit_ratio=0.15)
    assert desk.round(60) == "moving" and len(desk.gateway.sent) == 3
    assert desk.round(60) == "throttled" and "max_transit_ratio" in desk.balancer.reason


def test_change_above_its_share_is_told() -> None:
    desk = Desk(uneven(), max_transit_ratio=0.01)
    desk.balancer.execute("p", kept(desk))
    assert desk.round() == "moving" and desk.gateway.sent == ["1.0"]
    assert "pg 1.0 alone is above max_transit_ratio" in desk.balancer.reason


def test_pg_that_was_moved_is_left_alone_for_a_while() -> None:
    desk = Desk(uneven(), pg_cooldown=3600)
    desk.balancer.execute("p", kept(desk, plan=small_plan(1)))
    desk.round()
    desk.gateway.arrive()
    desk.round(60)
    back = plan_of([change_of("1.0", [0], [2], before=[1])])
    desk.balancer.execute("back", kept(desk, "back", back))
    assert desk.round(60) == "throttled" and "pg_cooldown" in desk.balancer.reason
    assert desk.round(-7200) == "throttled"           # the clock is set back
    assert desk.round(3601) == "moving" and desk.gateway.sent == ["1.0", "1.0"]


@pytest.mark.parametrize("option, sent", [(True, ["1.0", "1.1"]), (False, [])])
def test_full_osd_is_relieved_while_pgs_are_degraded(option: bool, sent: Any) -> None:
    cluster = uneven()
    cluster.osd(0, used=91 * GIB)
    cluster.pg_status = {"pgs_by_pool_state": [{"pool_id": 1, "pg_state_counts": [
        {"state_name": "active+degraded+backfill_toofull", "count": 2}]}]}
    cluster.pg("1.b", [0], 5 * GIB, acting=[2], state="active+remapped+backfill_toofull")
    desk = Desk(cluster, relieve_while_degraded=option)
    desk.balancer.execute("p", kept(desk, plan=small_plan(2)))
    desk.round()
    assert desk.gateway.sent == sent
    if not option:
        assert desk.balancer.state == "blocked" and "degraded" in desk.balancer.reason


def test_half_of_the_mgr_s_budget_is_left_while_a_pg_num_changes() -> None:
    cluster = uneven().pool(2, size=1, pg_num=1, pg_num_target=2).pg("2.0", [1], 0)
    desk = Desk(cluster)
    desk.gateway.ratio = 0.54                      # 65 of 120 copies
    desk.balancer.execute("p", kept(desk, plan=small_plan(8)))
    desk.round()
    assert len(desk.gateway.sent) == 3             # 32 of 120, a margin left
    assert desk.balancer.view is not None
    assert desk.balancer.view.max_misplaced_ratio == 0.27
    told = report_status(desk.balancer, desk.planning, False, desk.now, None).plain
    assert ("of at most 0.2700 (a pg_num is changing: half of target_max_misplaced_ratio is left to"
            " that)") in told
    cluster.pools[2]["pg_num_target"] = 1
    desk.round(60)
    assert len(desk.gateway.sent) == 6

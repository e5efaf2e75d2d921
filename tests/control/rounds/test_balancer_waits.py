"""What the loop waits for: the start, the window, the monitor, and its own limits."""
from __future__ import annotations

import time
from typing import Any, Iterator

import pytest
from tests.support.clusters.unit_cluster import change_of, plan_of
from tests.support.fakes import Harness
from tests.support.rounds import kept, small_plan, uneven
from tests.support.units import GIB

from equilibrium_mgr.report.status import report_status
from equilibrium_mgr.runtime.formatting import format_deadline


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize("automatic", [True, False])
def test_start_delay(automatic: bool) -> None:
    harness = Harness(uneven(), active=automatic, start_delay=60)
    if not automatic:
        harness.balancer.execute("p", kept(harness))
    assert [harness.round(20), harness.round(20)] == ["waiting", "waiting"]
    assert harness.balancer.reason == (   # whenever that is read
        "the mgr has only just become active (start_delay); nothing is sent before"
        " 1970-01-01 00:18 UTC")
    assert harness.jobs.waiting == [] and harness.gateway.sent == []
    assert harness.round(20) == ("planning" if automatic else "moving")


def test_start_delay_is_over_in_time_though_the_clock_was_set_back() -> None:
    harness = Harness(uneven(), start_delay=60)
    harness.balancer.execute("p", kept(harness))
    assert harness.round(-900) == "waiting"
    assert harness.round(61) == "moving"


def test_round_comes_as_soon_as_the_wait_is_over() -> None:
    harness = Harness(uneven(), active=True, start_delay=60)
    harness.now += 45
    assert harness.balancer.round() == pytest.approx(15.0)


def test_outside_the_window() -> None:
    """The clock starts at 00:16:40 on 1970-01-01, a Thursday."""
    harness = Harness(uneven(), active=True, begin_time="0025", end_time="0200")
    assert harness.round() == "waiting" and harness.jobs.waiting == []
    assert harness.balancer.reason == (
        "outside the window of automatic balancing, which opens at 1970-01-01 00:25 UTC")
    full_readings = harness.gateway.full_readings
    for _ in range(8):
        harness.now += 60
        harness.balancer.round()
    assert harness.gateway.full_readings == full_readings       # a summary is enough until it opens
    harness.now = 1500.0
    harness.balancer.round()
    assert harness.balancer.state == "planning" and harness.jobs.run() == 1
    assert harness.round() == "moving"


def test_window_that_closes_stops_automatic_moves_only() -> None:
    harness = Harness(uneven(), active=True, max_moves_per_round=1, begin_time="0000",
                      end_time="0020")
    harness.round()
    harness.jobs.run()
    assert harness.round() == "moving"
    harness.gateway.arrive()
    harness.now = 1200.0
    assert harness.round() == "waiting" and len(harness.gateway.sent) == 1
    harness.balancer.execute("p", kept(harness, plan=plan_of([change_of("1.b", [0], [1])])))
    assert harness.round() == "moving" and harness.gateway.sent[1:] == ["1.b"]


def test_window_that_is_changed_counts_at_once() -> None:
    harness = Harness(uneven(), active=True, begin_weekday=1, end_weekday=2)
    assert harness.round() == "waiting" and "1970-01-05 00:00" in harness.balancer.reason
    harness.options["end_weekday"] = 6
    assert harness.round() == "planning"


def test_monitor_that_takes_nothing_is_left_alone_for_longer_and_longer() -> None:
    harness = Harness(uneven(), max_moves_per_round=1)
    harness.gateway.refuses = {f"1.{ps:x}" for ps in range(12)}
    harness.balancer.execute("p", kept(harness, plan=small_plan(6)))
    sent_at = []
    for _ in range(60):
        count = len(harness.gateway.batches)
        harness.round(10)
        if len(harness.gateway.batches) > count:
            sent_at.append(harness.now)
    assert [b - a for a, b in zip(sent_at, sent_at[1:])] == [60.0, 120.0, 240.0]
    assert harness.balancer.state == "waiting"
    assert harness.balancer.reason == (
        "the monitor took nothing of the last batch; the next goes at"
        f" {format_deadline(sent_at[-1] + 480)}")
    harness.gateway.refuses = set()
    harness.round(480)
    assert harness.gateway.sent[-1] == "1.4"
    harness.gateway.arrive()
    harness.round(60)
    assert harness.gateway.sent[-1] == "1.5"     # the back-off is forgotten


def test_one_refusal_among_others_is_the_pg_s_own() -> None:
    harness = Harness(uneven(), max_moves_per_round=2)
    harness.gateway.refuses = {"1.0"}
    harness.balancer.execute("p", kept(harness))
    harness.round()
    assert harness.round(60) == "moving" and harness.gateway.sent == ["1.0", "1.1", "1.2", "1.3"]


def test_limits_of_the_options_hold() -> None:
    harness = Harness(uneven(), max_backfills_per_osd=2)
    harness.balancer.execute("p", kept(harness))
    assert harness.round() == "moving" and len(harness.gateway.sent) == 2
    assert harness.round(60) == "moving" and "max_backfills_per_osd" in harness.balancer.reason
    harness.options.update(max_backfills_per_osd=0, max_transit_ratio=0.15)
    assert harness.round(60) == "moving" and len(harness.gateway.sent) == 3
    assert harness.round(60) == "moving" and "max_transit_ratio" in harness.balancer.reason


def test_change_above_its_share_is_told() -> None:
    harness = Harness(uneven(), max_transit_ratio=0.01)
    harness.balancer.execute("p", kept(harness))
    assert harness.round() == "moving" and harness.gateway.sent == ["1.0"]
    assert "pg 1.0 alone is above max_transit_ratio" in harness.balancer.reason


def test_pg_that_was_moved_is_left_alone_for_a_while() -> None:
    harness = Harness(uneven(), pg_cooldown=3600)
    harness.balancer.execute("p", kept(harness, plan=small_plan(1)))
    harness.round()
    harness.gateway.arrive()
    harness.round(60)
    back = plan_of([change_of("1.0", [0], [2], before=[1])])
    harness.balancer.execute("back", kept(harness, "back", back))
    assert harness.round(60) == "throttled" and "pg_cooldown" in harness.balancer.reason
    assert harness.round(-7200) == "throttled"           # the clock is set back
    assert harness.round(3601) == "moving" and harness.gateway.sent == ["1.0", "1.0"]


@pytest.mark.parametrize("option, sent", [(True, ["1.0", "1.1"]), (False, [])])
def test_full_osd_is_relieved_while_pgs_are_degraded(option: bool, sent: Any) -> None:
    cluster = uneven()
    cluster.osd(0, used=91 * GIB)
    cluster.pg_status = {"pgs_by_pool_state": [{"pool_id": 1, "pg_state_counts": [
        {"state_name": "active+degraded+backfill_toofull", "count": 2}]}]}
    cluster.pg("1.b", [0], 5 * GIB, acting=[2], state="active+remapped+backfill_toofull")
    harness = Harness(cluster, relieve_while_degraded=option)
    harness.balancer.execute("p", kept(harness, plan=small_plan(2)))
    harness.round()
    assert harness.gateway.sent == sent
    if not option:
        assert harness.balancer.state == "blocked" and "degraded" in harness.balancer.reason


def test_half_of_the_mgr_s_budget_is_left_while_a_pg_num_changes() -> None:
    cluster = uneven().pool(2, size=1, pg_num=1, pg_num_target=2).pg("2.0", [1], 0)
    harness = Harness(cluster)
    harness.gateway.ratio = 0.54                      # 65 of 120 copies
    harness.balancer.execute("p", kept(harness, plan=small_plan(8)))
    harness.round()
    assert len(harness.gateway.sent) == 3             # 32 of 120, a margin left
    assert harness.balancer.status.view is not None
    assert harness.balancer.status.view.max_misplaced_ratio == 0.27
    told = report_status(harness.balancer.status, harness.planning, harness.settings(),
                         harness.now).plain
    assert ("(limit 27.00%: half of target_max_misplaced_ratio, while pg_num of pool pool2 changes)"
            ) in " ".join(told.split())
    cluster.pools[2]["pg_num_target"] = 1
    harness.round(60)
    assert len(harness.gateway.sent) == 6

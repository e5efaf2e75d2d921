"""What the loop waits for: the start, the window, the monitor, and its own limits."""
from __future__ import annotations

import time
from typing import Iterator

import pytest
from tests.support.clusters.unit_cluster import change_of, plan_of
from tests.support.fakes import Harness
from tests.support.rounds import kept, small_plan, uneven

from equilibrium_mgr.runtime.formatting import format_deadline


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_start_delay_is_over_in_time_though_the_clock_was_set_back() -> None:
    harness = Harness(uneven(), start_delay=60)
    harness.balancer.execute("p", kept(harness))
    assert harness.round(-900) == "waiting"
    assert harness.round(61) == "moving"


def test_round_comes_as_soon_as_the_wait_is_over() -> None:
    harness = Harness(uneven(), active=True, start_delay=60)
    harness.now += 45
    assert harness.balancer.round() == pytest.approx(15.0)


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


def test_change_above_its_share_is_told() -> None:
    harness = Harness(uneven(), max_transit_ratio=0.01)
    harness.balancer.execute("p", kept(harness))
    assert harness.round() == "moving" and harness.gateway.sent == ["1.0"]
    assert "pg 1.0 alone is above max_transit_ratio" in harness.balancer.reason

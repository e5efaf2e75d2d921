"""What the loop waits for: the start, the window, the monitor, and its own limits."""
from __future__ import annotations

from equilibrium_mgr.runtime.formatting import format_time
from tests.support.fakes import Harness
from tests.support.rounds import executing, small_plan, uneven


def test_start_delay_is_over_in_time_though_the_clock_was_set_back() -> None:
    harness = executing(Harness(uneven(), start_delay=60))
    assert harness.round(-900) == "waiting"
    assert harness.round(61) == "moving"


def test_monitor_that_takes_nothing_is_left_alone_for_longer_and_longer() -> None:
    harness = Harness(uneven(), max_moves_per_round=1)
    harness.gateway.refuses = {f"1.{ps:x}" for ps in range(12)}
    executing(harness, small_plan(6))
    sent_at = []
    for _ in range(60):
        count = len(harness.gateway.batches)
        harness.round(10)
        if len(harness.gateway.batches) > count:
            sent_at.append(harness.now)
    assert [b - a for a, b in zip(sent_at, sent_at[1:])] == [60.0, 120.0, 240.0]
    assert harness.state == "waiting"
    assert harness.reason == (
        "the monitor took nothing of the last batch; the next goes at"
        f" {format_time(sent_at[-1] + 480)} UTC")
    harness.gateway.refuses = set()
    harness.round(480)
    assert harness.sent[-1] == "1.4"
    harness.arrive()
    harness.round(60)
    assert harness.sent[-1] == "1.5"     # the back-off is forgotten


def test_an_option_is_effective_at_once_however_long_the_round_before_it() -> None:
    harness = Harness(uneven(), max_moves_per_round=1, sleep_interval=3600)
    executing(harness, small_plan(6))
    harness.balancer.round()
    assert len(harness.gateway.batches) == 1
    harness.now += 50
    harness.options["sleep_interval"] = 60
    assert harness.balancer.round() <= 10
    harness.now += 10
    harness.balancer.round()
    assert len(harness.gateway.batches) == 2

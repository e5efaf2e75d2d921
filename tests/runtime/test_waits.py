"""Intervals, back-off and cooldown, also on a clock that jumps."""
from __future__ import annotations

from equilibrium_mgr.execution.outcomes import Cooldown
from equilibrium_mgr.runtime.waiting import Backoff, WaitTimer


def test_interval() -> None:
    wait = WaitTimer()
    assert wait.seconds_left(1000.0) == 0.0
    wait.begin(1000.0, 60.0)
    assert [wait.seconds_left(now) for now in (1000.0, 1059.0, 1060.0)] == [60.0, 1.0, 0.0]
    assert wait.seconds_left(1000.0) == 0.0      # over is over
    wait.begin(2000.0, 60.0)
    wait.end()
    assert wait.seconds_left(2000.0) == 0.0


def test_clock_set_back_never_waits_longer_than_the_interval() -> None:
    wait = WaitTimer()
    wait.begin(10000.0, 60.0)
    assert wait.seconds_left(10030.0 - 3600.0) == 60.0
    assert wait.seconds_left(10030.0 - 3600.0 + 61.0) == 0.0


def test_back_off_doubles_up_to_its_limit_and_starts_anew() -> None:
    wait = Backoff(10.0, 100.0)
    assert [wait.failed(0.0) for _ in range(6)] == [10.0, 20.0, 40.0, 80.0, 100.0, 100.0]
    assert wait.seconds_left(60.0) == 40.0
    wait.succeeded()
    assert wait.seconds_left(60.0) == 0.0
    assert wait.failed(60.0) == 10.0


def test_cooldown() -> None:
    moved = Cooldown()
    moved.start(["1.0"], 1000.0)
    moved.start(["1.1"], 1500.0)
    assert moved.seconds_left(2000.0, 3600.0) == {"1.0": 2600.0, "1.1": 3100.0}
    assert moved.seconds_left(4600.0, 3600.0) == {"1.1": 500.0}
    moved.start(["1.1"], 4700.0)
    assert moved.seconds_left(5100.0, 3600.0) == {"1.1": 3200.0}
    assert moved.seconds_left(5100.0, 0.0) == {}

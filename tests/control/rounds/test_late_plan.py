"""A plan that becomes ready when nobody can take it up, and batches that nobody hurries."""
from __future__ import annotations

import time
from typing import Any, Callable, Dict

import pytest
from tests.support.fakes import Harness
from tests.support.loop_driver import Loop
from tests.support.rounds import kept, small_plan, uneven
from tests.support.few import few


def _off(harness: Harness) -> None:
    harness.options["active"] = False
    harness.balancer.switch_off()


def _window(harness: Harness) -> None:
    hour = time.localtime(harness.now).tm_hour
    harness.options.update(begin_time=f"{(hour + 3) % 24:02}00",
                        end_time=f"{(hour + 4) % 24:02}00")


def _flag(harness: Harness) -> None:
    harness.gateway.cluster.extra["flags"] = "sortbitwise,norebalance"
    harness.gateway.cluster.epoch += 1


def _builtin(harness: Harness) -> None:
    harness.gateway.builtin = True


_EVENTS: Dict[str, Callable[[Harness], None]] = {
    "window": _window, "flag": _flag, "builtin": _builtin}


def planning(**options: Any) -> Harness:
    harness = Harness(uneven(), active=True, **options)
    assert harness.round() == "planning" and len(harness.jobs.waiting) == 1
    return harness


@pytest.mark.parametrize("event", _EVENTS)
def test_late_plan_is_taken_up_when_the_way_is_free(event: str) -> None:
    """After a short while the same plan; after a long one, one that knows what has happened."""
    for minutes, same in ((2, True), (30, False)):
        harness = planning()
        before = dict(harness.options), harness.gateway.builtin
        _EVENTS[event](harness)
        harness.jobs.run()
        loop = Loop(harness).run(60.0 * minutes)
        harness.options, harness.gateway.builtin = before
        harness.gateway.cluster.extra.clear()
        harness.gateway.cluster.epoch += 1
        loop.run(125 if event == "builtin" else 61)   # whose last batch is waited for
        assert (harness.balancer.state, len(harness.jobs.waiting)) == (
            ("moving", 0) if same else ("planning", 1))


def test_plan_asked_for_before_off_is_void_after_on() -> None:
    harness = planning()
    _off(harness)
    harness.options["active"] = True
    harness.balancer.switch_on(False)
    harness.jobs.run()
    harness.round()
    assert harness.gateway.sent == [] and harness.balancer.state == "planning"
    assert len(harness.jobs.waiting) == 1


def test_ready_plan_is_taken_up_at_once() -> None:
    harness = planning()
    loop = Loop(harness).run(10)
    harness.jobs.run()
    loop.run(1)
    assert harness.balancer.state == "moving" and loop.batches_at == [harness.now - 1.0]


@pytest.mark.parametrize("wake_every", few([7.0, 0.5, 59.0], 1))
@pytest.mark.parametrize("name", ["", "p"])
def test_wake_ups_bypass_neither_the_interval_nor_the_moves_of_a_round(
        name: str, wake_every: float) -> None:
    harness = Harness(uneven(), active=not name, max_moves_per_round=1, sleep_interval=60)
    if name:
        harness.balancer.execute(name, kept(harness, plan=small_plan(6)))
    else:
        harness.round()
        harness.jobs.run()
    loop = Loop(harness).run(600, wake_every=wake_every)
    gaps = [b - a for a, b in zip(loop.batches_at, loop.batches_at[1:])]
    assert len(gaps) >= 5 and min(gaps) >= 59.0
    assert harness.gateway.full_readings <= 2 * 11 + 2       # one a round, and one after each batch


def test_readers_make_no_batch_go_early() -> None:
    harness = Harness(uneven(), active=False, max_moves_per_round=1, sleep_interval=60)
    harness.balancer.execute("p", kept(harness, plan=small_plan(3)))
    loop = Loop(harness).run(1)
    for _ in range(20):
        harness.balancer.request_observation()
        loop.run(1)
    assert len(harness.gateway.batches) == 1

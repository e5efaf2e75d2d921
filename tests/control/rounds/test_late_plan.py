"""A plan that becomes ready when nobody can take it up, in every state, makes no work."""
from __future__ import annotations

import time
from typing import Any, Callable, Dict

import pytest

from tests.support.fakes import Harness
from tests.support.loop_driver import Loop
from tests.support.rounds import executing, kept, small_plan, uneven


def _off(harness: Harness) -> None:
    harness.options["active"] = False
    harness.balancer.switch_off()


def _off_by_option(harness: Harness) -> None:
    harness.options["active"] = False


def _window(harness: Harness) -> None:
    hour = time.localtime(harness.now).tm_hour
    harness.options.update(begin_time=f"{(hour + 3) % 24:02}00",
                        end_time=f"{(hour + 4) % 24:02}00")


def _flag(harness: Harness) -> None:
    harness.cluster.extra["flags"] = "sortbitwise,norebalance"
    harness.cluster.epoch += 1


def _builtin(harness: Harness) -> None:
    harness.gateway.builtin = True


def _no_monitor(harness: Harness) -> None:
    harness.gateway.connected = False


def _named(harness: Harness) -> None:
    """A named plan that the misplaced limit holds back."""
    harness.gateway.ratio = 0.01
    harness.cluster.pg_status = {"misplaced_objects": 60, "misplaced_total": 120}
    executing(harness)


def _clients(harness: Harness) -> None:
    harness.cluster.extra["require_min_compat_client"] = "jewel"
    harness.cluster.epoch += 1


_EVENTS: Dict[str, Callable[[Harness], None]] = {
    "off": _off, "option": _off_by_option, "window": _window, "flag": _flag,
    "builtin": _builtin, "no monitor": _no_monitor, "named plan": _named, "clients": _clients}
#: Full looks in an hour of that state. A throttled plan is looked at every ten minutes.
_LOOKS = {"named plan": 7}


def planning(**options: Any) -> Harness:
    harness = Harness(uneven(), active=True, **options)
    assert harness.round() == "planning"
    assert len(harness.jobs.waiting) == 1
    return harness


@pytest.mark.parametrize("event", _EVENTS)
@pytest.mark.parametrize("notices", [True, False])
def test_late_plan_makes_no_work(event: str, notices: bool) -> None:
    """`notices`: the loop has seen the event before the plan is ready."""
    harness = planning()
    _EVENTS[event](harness)
    if notices:
        harness.balancer.round()
    harness.jobs.run()
    harness.gateway.full_readings = 0
    loop = Loop(harness).run(3600)
    assert harness.looks <= _LOOKS.get(event, 0)
    assert len(loop.delays) <= 245   # each 15 seconds: have OSDs changed?
    assert min(loop.delays) >= 1.0
    assert harness.sent == []
    assert harness.jobs.waiting == []


@pytest.mark.parametrize("event", ["window", "flag", "builtin", "no monitor"])
def test_late_plan_is_taken_up_when_the_way_is_free(event: str) -> None:
    """After a short while the same plan; after a long one, one that knows what has happened."""
    for minutes, same in ((2, True), (30, False)):
        harness = planning()
        before = dict(harness.options), harness.gateway.builtin, harness.gateway.connected
        _EVENTS[event](harness)
        harness.jobs.run()
        loop = Loop(harness).run(60.0 * minutes)
        harness.options, harness.gateway.builtin, harness.gateway.connected = before
        harness.cluster.extra.clear()
        harness.cluster.epoch += 1
        loop.run(125 if event == "builtin" else 61)   # whose last batch is waited for
        assert (harness.state, len(harness.jobs.waiting)) == (
            ("moving", 0) if same else ("planning", 1))


@pytest.mark.parametrize("wake_every", [0.5, 7.0, 59.0])
@pytest.mark.parametrize("name", ["", "p"])
def test_wake_ups_bypass_neither_the_interval_nor_the_moves_of_a_round(
        name: str, wake_every: float) -> None:
    harness = Harness(uneven(), active=not name, max_moves_per_round=1, sleep_interval=60)
    if name:
        harness.balancer.execute(name, kept(harness, plan=small_plan(6)))
    else:
        harness.plan()
    loop = Loop(harness).run(600, wake_every=wake_every)
    gaps = [b - a for a, b in zip(loop.batches_at, loop.batches_at[1:])]
    assert len(gaps) >= 5
    assert min(gaps) >= 59.0
    assert harness.looks <= 2 * 11 + 2       # one a round, and one after each batch

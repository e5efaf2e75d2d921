"""A plan that becomes ready when nobody can take it up, in every state, makes no work."""
from __future__ import annotations

import time
from typing import Any, Callable, Dict

import pytest
from fakes import Desk
from loop_driver import Loop
from rounds import kept, small_plan, uneven


def _off(desk: Desk) -> None:
    desk.options["active"] = False
    desk.balancer.switch_off()


def _off_by_option(desk: Desk) -> None:
    desk.options["active"] = False


def _window(desk: Desk) -> None:
    hour = time.localtime(desk.now).tm_hour
    desk.options.update(begin_time="%02d00" % ((hour + 3) % 24),
                        end_time="%02d00" % ((hour + 4) % 24))


def _flag(desk: Desk) -> None:
    desk.gateway.cluster.extra["flags"] = "sortbitwise,norebalance"
    desk.gateway.cluster.epoch += 1


def _builtin(desk: Desk) -> None:
    desk.gateway.builtin = True


def _no_monitor(desk: Desk) -> None:
    desk.gateway.connected = False


def _named(desk: Desk) -> None:
    """A named plan that the misplaced limit holds back."""
    desk.gateway.ratio = 0.01
    desk.gateway.cluster.pg_status = {"misplaced_objects": 60, "misplaced_total": 120}
    desk.balancer.execute("p", kept(desk))


def _clients(desk: Desk) -> None:
    desk.gateway.cluster.extra["require_min_compat_client"] = "jewel"
    desk.gateway.cluster.epoch += 1


_EVENTS: Dict[str, Callable[[Desk], None]] = {
    "off": _off, "option": _off_by_option, "window": _window, "flag": _flag,
    "builtin": _builtin, "no monitor": _no_monitor, "named plan": _named, "clients": _clients}
#: Full looks in an hour of that state. A throttled plan is looked at every ten minutes.
_LOOKS = {"named plan": 7}


def planning(**options: Any) -> Desk:
    desk = Desk(uneven(), active=True, **options)
    assert desk.round() == "planning" and len(desk.jobs.waiting) == 1
    return desk


@pytest.mark.parametrize("event", _EVENTS)
@pytest.mark.parametrize("notices", [True, False])
def test_late_plan_makes_no_work(event: str, notices: bool) -> None:
    """`notices`: the loop has seen the event before the plan is ready."""
    desk = planning()
    _EVENTS[event](desk)
    if notices:
        desk.balancer.round()
    desk.jobs.run()
    desk.gateway.looks = 0
    loop = Loop(desk).run(3600)
    assert desk.gateway.looks <= _LOOKS.get(event, 0)
    assert len(loop.delays) <= 65 and min(loop.delays) >= 1.0
    assert desk.gateway.sent == [] and desk.jobs.waiting == []


@pytest.mark.parametrize("event", ["window", "flag", "builtin", "no monitor"])
def test_late_plan_is_taken_up_when_the_way_is_free(event: str) -> None:
    """After a short while the same plan; after a long one, one that knows what has happened."""
    for minutes, same in ((2, True), (30, False)):
        desk = planning()
        before = dict(desk.options), desk.gateway.builtin, desk.gateway.connected
        _EVENTS[event](desk)
        desk.jobs.run()
        loop = Loop(desk).run(60.0 * minutes)
        desk.options, desk.gateway.builtin, desk.gateway.connected = before
        desk.gateway.cluster.extra.clear()
        desk.gateway.cluster.epoch += 1
        loop.run(125 if event == "builtin" else 61)   # whose last batch is waited for
        assert (desk.balancer.state, len(desk.jobs.waiting)) == (
            ("moving", 0) if same else ("planning", 1))


@pytest.mark.parametrize("event", ["off", "option"])
def test_plan_asked_for_before_off_is_void_after_on(event: str) -> None:
    desk = planning()
    _off(desk)
    desk.options["active"] = True
    desk.balancer.switch_on(False)
    desk.jobs.run()
    desk.round()
    assert desk.gateway.sent == [] and desk.balancer.state == "planning"
    assert len(desk.jobs.waiting) == 1


def test_ready_plan_is_taken_up_at_once() -> None:
    desk = planning()
    loop = Loop(desk).run(10)
    desk.jobs.run()
    loop.run(1)
    assert desk.balancer.state == "moving" and loop.batches_at == [desk.now - 1.0]


@pytest.mark.parametrize("wake_every", [0.5, 7.0, 59.0])
@pytest.mark.parametrize("name", ["", "p"])
def test_wake_ups_bypass_neither_the_interval_nor_the_moves_of_a_round(
        name: str, wake_every: float) -> None:
    desk = Desk(uneven(), active=not name, max_moves_per_round=1, sleep_interval=60)
    if name:
        desk.balancer.execute(name, kept(desk, plan=small_plan(6)))
    else:
        desk.round()
        desk.jobs.run()
    loop = Loop(desk).run(600, wake_every=wake_every)
    gaps = [b - a for a, b in zip(loop.batches_at, loop.batches_at[1:])]
    assert len(gaps) >= 5 and min(gaps) >= 59.0
    assert desk.gateway.looks <= 2 * 11 + 2       # one a round, and one after each batch


def test_readers_make_no_batch_go_early() -> None:
    desk = Desk(uneven(), active=False, max_moves_per_round=1, sleep_interval=60)
    desk.balancer.execute("p", kept(desk, plan=small_plan(3)))
    loop = Loop(desk).run(1)
    for _ in range(20):
        desk.balancer.refresh_view()
        loop.run(1)
    assert len(desk.gateway.batches) == 1


def test_plan_that_is_through_is_followed_without_another_look() -> None:
    """What comes after it is decided in the round that finds it through."""
    desk = Desk(uneven(), active=True)
    loop = Loop(desk).run(1)
    desk.jobs.run()
    loop.run(5)
    desk.gateway.arrive()
    looks = desk.gateway.looks
    loop.run(61)
    assert desk.balancer.state == "planning" and desk.gateway.looks == looks + 1

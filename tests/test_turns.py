from __future__ import annotations

import gc
from typing import Any, Iterator

import pytest
from builders import single_copies
from fakes import LOG
from planner.made_clusters import snapshot_of

from equilibrium_mgr import turns as turns_room
from equilibrium_mgr.executor.ledger import Ledger
from equilibrium_mgr.executor.view import bounds_of, make_view
from equilibrium_mgr.planner.planner import make_plan
from equilibrium_mgr.report.evaluation import evaluate_cluster
from equilibrium_mgr.snapshot.build import build_snapshot
from equilibrium_mgr.turns import Turns, Uncollected


@pytest.fixture(autouse=True)
def collector_as_before() -> Iterator[None]:
    yield
    gc.unfreeze()
    gc.enable()


def test_turns_pause_when_some_time_has_passed(mocker: Any) -> None:
    clock = mocker.patch.object(turns_room, "time")
    clock.monotonic.return_value = 100.0
    turns = Turns()
    clock.monotonic.return_value = 100.0009
    assert not turns() and not clock.sleep.called
    clock.monotonic.return_value = 100.0011
    assert turns() and clock.sleep.call_count == 1
    assert not turns() and clock.sleep.call_count == 1    # counted anew from the pause


def test_nothing_is_collected_while_anybody_works() -> None:
    uncollected = Uncollected()
    with uncollected:
        with uncollected:
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled() and gc.get_freeze_count() > 0


def test_the_collector_is_on_again_after_a_failure() -> None:
    with pytest.raises(ValueError):
        with Uncollected():
            raise ValueError
    assert gc.isenabled()


def test_a_collector_that_others_switched_off_stays_off() -> None:
    gc.disable()
    with Uncollected():
        pass
    assert not gc.isenabled()


def test_circles_go_once_a_day(mocker: Any) -> None:
    clock = mocker.patch.object(turns_room, "time")
    clock.monotonic.return_value = 0.0
    uncollected = Uncollected()
    collect = mocker.spy(gc, "collect")
    clock.monotonic.return_value = 86_399.0
    with uncollected:
        pass
    assert not collect.called
    clock.monotonic.return_value = 86_400.0
    for _ in range(2):
        with uncollected:
            pass
    assert collect.call_count == 1


def test_a_look_leaves_no_circles() -> None:
    reading = single_copies([10, 20], [30], []).reading()
    gc.collect()
    gc.disable()
    snapshot = build_snapshot(reading)
    view = make_view(snapshot, bounds_of(snapshot, LOG), Ledger(), 0.05, False)
    evaluate_cluster(view.usage, view.bounds, snapshot.epoch, 0.0)
    del snapshot, view
    assert gc.collect() == 0


def test_a_plan_leaves_no_circles() -> None:
    snapshot = snapshot_of("uneven")
    gc.collect()
    gc.disable()
    make_plan(snapshot)
    assert gc.collect() == 0

from __future__ import annotations

import gc
import re
import threading
from pathlib import Path
from typing import Iterator, List

import pytest

import equilibrium_mgr
from equilibrium_mgr.execution.pending_moves import PendingMoves
from equilibrium_mgr.metrics_endpoint.endpoint import MetricsEndpoint
from equilibrium_mgr.observation.cluster_view import make_view
from equilibrium_mgr.planner.bound.lower_bound import utilization_bounds
from equilibrium_mgr.report.answer import CommandAnswer
from equilibrium_mgr.report.cluster.evaluation import Look, evaluate_cluster
from equilibrium_mgr.runtime.job_thread import JobThread
from equilibrium_mgr.runtime.time_slice import (
    TimeSlice,
    give_way,
    giving_way,
    piecewise,
    release,
    sorted_piecewise,
    told_to_end,
)
from equilibrium_mgr.snapshot.builder import SnapshotBuilder
from mgr_stub.console.session import Session
from tests.support.clusters.unit_cluster import single_copies
from tests.support.fakes import LOG
from tests.support.giving_way import Asked

PACKAGE = Path(equilibrium_mgr.__file__).parent


@pytest.fixture(autouse=True)
def collector_as_before() -> Iterator[None]:
    thresholds = gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)
    gc.enable()


def test_yields_when_a_millisecond_has_passed() -> None:
    now: List[float] = [100.0]
    sleeps: List[float] = []
    time_slice = TimeSlice(lambda: now[-1], sleeps.append)
    now.append(100.0009)
    assert not time_slice.yield_if_due()
    assert not sleeps
    now.append(100.0011)
    assert time_slice.yield_if_due()
    assert len(sleeps) == 1
    assert not time_slice.yield_if_due()    # counted anew
    assert time_slice(0)                    # never asks to end
    assert len(sleeps) == 1


def test_a_thread_without_a_slice_goes_on() -> None:
    assert give_way()
    assert give_way(5)
    assert not told_to_end()
    assert list(piecewise(range(5), 2)) == [0, 1, 2, 3, 4]


def test_a_slice_within_another_leaves_that_as_it_was() -> None:
    """Also where it ends by an exception, which comes to who gives way."""
    outer, inner = Asked(), Asked(0)

    def stop(_moves: int) -> bool:
        raise InterruptedError
    with giving_way(outer):
        give_way(7)
        with giving_way(inner):
            assert not give_way(9)
            assert told_to_end()
        assert give_way()
        assert not told_to_end()
        with pytest.raises(InterruptedError), giving_way(stop):
            give_way()
        give_way()
    give_way()
    assert (outer, inner) == ([7, 7, 7], [9])


def test_a_slice_is_that_of_one_thread() -> None:
    asked, answers = Asked(0), []
    with giving_way(asked):
        other = threading.Thread(target=lambda: answers.append(give_way()))
        other.start()
        other.join()
        assert answers == [True]
        assert asked == []
        assert not give_way()


def test_piecewise_gives_way_before_each_piece() -> None:
    asked, held = Asked(), list(range(25_000))
    with giving_way(asked):
        assert [len(asked) for _ in piecewise(range(5), 2)] == [1, 1, 2, 2, 3]
        assert list(sorted_piecewise([3, 1, 2, 0], 2)) == [0, 1, 2, 3]
        assert len(asked) == 5
        release(held)
    assert held == []
    assert len(asked) == 8


@pytest.fixture
def yields(monkeypatch: pytest.MonkeyPatch) -> List[str]:
    """The threads that have given way by a slice of time."""
    found: List[str] = []

    def note(_self: TimeSlice) -> bool:
        found.append(threading.current_thread().name)
        return True
    monkeypatch.setattr(TimeSlice, "yield_if_due", note)
    return found


def test_jobs_give_way(yields: List[str]) -> None:
    jobs, is_run = JobThread(LOG), threading.Event()
    jobs.submit("a loop", lambda: is_run.set() if give_way() else None)
    assert is_run.wait(10.0)
    jobs.stop()
    assert yields == ["eq-jobs"]


def test_commands_give_way(yields: List[str]) -> None:
    module = Session.from_state(None, release=18).module
    yields.clear()
    module._answer("plain", lambda parts: CommandAnswer({"went on": give_way()}, ""))
    assert len(yields) == 1
    assert give_way()
    assert len(yields) == 1


def test_the_serve_loop_gives_way(yields: List[str]) -> None:
    module = Session.from_state(None, release=18).module

    def step() -> float:
        yields.clear()
        give_way()
        module.shutdown()
        return 0.0
    module.step = step
    module.serve()
    assert len(yields) == 1
    assert give_way()
    assert len(yields) == 1


def test_the_text_of_metrics_gives_way(yields: List[str]) -> None:
    def text() -> str:
        return str(give_way())
    endpoint = MetricsEndpoint(text, lambda uri: None, lambda: "h", LOG)
    assert endpoint._text() == "True"
    assert len(yields) == 1


def test_no_file_touches_the_garbage_collector() -> None:
    """On Ceph 20 it is that of all mgr modules."""
    for path in PACKAGE.rglob("*.py"):
        assert "gc" not in re.findall(r"\w+", path.read_text()), path


def test_a_look_leaves_no_circles() -> None:
    reading = single_copies([10, 20], [30], []).reading()
    gc.collect()
    gc.disable()
    snapshot = SnapshotBuilder().build(reading)
    view = make_view(snapshot, utilization_bounds(snapshot), PendingMoves(), 0.05, False)
    evaluate_cluster(Look(view, 0.0, {}))
    del snapshot, view
    assert gc.collect() == 0


def test_work_that_was_told_to_end_is_told_so_from_then_on() -> None:
    """Others have their turn all the same."""
    answers = iter([True, False, True])
    with giving_way(lambda _moves: next(answers)):
        assert give_way()
        assert not told_to_end()
        assert not give_way()
        assert told_to_end()
        assert not give_way()
        assert list(answers) == []
    assert not told_to_end()

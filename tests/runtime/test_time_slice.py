from __future__ import annotations

import ast
import gc
from pathlib import Path
from typing import Iterator, List
from weakref import WeakSet

import pytest
from mgr_stub.console.session import Session
from tests.support.clusters.made_clusters import snapshot_of
from tests.support.clusters.unit_cluster import single_copies
from tests.support.fakes import LOG

import equilibrium_mgr
from equilibrium_mgr.execution.pending_moves import PendingMoves
from equilibrium_mgr.observation.cluster_view import make_view
from equilibrium_mgr.planner.bound.lower_bound import utilization_bounds
from equilibrium_mgr.planner.planner import make_plan
from equilibrium_mgr.report.cluster.evaluation import Look, evaluate_cluster
from equilibrium_mgr.runtime.job_thread import JobThread
from equilibrium_mgr.runtime.time_slice import TimeSlice
from equilibrium_mgr.snapshot.builder import build_snapshot

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
    assert time_slice()                     # as a checkpoint it never asks to end
    assert len(sleeps) == 1


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: path.name)
def test_no_file_touches_the_garbage_collector(path: Path) -> None:
    """On Ceph 20 it is that of all mgr modules."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            assert all(name.name.split(".")[0] != "gc" for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert (node.module or "").split(".")[0] != "gc"
        elif isinstance(node, ast.Constant):
            assert node.value != "gc"    # as in import_module("gc")


def test_jobs_and_rounds_leave_the_collector_as_it_is() -> None:
    seen = []
    jobs = JobThread(LOG)
    before = gc.get_threshold(), gc.get_freeze_count()
    jobs.submit("look at the collector", lambda: seen.append(gc.isenabled()))
    jobs.stop()
    assert seen == [True] and (gc.get_threshold(), gc.get_freeze_count()) == before


class Request:
    """What another module leaves behind: a circle."""

    def __init__(self) -> None:
        self.me = self


def test_circles_of_a_neighbor_go_while_the_module_works() -> None:
    """On Ceph 20 they share an interpreter; a frozen circle would stay for ever."""
    module = Session.from_state(None, release=20).module
    gc.set_threshold(700, 10, 10)   # Python's own; the tests have others
    alive: WeakSet[Request] = WeakSet()
    for _ in range(100):
        module.balancer.require_observation()
        module.step()
        for _ in range(200):
            alive.add(Request())
    assert len(alive) < 4000 and gc.get_freeze_count() == 0


def test_a_look_leaves_no_circles() -> None:
    reading = single_copies([10, 20], [30], []).reading()
    gc.collect()
    gc.disable()
    snapshot = build_snapshot(reading)
    view = make_view(snapshot, utilization_bounds(snapshot), PendingMoves(), 0.05, False)
    evaluate_cluster(Look(view, 0.0, {}))
    del snapshot, view
    assert gc.collect() == 0


def test_a_plan_leaves_no_circles() -> None:
    snapshot = snapshot_of("uneven")
    gc.collect()
    gc.disable()
    make_plan(snapshot)
    assert gc.collect() == 0

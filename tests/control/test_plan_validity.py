"""What of a changed cluster makes a plan out of date, and what does not."""
from __future__ import annotations

from typing import Any, Callable, Optional

import pytest
from tests.support.clusters.unit_cluster import Cluster, hosts
from tests.support.units import GIB

from equilibrium_mgr.control.plan_basis import (
    PlanBasis, Progress, basis_of, data_change, topology_change)
from equilibrium_mgr.execution.traffic import osd_traffic
from equilibrium_mgr.plan.options import PlanOptions
from equilibrium_mgr.snapshot.model import Snapshot

MIN_GAIN = 0.002


def basis(snapshot: Snapshot, noise: float = 0.0) -> PlanBasis:
    return basis_of(snapshot, PlanOptions(), MIN_GAIN, noise=noise)


def quiet() -> Cluster:
    cluster = Cluster(hosts(4)).pool(1, size=2, name="data").pool(2, size=2)
    for ps in range(10):
        cluster.pg(f"1.{ps:x}", [ps % 4, (ps + 1) % 4], num_bytes=10 * GIB)
    return cluster.pg("2.0", "0 1", num_bytes=GIB)


def change(before: Cluster, after: Cluster) -> Optional[str]:
    return topology_change(basis(before.snapshot()), basis(after.snapshot()))


def change_by(edit: Callable[[Cluster], Any]) -> Optional[str]:
    after = quiet()
    edit(after)
    return change(quiet(), after)


@pytest.mark.parametrize("edit, said", [
    (lambda c: c.mark_out(2), "osd.2 is out"),
    (lambda c: c.osd(2, weight=0.5), "osd.2 has another weight"),
    (lambda c: c.osds.pop(3), "osd.3 is gone"),
    (lambda c: c.extra.update(crush_version=6), None),
    (lambda c: c.extra.update(nearfull_ratio=0.8), "a full ratio has changed"),
    (lambda c: c.pool(3, size=2).pg("3.0", "0 1"), "the pools have changed"),
    (lambda c: c.pool(2, size=3), "the pools have changed"),
    (lambda c: c.pool(2, size=2, pg_num_target=8), "the pools have changed")])
def test_topology(edit: Callable[[Cluster], Any], said: Optional[str]) -> None:
    assert change_by(edit) == said


def test_osd_that_comes_back_in() -> None:
    assert change(quiet().mark_out(2), quiet()) == "osd.2 is in again"


def flapped(cluster: Cluster) -> None:
    cluster.osd(2, up=0, state=["exists"])
    for pgid, up in cluster.up.items():
        cluster.up[pgid] = [osd for osd in up if osd != 2]


@pytest.mark.parametrize("edit", [
    flapped, lambda c: setattr(c, "epoch", 400),
    lambda c: c.osd(2, used=90 * GIB), lambda c: c.pg("1.0", "0 3")])
def test_no_change_of_the_topology(edit: Callable[[Cluster], Any]) -> None:
    assert change_by(edit) is None


def test_pg_num_that_changes_step_by_step_is_one_change() -> None:
    first = quiet().pool(1, size=2, pg_num=10, pg_num_target=16)
    second = quiet().pool(1, size=2, pg_num=12, pg_num_target=16)
    assert change(first, second) is None


def test_osd_that_was_down_when_the_plan_was_made() -> None:
    down = quiet()
    flapped(down)
    then, now = basis(down.snapshot()), basis(quiet().snapshot())
    assert data_change(then, now) == "osd.2 is up again"
    assert data_change(now, then) is None


def test_omap_that_has_left_and_is_not_free_yet_ends_no_plan() -> None:
    """A plan takes it for free, and so do the utilizations that the plan is compared with."""
    snapshot = quiet().snapshot()
    osd = snapshot.osds[0]
    snapshot = snapshot._replace(osds={**snapshot.osds, 0: osd._replace(
        used_bytes=osd.size_bytes // 2, uncompacted_bytes=osd.size_bytes // 5)})
    then, progress = basis(snapshot), Progress(snapshot, osd_traffic(snapshot, {}), (), {})
    assert progress.unplanned_change(then, then) is None

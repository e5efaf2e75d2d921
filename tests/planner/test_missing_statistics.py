"""A class or OSDs without statistics wait, with a reason; the rest is planned."""
from __future__ import annotations

from typing import List

import pytest
from tests.support.clusters.random_clusters import HDDS, SSDS, random_cluster

from equilibrium_mgr.planner.bound.lower_bound import utilization_bounds
from equilibrium_mgr.planner.planner import make_plan
from equilibrium_mgr.snapshot import immovable_reasons as reasons


@pytest.mark.parametrize("silent", [HDDS, SSDS, HDDS + SSDS])
@pytest.mark.parametrize("seed", range(3))
def test_a_class_without_statistics_waits(seed: int, silent: List[int]) -> None:
    cluster = random_cluster(seed, hybrid=True)
    cluster.without_statistics = list(silent)
    snapshot = cluster.snapshot()
    plan = make_plan(snapshot)
    assert {osd for move in plan.moves for osd in (move.source, move.target)}.isdisjoint(silent)
    assert plan.skipped["PG: " + reasons.OSD_NOT_REPORTED] > 0
    assert bool(plan.moves) == (len(silent) < len(HDDS + SSDS))   # the other class does not wait
    assert set(utilization_bounds(snapshot).highest) == {
        name for name, osds in (("hdd", HDDS), ("ssd", SSDS)) if not set(osds) <= set(silent)}

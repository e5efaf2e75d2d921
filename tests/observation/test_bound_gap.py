"""How far the fullest OSD of a class is from the bound, and what whole shards explain of it."""
from __future__ import annotations

from typing import Any, Sequence

import pytest
from tests.support.clusters.unit_cluster import Cluster, hosts
from tests.support.rules import OSD_RULE
from tests.support.units import GIB

from equilibrium_mgr.execution.pending_moves import PendingMoves
from equilibrium_mgr.observation.refusals import BoundGap, bound_gaps
from equilibrium_mgr.observation.cluster_view import ClusterView, make_view
from equilibrium_mgr.planner.bound.lower_bound import utilization_bounds

RULES = {0: "take default~hdd; choose firstn 0 osd; emit",
         1: "take default~ssd; choose firstn 0 osd; emit", 2: OSD_RULE}


def view_of(cluster: Cluster) -> ClusterView:
    snapshot = cluster.snapshot()
    return make_view(snapshot, utilization_bounds(snapshot), PendingMoves(), 0.05, False)


def shards(sizes_here: Sequence[int], sizes_there: Sequence[int] = ()) -> ClusterView:
    """Single shards of so many GiB on osd.0 and on osd.1, of 100 GiB each."""
    cluster = Cluster(hosts(1, 2), {0: OSD_RULE}).pool(1, size=1)
    for ps, size in enumerate(list(sizes_here) + list(sizes_there)):
        cluster.pg(f"1.{ps:x}", [0 if ps < len(sizes_here) else 1], size * GIB)
    return view_of(cluster)


def only(view: ClusterView) -> BoundGap:
    (distance,) = bound_gaps(view, view.utilization_bounds, None)
    return distance


@pytest.mark.parametrize("here, there, above, excess", [
    ([5] * 12, [], 0.30, 0.25),              # a shard of 5 GiB would be no surprise
    ([1] * 6, [1] * 4, 0.01, 0.0),           # one shard
    ([1] * 4, [1] * 4, 0.0, -0.01),
    ([50], [], 0.25, -0.25),                 # cannot be split
    ([20, 0, 0, 0], [], 0.1, 0.05)])         # empty shards lower the mean
def test_one_mean_shard_is_allowed(here: Any, there: Any, above: float, excess: float) -> None:
    found = only(shards(here, there))
    assert found.above == pytest.approx(above, abs=1e-6)
    assert found.excess == pytest.approx(excess, abs=1e-6)
    assert (found.osd, found.device_class) == (0, "hdd") or above == 0.0


def test_classes_by_themselves() -> None:
    cluster = Cluster(hosts(1, 4), RULES, classes={2: "ssd", 3: "ssd"})
    cluster.pool(1, size=1, rule=0).pool(2, size=1, rule=1)
    for ps in range(10):
        cluster.pg(f"1.{ps:x}", [ps % 2], GIB).pg(f"2.{ps:x}", "2", GIB)
    view = view_of(cluster)
    found = {d.device_class: d for d in bound_gaps(view, view.utilization_bounds, None)}
    assert set(found) == {"hdd", "ssd"}
    assert max(found.values()) == found["ssd"]
    assert found["hdd"].above == pytest.approx(0.0)
    assert found["ssd"].above == pytest.approx(0.05)
    assert found["ssd"].sentence() == (
        "osd.2, the fullest of class ssd, is 5.0 points above the bound")
    gaps = bound_gaps(view, view.utilization_bounds, frozenset(("hdd",)))
    assert [gap.device_class for gap in gaps] == [
        "hdd"]

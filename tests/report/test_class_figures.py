"""The figures of device classes and of OSD sets: now, soon, planned, and the bound."""
from __future__ import annotations

import json
from pathlib import Path
from typing import List

import pytest
from mgr_stub.console.session import Session
from tests.benchmark.clusters import state_of
from tests.commands.asking import ask, by, optimize
from tests.explain.same_figures import differing
from tests.support.clusters.bound_clusters import mixed_classes
from tests.support.clusters.rule_shapes import make
from tests.support.clusters.unit_cluster import Cluster, hosts
from tests.support.rules import OSD_RULE
from tests.support.units import GIB

from equilibrium_mgr.execution.pending_moves import PendingMoves
from equilibrium_mgr.observation.cluster_view import ClusterView, make_view
from equilibrium_mgr.planner.bound.lower_bound import utilization_bounds
from equilibrium_mgr.report.cluster.cluster_tables import class_rows, class_table


def three() -> Cluster:
    cluster = Cluster(hosts(1, 3), {0: OSD_RULE}).pool(1, size=1)
    for ps in range(6):
        cluster.pg(f"1.{ps:x}", [0], num_bytes=10 * GIB, objects=10)
    return cluster


def view_of(cluster: Cluster, pending: PendingMoves) -> ClusterView:
    snapshot = cluster.snapshot()
    return make_view(snapshot, utilization_bounds(snapshot), pending, 0.05, False)


def test_a_class_that_is_drained_whole_is_still_there() -> None:
    row = class_rows(view_of(three().osd(0, used=60 * GIB).drain(0, 1, 2), PendingMoves()))[0]
    assert (row["osds"], row["fullest_osd"]) == (3, 0)
    assert row["soon_max_utilization"] is None
    assert row["planned_max_utilization"] is None
    assert "60.00" in class_table([row])[1][0]


@pytest.mark.parametrize("cluster, names", [
    (mixed_classes(), ["hdd,ssd"]),
    (make("two-sites-by-take", "plain"), ["hdd (b0)", "hdd (b1)"]),
    (make("hybrid", "plain"), ["hdd", "ssd"])], ids=["mixed", "sites", "classes"])
def test_a_set_has_one_bound_on_all_screens(cluster: Cluster, names: List[str],
                                            tmp_path: Path) -> None:
    """Not below its mean, not above its maximum."""
    path = tmp_path / "state.json"
    path.write_text(json.dumps(state_of(cluster)))
    session = Session.from_state(str(path), release=18)
    optimize(session)
    bounds = {}
    for row in ask(session, "status")["classes"]:
        bounds[row["device_class"]] = bound = row["bound_utilization"]
        assert row["utilization"] - 1e-9 <= bound <= row["max_utilization"] + 1e-9
    assert list(bounds) == names
    assert not differing(session)
    plan = ask(session, "eval p")
    for rows in (plan["classes"], plan["distance"]["classes"]):
        assert {row["device_class"]: row["bound_utilization"] for row in rows} == bounds
    best = by("id", ask(session, "osds")["osds"])
    for entry in ask(session, "explain")["sets"]:
        highest = max(best[osd]["best_utilization"] for osd in entry["osds"])
        assert highest == entry["bound"] == bounds[entry["device_class"]]
    session.close()

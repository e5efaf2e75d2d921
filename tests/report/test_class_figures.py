"""The figures of device classes and of OSD sets: now, soon, planned, and the bound."""
from __future__ import annotations

import json
import re
from pathlib import Path
from typing import List

import pytest
from mgr_stub.console.session import Session
from tests.benchmark.clusters import state_of
from tests.commands.asking import ask, by, by_class, optimize
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


def test_a_drained_osd_counts_now_and_takes_no_data() -> None:
    """What is to be is of the OSDs that take data; those of `ceph osd df` are all there now."""
    row = class_rows(view_of(three().osd(0, used=60 * GIB).drain(0), PendingMoves()))[0]
    assert (row["osds"], row["fullest_osd"], row["size_bytes"]) == (3, 0, 300 * GIB)
    assert row["max_utilization"] == pytest.approx(0.6)
    assert row["utilization"] == pytest.approx(0.2)
    assert row["soon_max_utilization"] == 0.0


def test_a_class_that_is_drained_whole_is_still_there() -> None:
    row = class_rows(view_of(three().osd(0, used=60 * GIB).drain(0, 1, 2), PendingMoves()))[0]
    assert (row["osds"], row["fullest_osd"]) == (3, 0)
    assert row["soon_max_utilization"] is None and row["planned_max_utilization"] is None
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
    evaluated = ask(session, "eval p")
    rows = by_class(ask(session, "status"))
    assert list(rows) == names
    for found in (ask(session, "eval")["classes"], evaluated["classes"],
                  evaluated["distance"]["classes"]):
        assert {name: row["bound_utilization"] for name, row in by("device_class", found).items()
                } == {name: row["bound_utilization"] for name, row in rows.items()}
    explained = by("device_class", ask(session, "explain")["sets"])
    metrics = dict(re.findall(r'bound_ratio{device_class="([^"]*)"} (.*)',
                              session.command("equilibrium metrics")[1]))
    best = by("id", ask(session, "osds")["osds"])
    for name, row in rows.items():
        assert row["bound_utilization"] == explained[name]["bound"] == float(metrics[name]) == max(
            best[osd]["best_utilization"] for osd in explained[name]["osds"])
        assert row["utilization"] <= row["bound_utilization"] + 1e-9
        assert row["bound_utilization"] <= row["max_utilization"] + 1e-9
    session.close()

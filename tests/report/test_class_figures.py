"""The figures of device classes: now, soon, planned, and the bound."""
from __future__ import annotations

import pytest
from tests.support.clusters.unit_cluster import Cluster, change_of, hosts
from tests.support.rules import OSD_RULE
from tests.support.units import GIB

from equilibrium_mgr.execution.pending_moves import PendingMoves
from equilibrium_mgr.observation.cluster_view import ClusterView, make_view
from equilibrium_mgr.observation.refusals import planned_placement
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


def test_now_soon_planned_and_bound_of_a_class() -> None:
    """One shard is moving, one was sent and does not show yet, one is still to be sent."""
    cluster = three().pg("1.0", [1], acting=[0], num_bytes=10 * GIB, objects=10,
                         state="active+remapped+backfilling", items=[(0, 1)])
    cluster.pg("1.1", [2], acting=[2], num_bytes=10 * GIB, objects=10, items=[(0, 2)])
    cluster.osd(0, used=60 * GIB).osd(2, used=10 * GIB)   # osd.0 has 10 GiB beside its PGs
    pending = PendingMoves()
    pending.add(change_of("1.1", [0], [2]), three().snapshot(), 999.0)
    view = view_of(cluster, pending)
    wanted = [change_of("1.2", [0], [1]), change_of("1.3", [2], [1])]   # the latter is elsewhere
    found = class_rows(view, planned_placement(view, wanted).used)[0]
    assert (found["device_class"], found["osds"], found["fullest_osd"]) == ("hdd", 3, 0)
    assert found["utilization"] == pytest.approx(70 / 300) == found["used_bytes"] / (300 * GIB)
    assert found["max_utilization"] == pytest.approx(0.6) and found["min_utilization"] == 0.0
    assert found["soon_max_utilization"] == pytest.approx(0.4)
    assert found["planned_max_utilization"] == pytest.approx(0.3)
    assert found["bound_utilization"] is not None
    assert class_rows(view)[0]["planned_max_utilization"] is None


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
    assert "60.00" in class_table([row])


def test_class_table_is_in_per_cent_and_80_columns_wide() -> None:
    view = view_of(three(), PendingMoves())
    head, line = class_table(class_rows(view)).split("\n")
    assert head.split() == ["CLASS", "OSDS", "SIZE", "%USE", "%MAX", "FULLEST", "%MIN", "STDDEV",
                            "%SOON", "%PLAN", "%BOUND"]
    assert line.split() == ["hdd", "3", "300", "GiB", "20.00", "60.00", "osd.0", "0.00", "28.28",
                            "60.00", "20.00"]
    rows = [dict(class_rows(view)[0], device_class="a-class-of-20-letters",
                 size_bytes=1000 * 1024 ** 4, fullest_osd=1234, max_utilization=1.0)]
    assert max(len(text) for text in class_table(rows).split("\n")) <= 80

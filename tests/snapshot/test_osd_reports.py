"""OSDs that are up and yet have stopped to report."""
from __future__ import annotations

from typing import Any, Dict, List

import pytest
from tests.support.clusters.unit_cluster import Cluster, hosts

from equilibrium_mgr.snapshot.builder import SnapshotBuilder
from equilibrium_mgr.snapshot.osds import OsdReports


def stats(**seq: int) -> List[Dict[str, Any]]:
    return [{"osd": int(name[3:]), "seq": number} for name, number in seq.items()]


def test_silent_osd() -> None:
    reports = OsdReports()
    for minute in range(6):
        found = reports.stale(stats(osd0=10 + minute, osd1=7), 60.0 * minute)
        assert found == (frozenset((1,)) if minute > 2 else frozenset())
    assert reports.stale(stats(osd0=99, osd1=8), 400.0) == frozenset()


def test_statistics_that_stop_altogether() -> None:
    reports = OsdReports()
    reports.stale(stats(osd0=1, osd1=1), 0.0)
    reports.stale(stats(osd0=2, osd1=2), 10.0)
    assert reports.stale(stats(osd0=2, osd1=2), 120.0) == frozenset()
    assert reports.stale(stats(osd0=2, osd1=2), 140.0) == frozenset((0, 1))


def test_source_whose_numbers_never_change_tells_nothing() -> None:
    reports = OsdReports()
    assert [reports.stale(stats(osd0=5), 1000.0 * n) for n in range(5)] == [frozenset()] * 5
    assert OsdReports().stale([{"osd": 1}], 5.0) == frozenset()


def test_clock_that_is_set_back() -> None:
    reports = OsdReports()
    reports.stale(stats(osd0=1), 9000.0)
    reports.stale(stats(osd0=2), 9005.0)
    assert reports.stale(stats(osd0=2), 5400.0) == frozenset()
    assert reports.stale(stats(osd0=2), 5521.0) == frozenset((0,))


@pytest.mark.parametrize("state, counts", [
    ({}, True), ({"in": 0, "weight": 0.0}, False), ({"state": ["exists"], "up": 0}, False)])
def test_only_an_osd_that_is_up_and_in_can_be_silent(state: Dict[str, Any],
                                                     counts: bool) -> None:
    """Of an OSD that is out the mgr takes nothing in, and PGs have to leave it all the same."""
    cluster = Cluster(hosts(4)).pool(1, size=2).pg("1.0", "0 1")
    cluster.osd(3, **state)
    reading = cluster.reading()._replace(stale_osds=frozenset((3,)))
    assert bool(SnapshotBuilder().build(reading).stale_osds) == counts

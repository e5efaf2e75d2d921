"""What cannot be told is said, and never called balanced where it is all there is."""
from __future__ import annotations

from tests.support.clusters.unit_cluster import Cluster, hosts
from tests.support.fakes import Harness
from tests.support.units import GIB


def rested(cluster: Cluster) -> Harness:
    harness = Harness(cluster, active=True)
    for _ in range(3):
        harness.plan(61)
    harness.round(61)
    return harness


def even() -> Cluster:
    cluster = Cluster(hosts(4)).pool(1, size=2)
    for ps in range(8):
        cluster.pg(f"1.{ps:x}", [ps % 4, (ps + 1) % 4], num_bytes=GIB, objects=5)
    return cluster


def test_nothing_is_balanced_where_no_osd_has_reported() -> None:
    cluster = even()
    cluster.without_statistics = list(cluster.osds)
    harness = rested(cluster)
    assert harness.state == "waiting"
    assert "8 PGs wait: one of its OSDs has not reported" in harness.reason


def test_pgs_whose_omap_is_not_known_are_named() -> None:
    cluster = even().pool(2, size=2).pg("2.0", "0 1", num_bytes=0, objects=9)
    harness = rested(cluster)
    assert harness.state == "balanced"
    assert "1 PGs wait: its omap has not been measured" in harness.reason

"""The sentence for operators on what keeps a set of OSDs from being emptier."""
from __future__ import annotations

from tests.support.clusters.bound_clusters import confined, fill, giant, only_set
from tests.support.clusters.unit_cluster import Cluster, hosts
from tests.support.units import GIB

from equilibrium_mgr.report.explain.facts import describe_bound


def described(cluster: Cluster) -> str:
    return describe_bound(only_set(cluster), cluster.snapshot())


def test_a_pool_that_may_use_a_part_of_the_set_only() -> None:
    assert described(confined()) == (
        "class hdd under default, r0 cannot be below 40.00%: "
        "pool near may use only hosts h0, h1, equally full then")


def test_a_failure_domain() -> None:
    assert described(giant()) == (
        "class hdd under default cannot be below 20.00%: pool rbd may have no more shards on h3, so"
        " hosts h0, h1, h2 must hold the rest")


def test_osds_that_are_all_equally_full() -> None:
    assert described(fill(Cluster(hosts(4)).pool(1, size=2), 1, [[0, 1]] * 20)) == (
        "class hdd under default cannot be below 10.00%: every OSD would be equally full")


def test_long_lists_are_cut_short() -> None:
    cluster = Cluster(hosts(9)).osd(8, size=5000 * GIB).pool(1, size=2, name="rbd")
    fill(cluster, 1, [[ps % 8, 8] for ps in range(80)])
    assert "hosts h0, h1, h2, h3, h4 and 3 more must hold" in described(cluster)

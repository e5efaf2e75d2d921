"""The sentence for operators on what keeps a set of OSDs from being emptier."""
from __future__ import annotations

from tests.support.clusters.bound_clusters import confined, only_set
from tests.support.clusters.unit_cluster import Cluster

from equilibrium_mgr.report.explain.facts import describe_bound


def described(cluster: Cluster) -> str:
    return describe_bound(only_set(cluster), cluster.snapshot())


def test_a_pool_that_may_use_a_part_of_the_set_only() -> None:
    assert described(confined()) == (
        "class hdd under default, r0 cannot be below 40.00%: "
        "pool near may use only hosts h0, h1, equally full then")

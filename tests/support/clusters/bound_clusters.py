"""Clusters for tests of the utilization bound."""
from __future__ import annotations

from typing import Sequence

from tests.support.clusters.unit_cluster import Cluster, hosts
from tests.support.rules import HOST_RULE
from tests.support.units import GIB

from equilibrium_mgr.planner.bound.lower_bound import OsdSet, utilization_bounds


def fill(cluster: Cluster, pool: int, ups: Sequence[Sequence[int]], gib: int = 1) -> Cluster:
    """PGs of a pool, one per up set, with shards of as many GiB."""
    for ps, up in enumerate(ups):
        k = cluster.profiles.get(f"profile{pool}", {}).get("k", "1")
        cluster.pg(f"{pool}.{ps:x}", up, num_bytes=gib * GIB * int(k))
    return cluster


def only_set(cluster: Cluster) -> OsdSet:
    sets = utilization_bounds(cluster.snapshot()).sets
    assert len(sets) == 1
    return sets[0]


def giant() -> Cluster:
    """Three hosts of 100 GiB and one of 900; two copies of 60 GiB."""
    cluster = Cluster(hosts(4)).osd(3, size=900 * GIB).pool(1, size=2, name="rbd")
    return fill(cluster, 1, [[ps % 3, 3] for ps in range(30)] + [[0, 1]] * 30)


def confined() -> Cluster:
    """One pool may use all three hosts, the other only the two of a rack."""
    tree = {"root default": {"rack r0": {"host h0": [0], "host h1": [1]}, "host h2": [2]}}
    cluster = Cluster(tree, {0: HOST_RULE, 1: "take r0; chooseleaf firstn 0 host; emit"})
    fill(cluster.pool(1, size=1), 1, [[2]] * 30)
    return fill(cluster.pool(2, size=1, rule=1, name="near"), 2, [[0]] * 80)


def mixed_classes() -> Cluster:
    """Two hosts with an hdd and an ssd each; the first pool may use both classes, and its shards
    are on the ssds, the second one hdds alone."""
    rules = {0: "take default; chooseleaf firstn 0 host; emit",
             1: "take default~hdd; chooseleaf firstn 0 host; emit",
             2: "take default~ssd; chooseleaf firstn 0 host; emit"}
    cluster = Cluster(hosts(2, 2), rules, classes={0: "hdd", 1: "ssd", 2: "hdd", 3: "ssd"})
    fill(cluster.pool(1, size=2, rule=0), 1, [[1, 3]] * 20)
    return fill(cluster.pool(2, size=2, rule=1), 2, [[0, 2]] * 10)

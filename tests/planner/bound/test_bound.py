"""The utilization bound of clusters made by hand, and what keeps it from being lower."""
from __future__ import annotations

import pytest
from tests.support.clusters.bound_clusters import fill, giant, mixed_classes, only_set
from tests.support.clusters.random_clusters import random_cluster
from tests.support.clusters.unit_cluster import Cluster, hosts
from tests.support.giving_way import Asked
from tests.support.rules import EC_HOST_RULE, HOST_RULE
from tests.support.units import GIB

from equilibrium_mgr.planner.bound.lower_bound import cluster_bounds, utilization_bounds
from equilibrium_mgr.runtime.time_slice import giving_way


def test_shadow_buckets_are_named_without_their_class() -> None:
    cluster = giant()
    cluster.crush["rules"] = Cluster(
        hosts(4), {0: "take default~hdd; chooseleaf firstn 0 host; emit"}).crush["rules"]
    osd_set = only_set(cluster)
    assert osd_set.takes == ("default~hdd",)
    assert osd_set.binding.buckets == ("h3",)


def test_osds_that_no_pool_may_use_keep_what_they_have() -> None:
    cluster = Cluster(hosts(2, 2), {0: "take default~hdd; chooseleaf firstn 0 host; emit"},
                      classes={0: "ssd", 2: "ssd"}).osd(0, used=7 * GIB)
    fill(cluster.pool(1, size=1), 1, [[1]] * 20)
    result = utilization_bounds(cluster.snapshot())
    (osd_set,) = result.sets
    assert osd_set.osds == (1, 3)
    assert result.utilizations == pytest.approx({0: 0.07, 1: 0.1, 2: 0.0, 3: 0.1})
    assert result.highest == pytest.approx({"hdd": 0.1, "ssd": 0.07})


def test_fixed_pools_stay_where_they_are() -> None:
    cluster = Cluster(hosts(2)).pool(1, size=1).pool(2, size=1)
    fill(cluster, 1, [[0]] * 30)
    fill(cluster, 2, [[0]] * 10)
    snapshot = cluster.snapshot()
    assert utilization_bounds(snapshot).highest["hdd"] == pytest.approx(0.2)
    result = utilization_bounds(snapshot, frozenset((1,)))
    assert result.utilizations == pytest.approx({0: 0.3, 1: 0.1})
    assert result.sets[0].binding == ("fixed bytes", (0,), (), ())
    assert utilization_bounds(snapshot, frozenset((1, 2))).sets == ()


def test_pgs_that_break_their_rule_do_not_make_it_impossible() -> None:
    """Three copies on two hosts: what is can also be, so a host's limit is two."""
    cluster = fill(Cluster(hosts(2, 2)).pool(1, size=3), 1, [[0, 1, 2]] * 20)
    assert only_set(cluster).bound == pytest.approx(0.15)


def test_drained_host_that_has_to_keep_its_part_of_an_erasure_coded_pool() -> None:
    """Edges from the other hosts' tier to the drained host carry nothing: they bind nothing."""
    cluster = Cluster(hosts(4, 2), {0: EC_HOST_RULE, 1: HOST_RULE})
    cluster.pool(1, size=4, k=2).pool(2, size=2, rule=1)
    fill(cluster.osd(0, weight=0.1).osd(1, weight=0.1), 1, [[0, 2, 4, 6], [1, 3, 5, 7]] * 10)
    result = only_set(fill(cluster, 2, [[2, 4], [3, 5], [6, 0], [7, 1]] * 9))
    assert result.binding == ("capacity", tuple(range(2, 8)), (), ())
    assert result.bound == pytest.approx((60 + 72) / 600)


def test_it_gives_way() -> None:
    asked = Asked()
    with giving_way(asked):
        cluster_bounds(random_cluster(1).snapshot())
    assert len(asked) > 3


def test_classes_that_a_pool_mixes_have_one_bound() -> None:
    result = utilization_bounds(mixed_classes().snapshot())
    assert only_set(mixed_classes()).name == "hdd,ssd"
    assert result.highest == pytest.approx({"hdd,ssd": 0.15})


def test_few_bytes_that_may_be_anywhere_tie_nothing() -> None:
    """As those of .mgr: each class keeps its row, and its bound is not below its mean."""
    cluster = mixed_classes()
    for ps in range(20):
        cluster.pg(f"1.{ps:x}", "1 3", 1 << 20)
    fill(cluster.pool(3, size=2, rule=2), 3, [[1, 3]] * 5)
    result = utilization_bounds(cluster.snapshot())
    assert result.highest == {"hdd": pytest.approx(0.1), "ssd": pytest.approx(0.05, rel=0.01)}
    assert result.highest["ssd"] >= 0.05


def test_roots_of_one_class_have_a_bound_each() -> None:
    """What no pool may use is neither."""
    tree = {"root a": {"host h0": [0, 1]}, "root b": {"host h2": [2, 3]},
            "root c": {"host h4": [4]}}
    cluster = Cluster(tree, {0: "take a; choose firstn 0 osd; emit",
                             1: "take b; choose firstn 0 osd; emit"})
    fill(cluster.pool(1, size=1), 1, [[0]] * 30)
    fill(cluster.pool(2, size=1, rule=1), 2, [[2]] * 10)
    assert utilization_bounds(cluster.snapshot()).highest == pytest.approx(
        {"hdd (a)": 0.15, "hdd (b)": 0.05, "hdd (no pool)": 0.0})

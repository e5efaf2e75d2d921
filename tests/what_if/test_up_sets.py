"""Up sets after a failure: what the monitor leaves of upmap items that the mgr's map still has."""
from __future__ import annotations

from typing import Tuple

from tests.support.clusters.unit_cluster import NONE, Cluster, hosts

from equilibrium_mgr.what_if.failure import UpSetsAfter

Osds = Tuple[int, ...]


def up_after(cluster: Cluster, failed: int, mapped: Osds, items: object = None) -> Osds:
    snapshot = cluster.snapshot()
    pg = snapshot.pgs["1.0"]
    wanted = snapshot.upmap_items.get("1.0", ()) if items is None else items
    return UpSetsAfter(snapshot, frozenset({failed})).up(
        pg, mapped, wanted)  # type: ignore[arg-type]


def cluster_with(up: Osds, *items: Tuple[int, int]) -> Cluster:
    """Hosts of two OSDs each: 0 and 1, 2 and 3, ..."""
    return Cluster(hosts(5, 2)).pool(1, size=3).pg("1.0", up, items=items)


def test_without_items_as_the_mgr_maps_it() -> None:
    assert up_after(cluster_with((0, 2, 4)), 0, (6, 2, 4)) == (6, 2, 4)


def test_items_are_cancelled_where_crush_finds_too_few_osds() -> None:
    cluster = Cluster(hosts(5, 2)).pool(1, size=3, k=2).pg("1.0", (8, 2, 4), items="0>8")
    assert up_after(cluster, 2, (8, NONE, 4)) == (0, NONE, 4)


def test_a_pair_whose_source_crush_has_left_is_dropped_and_the_rest_stays() -> None:
    cluster = cluster_with((8, 6, 4), (0, 8), (2, 6))
    assert up_after(cluster, 0, (3, 6, 4)) == (3, 6, 4)


def test_items_of_a_plan_take_the_place_of_those_of_now() -> None:
    cluster = cluster_with((8, 2, 4), (0, 8))
    assert up_after(cluster, 2, (8, 6, 4), ((0, 1),)) == (1, 6, 4)
    assert up_after(cluster, 2, (8, 6, 4), ()) == (0, 6, 4)
    assert up_after(cluster, 2, (8, 6, 4), ((2, 1), (4, 7))) == (0, 6, 4)   # 6 and 7: one host


def test_a_failed_osd_that_the_rule_leaves_in_place_is_not_up() -> None:
    assert up_after(cluster_with((0, 2, 4)), 2, (0, 2, 4)) == (0, 4)
    erasure = Cluster(hosts(5, 2)).pool(1, size=3, k=2).pg("1.0", (0, 2, 4))
    assert up_after(erasure, 2, (0, 2, 4)) == (0, NONE, 4)


def test_items_of_a_pg_with_a_down_osd_are_believed() -> None:
    cluster = cluster_with((8, 4), (0, 8)).osd(2, up=0, state=["exists"])
    assert up_after(cluster, 4, (8, 6)) == (8, 6)


def test_of_a_chain_of_items_the_monitor_keeps_the_first() -> None:
    cluster = cluster_with((0, 2, 4))
    assert up_after(cluster, 2, (0, 6, 4), ((0, 8), (8, 1))) == (8, 6, 4)

"""The bounds with changes: closed forms."""
from __future__ import annotations

import tracemalloc
from typing import Any, Dict, List, Sequence

import pytest
from tests.support.clusters.bound_clusters import fill
from tests.support.clusters.unit_cluster import OSD_BYTES, Cluster, hosts
from tests.support.rules import HOST_RULE
from tests.support.units import GIB

from equilibrium_mgr.planner.bound.changed import ChangeFigures, change_figures
from equilibrium_mgr.runtime.time_slice import giving_way
from equilibrium_mgr.what_if.change import AddedOsds, Changes, parse_changes

RACK_RULE = "take default; chooseleaf firstn 0 rack; emit"
SIZE = f"{OSD_BYTES >> 30}G"


def in_racks(osds_each: int = 2) -> Cluster:
    """Three copies in three racks, 40 GiB on each OSD."""
    tree: Dict[str, Any] = {"root default": {f"rack r{rack}": {f"host h{rack}{n}": [
        rack * osds_each + n] for n in range(osds_each)} for rack in range(3)}}
    cluster = Cluster(tree, {0: RACK_RULE, 1: HOST_RULE}).pool(1, size=3, name="rbd")
    for ps in range(40 * osds_each):
        cluster.pg(f"1.{ps:x}", [ps % osds_each + rack * osds_each for rack in range(3)], GIB)
    return cluster


def on_hosts(count: int, size: int = 2, gib: int = 50) -> Cluster:
    """As many GiB on each host of one OSD."""
    cluster = Cluster(hosts(count)).pool(1, size=size, name="rbd")
    fill(cluster, 1, [[(ps + copy) % count for copy in range(size)]
                      for ps in range(count * gib // size)])
    return cluster


def asked(cluster: Cluster, **texts: Sequence[str]) -> ChangeFigures:
    snapshot = cluster.snapshot()
    options: List[Sequence[str]] = [texts.get(name, ()) for name in (
        "add", "remove", "resize", "pg_num")]
    return change_figures(snapshot, parse_changes(snapshot, *options))


def test_an_odd_host_in_three_racks_is_of_no_use() -> None:
    found = asked(in_racks(), add=[f"new:3x{SIZE}@r0"])
    assert found.then.highest["hdd"] == pytest.approx(0.4)
    assert found.usable_ratio == pytest.approx(0.0, abs=1e-6)
    assert found.better is not None and found.better[0] == "1 of them under each rack"
    assert found.better[1] == pytest.approx(1.0, abs=1e-6)
    # the other racks' copies are what limits it
    assert found.then.room_bytes == pytest.approx(2 * (95 - 40) * GIB, rel=1e-6)


def test_a_host_in_each_rack_is_all_usable() -> None:
    found = asked(in_racks(), add=[f"new{rack}:1x{SIZE}@r{rack}" for rack in range(3)])
    assert found.usable_ratio == pytest.approx(1.0, abs=1e-6) and found.better is None
    assert found.then.highest["hdd"] == pytest.approx(0.8 / 3)
    assert found.then.room_bytes == pytest.approx((3 * 95 - 80) * GIB, rel=1e-6)
    # from each of the six what is above the bound
    assert found.then.moved_bytes == pytest.approx(6 * (40 - 80 / 3) * GIB, rel=1e-6)


def test_a_giant_host_is_named_with_what_would_do() -> None:
    found = asked(on_hosts(4), add=[f"new:8x{SIZE}"])
    # as many bytes as the four others have together
    assert found.usable_ratio == pytest.approx(0.5, abs=1e-6)
    assert found.better is not None and found.better[0] == "in 2 hosts of 4"
    assert found.better[1] == pytest.approx(1.0, abs=1e-6)


def test_what_makes_other_space_usable_counts_for_it() -> None:
    cluster = on_hosts(3, gib=40).osd(0, size=4 * OSD_BYTES)   # of which two thirds are idle
    found = asked(cluster, add=[f"new:1x{SIZE}"])
    assert found.usable_ratio == pytest.approx(2.0, rel=1e-6) and found.better is None


def test_osds_that_no_rule_reaches() -> None:
    found = asked(in_racks(), add=[f"new:2x{SIZE}@default"])
    assert found.unreached == 2 and found.usable_ratio == pytest.approx(0.0, abs=1e-9)
    assert found.then.highest == found.now.highest


def test_pools_whose_rule_passes_them_by_are_named() -> None:
    cluster = in_racks().pool(2, size=2, rule=1, name="fs").pg("2.0", [0, 2], GIB)
    found = asked(cluster, add=[f"new:2x{SIZE}@default"])
    assert (found.unreached, found.passing_pools) == (0, ["rbd"])
    assert asked(cluster, add=[f"new:2x{SIZE}@r0"]).passing_pools == []


def test_what_is_removed_goes_to_the_others() -> None:
    found = asked(on_hosts(5, gib=40), remove=["h4"])
    assert found.then.highest["hdd"] == pytest.approx(0.5)
    assert found.then.moved_bytes == pytest.approx(40 * GIB)
    assert found.then.room_bytes == pytest.approx(4 * 45 * GIB / 2, rel=1e-6)
    assert found.failed is not None
    assert found.failed[1].highest["hdd"] == pytest.approx(2 / 3)
    assert (found.computed_hosts, found.hosts, found.usable_ratio) == (4, 4, None)


def test_shards_without_a_place_are_told() -> None:
    found = asked(on_hosts(3, size=3), remove=["h0"])
    assert found.then.missing_shards == {"rbd": 1} and found.then.highest["hdd"] == 0.5
    assert found.failed is not None and found.failed[1].missing_shards == {"rbd": 2}


def test_a_larger_osd() -> None:
    found = asked(on_hosts(5), resize=["osd.0=200G"])
    assert found.then.highest["hdd"] == pytest.approx(250 / 600)
    assert found.failed is not None and found.failed[0] == "h0"
    assert found.failed[1].highest["hdd"] == pytest.approx(250 / 400)


def test_whole_shards_of_another_size() -> None:
    """20 shards of 10 GiB on five OSDs are four each; 10 of 20 GiB, which fit as well; five of
    40 GiB, one each; and 25 of 8 GiB."""
    cluster = Cluster(hosts(5)).pool(1, size=1, name="rbd")
    fill(cluster, 1, [[ps % 5] for ps in range(20)])
    for ps in range(20):
        cluster.pg(f"1.{ps:x}", [ps % 5], 10 * GIB)
    for pg_num, whole in ((10, 0.4), (5, 0.4), (8, 0.5), (4, 0.5), (3, 2 / 3), (19, 0.42105)):
        found = asked(cluster, pg_num=[f"rbd={pg_num}"])
        assert found.then.highest["hdd"] == pytest.approx(0.4)
        assert found.then.whole["hdd"] == pytest.approx(whole, abs=1e-4)
        assert found.now.whole["hdd"] == pytest.approx(0.4)


def test_a_tiny_osd_costs_no_more() -> None:
    """As where the T of 20T was forgotten, or a small disk is among large ones."""
    cluster = on_hosts(5, size=1)
    tracemalloc.start()
    found = asked(cluster, resize=["osd.0=1M"])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.then.whole["hdd"] == pytest.approx(0.63) and peak < 1 << 20


def test_a_cluster_without_data() -> None:
    cluster = Cluster(hosts(3)).pool(1, size=2).pg("1.0", [0, 1], 0)
    found = asked(cluster, add=[f"new:1x{SIZE}"])
    assert (found.usable_ratio, found.then.room_bytes, found.better) == (None, None, None)
    assert found.then.moved_bytes == 0


def test_it_ends_where_it_is_told_to() -> None:
    with giving_way(lambda _: False):
        found = asked(on_hosts(6), add=[f"new:20x{SIZE}"])
    assert (found.computed_hosts, found.hosts, found.better) == (1, 7, None)
    assert found.failed is not None and found.failed[0] == "new"
    assert change_figures(on_hosts(6).snapshot(), Changes((
        AddedOsds("new", 20, OSD_BYTES, "hdd", "default"),))).better is not None

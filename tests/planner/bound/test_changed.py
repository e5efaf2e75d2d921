"""The bounds with changes: closed forms."""
from __future__ import annotations

import tracemalloc
from typing import Dict, List, Sequence

import pytest
from tests.support.clusters.bound_clusters import fill
from tests.support.clusters.unit_cluster import OSD_BYTES, Cluster, hosts, racks
from tests.support.rules import HOST_RULE
from tests.support.units import GIB

from equilibrium_mgr.planner.bound.changed import ChangeFigures, change_figures
from equilibrium_mgr.runtime.time_slice import giving_way
from equilibrium_mgr.what_if.change import parse_changes

RACK_RULE = "take default; chooseleaf firstn 0 rack; emit"


def in_racks() -> Cluster:
    """Three copies in three racks, 40 GiB on each OSD; a pool that racks do not keep apart."""
    cluster = Cluster(racks(3), {0: RACK_RULE, 1: HOST_RULE}).pool(1, size=3, name="rbd")
    return fill(cluster, 1, [[0, 2, 4], [1, 3, 5]] * 40)


def on_hosts(count: int, size: int = 2, gib: int = 50) -> Cluster:
    """As many GiB on each host of one OSD."""
    cluster = Cluster(hosts(count)).pool(1, size=size, name="rbd")
    ring = [*range(count), *range(count)]
    return fill(cluster, 1, [ring[ps % count:ps % count + size]
                             for ps in range(count * gib // size)])


def asked(cluster: Cluster, **texts: Sequence[str]) -> ChangeFigures:
    snapshot = cluster.snapshot()
    options = [texts.get(name, ()) for name in ("add", "remove", "resize", "pg_num")]
    return change_figures(snapshot, parse_changes(snapshot, *options))


def told(found: ChangeFigures) -> str:
    """The figures in a line, GiB where they are bytes."""
    then = found.then
    line = f"{then.highest['hdd']:.7f}, {then.moved_bytes / GIB:.4f} moved"
    if then.room_bytes is not None:
        line += f", room {then.room_bytes / GIB:.4f}"
    if found.usable_ratio is not None:
        line += f", {abs(found.usable_ratio):.6f} usable"
    if found.better is not None:
        line += f", {found.better[1]:.6f} {found.better[0]}"
    if found.failed is not None:
        line += f", {found.failed[1].highest['hdd']:.7f} without {found.failed[0]}"
    return line


@pytest.mark.parametrize("cluster, changes, figures", [
    # the other racks' copies are what limits it
    (in_racks(), {"add": ["new:3x100G@r0"]},
     "0.4000000, 0.0000 moved, room 110.0000, 0.000000 usable, "
     "1.000000 1 of them under each rack, 0.8000000 without h5"),
    # from each of the six what is above the bound
    (in_racks(), {"add": ["new0:1x100G@r0", "new1:1x100G@r1", "new2:1x100G@r2"]},
     "0.2666667, 80.0000 moved, room 205.0000, 1.000000 usable, 0.4000000 without new2"),
    # as many bytes as the four others have together
    (on_hosts(4), {"add": ["new:8x100G"]},
     "0.2500000, 100.0000 moved, room 280.0000, 0.500000 usable, "
     "1.000000 in 2 hosts of 4, 0.5000000 without new"),
    # two thirds of osd.0 are idle
    (on_hosts(3, gib=40).osd(0, size=4 * OSD_BYTES), {"add": ["new:1x100G"]},
     "0.2000000, 40.0000 moved, room 225.0000, 2.000000 usable, 0.4000000 without h0"),
    (on_hosts(5, gib=40), {"remove": ["h4"]},
     "0.5000000, 40.0000 moved, room 90.0000, 0.6666667 without h3"),
    (on_hosts(5), {"resize": ["osd.0=200G"]},
     "0.4166667, 33.3333 moved, room 160.0000, 0.6250000 without h0"),
    (on_hosts(3, size=3), {"remove": ["h0"]},
     "0.5000000, 0.0000 moved, room 45.0000, 0.5000000 without h2"),
    (Cluster(hosts(3)).pool(1, size=2).pg("1.0", "0 1", 0), {"add": ["new:1x100G"]},
     "0.0000000, 0.0000 moved, 0.0000000 without new")])
def test_closed_forms(cluster: Cluster, changes: Dict[str, List[str]], figures: str) -> None:
    assert told(asked(cluster, **changes)) == figures


def test_osds_that_no_rule_reaches() -> None:
    found = asked(in_racks(), add=["new:2x100G@default"])
    assert found.unreached == 2 and found.usable_ratio == pytest.approx(0.0, abs=1e-9)
    assert found.then.highest == found.now.highest


def test_pools_whose_rule_passes_them_by_are_named() -> None:
    cluster = in_racks().pool(2, size=2, rule=1, name="fs").pg("2.0", "0 2", GIB)
    found = asked(cluster, add=["new:2x100G@default"])
    assert (found.unreached, found.passing_pools) == (0, ["rbd"])
    assert asked(cluster, add=["new:2x100G@r0"]).passing_pools == []


def test_shards_without_a_place_are_told() -> None:
    found = asked(on_hosts(3, size=3), remove=["h0"])
    assert found.failed is not None and found.failed[1].missing_shards == {"rbd": 2}
    assert found.then.missing_shards == {"rbd": 1} and found.computed_hosts == found.hosts == 2


@pytest.mark.parametrize("pg_num, whole", [
    (10, 0.4), (5, 0.4), (8, 0.5), (4, 0.5), (3, 0.66667), (19, 0.42105)])
def test_whole_shards_of_another_size(pg_num: int, whole: float) -> None:
    """20 shards of 10 GiB on five OSDs are four each; 10 of 20 GiB, which fit as well; five of
    40 GiB, one each; and 25 of 8 GiB."""
    cluster = Cluster(hosts(5)).pool(1, size=1, name="rbd")
    fill(cluster, 1, [[0], [1], [2], [3], [4]] * 4, gib=10)
    found = asked(cluster, pg_num=[f"rbd={pg_num}"])
    assert (found.now.whole["hdd"], found.then.highest["hdd"]) == pytest.approx((0.4, 0.4))
    assert found.then.whole["hdd"] == pytest.approx(whole, abs=1e-4)


def test_a_tiny_osd_costs_no_more() -> None:
    """As where the T of 20T was forgotten, or a small disk is among large ones."""
    cluster = on_hosts(5, size=1)
    tracemalloc.start()
    found = asked(cluster, resize=["osd.0=1M"])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.then.whole["hdd"] == pytest.approx(0.63) and peak < 1 << 20


def test_it_ends_where_it_is_told_to() -> None:
    with giving_way(lambda _: False):
        found = asked(on_hosts(6), add=["new:20x100G"])
    assert (found.computed_hosts, found.hosts, found.better) == (1, 7, None)
    assert found.failed is not None and found.failed[0] == "new"
    assert asked(on_hosts(6), add=["new:20x100G"]).better is not None

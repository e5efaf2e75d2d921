"""The cluster once it has recovered: bytes, full targets, PGs without a place, lost PGs."""
from __future__ import annotations

from typing import Dict, List, Mapping, Sequence, Tuple

import pytest
from tests.support.clusters.unit_cluster import NONE, OSD_BYTES, Cluster, change_of, hosts
from tests.support.rules import HOST_RULE
from tests.support.units import GIB

from equilibrium_mgr.runtime.time_slice import giving_way
from equilibrium_mgr.plan.placement import placement
from equilibrium_mgr.what_if.failure import (
    Failure, Recovery, pgs_by_osd, recover, usage_of, worst_failures)

Ups = Mapping[str, Tuple[int, ...]]


def fails(*osds: int) -> Failure:
    return Failure("it", "host", frozenset(osds))


def after(cluster: Cluster, failure: Failure, mapped: Ups) -> Recovery:
    return recover(placement(cluster.snapshot()), failure, mapped)


def two_copies() -> Cluster:
    cluster = Cluster(hosts(4)).pool(1, size=2)
    return cluster.pg("1.0", [0, 1], 10 * GIB).pg("1.1", [0, 2], 20 * GIB).pg("1.2", [1, 2], GIB)


def test_positions_count_in_erasure_coded_pools() -> None:
    cluster = Cluster(hosts(4)).pool(1, size=3, k=2).pg("1.0", [0, 1, 2], 20 * GIB)
    found = after(cluster, fails(0), {"1.0": (1, 3, 2)})
    assert found.copied_shards == 2   # shard 0 to osd.1 and shard 1 from there to osd.3
    assert found.used == {1: 10 * GIB, 2: 10 * GIB, 3: 10 * GIB}


def test_pgs_that_do_not_fit_below_backfillfull() -> None:
    cluster = two_copies().osd(3, used=75 * GIB)
    found = after(cluster, fails(0), {"1.0": (3, 1), "1.1": (3, 2)})   # 75 + 10 + 20 of 90
    assert found.too_full == {"1.1"} and found.fullest[0] == pytest.approx(1.05)
    assert after(cluster.osd(3, used=60 * GIB), fails(0),
                 {"1.0": (3, 1), "1.1": (3, 2)}).too_full == frozenset()


def test_what_leaves_a_target_makes_space_on_it() -> None:
    cluster = two_copies().osd(2, used=85 * GIB)
    stays: Dict[str, Tuple[int, ...]] = {"1.0": (2, 1), "1.1": (3, 2)}
    assert after(cluster, fails(0), stays).too_full == {"1.0"}
    assert after(cluster, fails(0), {**stays, "1.1": (3, 1)}).too_full == frozenset()


@pytest.mark.parametrize("up", [(1,), (1, NONE)])
def test_pgs_without_a_place(up: Sequence[int]) -> None:
    found = after(two_copies(), fails(0), {"1.0": tuple(up), "1.1": (3, 2)})
    assert found.undersized == {1: 1} and found.copied_shards == 1


def test_pgs_that_lose_too_many_shards_are_lost_and_copied_nowhere() -> None:
    cluster = two_copies().pool(2, size=3, k=2).pg("2.0", [0, 1, 2], 20 * GIB)
    found = after(cluster, fails(0, 1), {"1.0": (2, 3), "1.1": (3, 2), "1.2": (3, 2),
                                         "2.0": (3, NONE, 2)})
    assert found.lost == {1: 1, 2: 1}
    assert found.used == {2: (20 + 1 + 10) * GIB, 3: (20 + 1) * GIB}
    assert found.severity() > after(two_copies(), fails(0), {"1.0": (3, 1)}).severity()


def test_pgs_below_min_size_serve_nobody_until_they_are_recovered() -> None:
    cluster = two_copies().pool(1, size=2, min_size=2).pool(2, size=4, k=2, min_size=3)
    cluster.pg("2.0", [0, 1, 2, 3], 20 * GIB)
    one = after(cluster, fails(0), {"1.0": (3, 1), "1.1": (3, 2), "2.0": (NONE, 1, 2, 3)})
    assert one.inactive == {1: 2} and one.undersized == {2: 1} and one.lost == {}
    two = after(cluster, fails(0, 1), {"1.0": (2, 3), "2.0": (NONE, NONE, 2, 3)})
    assert two.inactive == {2: 1} and two.lost == {1: 1}
    assert one.severity() > after(cluster, fails(0), {"1.1": (3, 2)}).severity()


def test_a_pg_that_lacks_an_osd_already_counts_where_it_is_touched() -> None:
    cluster = two_copies().pg("1.3", [3], GIB, state="active+undersized")
    assert "1.3" in pgs_by_osd(placement(cluster.snapshot()))[NONE]
    assert after(cluster, fails(0), {"1.3": (3,)}).undersized == {}
    found = after(cluster, fails(0), {"1.3": (3, 1)})   # it was osd.0 that has failed already
    assert found.used[1] == 12 * GIB and found.undersized == {}


def test_a_plan_counts_as_carried_out() -> None:
    snapshot = two_copies().snapshot()
    placed = placement(snapshot).after([
        change_of("1.0", [0, 1], [3, 1]), change_of("1.1", [9, 2], [3, 2])])   # elsewhere by now
    assert sorted(placed.changes) == ["1.0"]
    assert placed.used == {0: 20 * GIB, 1: 11 * GIB, 2: 21 * GIB, 3: 10 * GIB}
    assert pgs_by_osd(placed)[3] == ["1.0"]
    found = recover(placed, fails(3), {"1.0": (0, 1)})
    assert found.used == {0: 30 * GIB, 1: 11 * GIB, 2: 21 * GIB}


def test_figures_leave_the_failed_osds_out() -> None:
    snapshot = two_copies().osd(0, size=4 * OSD_BYTES).snapshot()
    placed = placement(snapshot)
    found = recover(placed, fails(0), {"1.0": (3, 1), "1.1": (3, 2)})
    before, later = usage_of(placed), found.after
    assert [(usage.osds, usage.fullest_osd) for usage in (
        before.classes["hdd"], later.classes["hdd"])] == [(4, 2), (3, 3)]
    assert later.pools["pool1"].limiting_osd == 3
    assert 0 < later.pools["pool1"].free_bytes < before.pools["pool1"].free_bytes
    assert later.room is not None and later.room.limiting_osd == 3


def test_where_time_is_short_those_with_the_most_data_are_computed() -> None:
    cluster = Cluster(hosts(8), {0: HOST_RULE}).pool(1, size=2)
    for osd in range(7):
        cluster.pg(f"1.{osd:x}", [osd, osd + 1], (osd + 1) * GIB)
    asked: List[int] = []
    heard: List[int] = []

    def mapped(osds: Sequence[int], pgids: Sequence[str]) -> Mapping[str, Tuple[int, ...]]:
        asked.append(osds[0])
        return {}
    placed = placement(cluster.snapshot())

    def ask(computed: int) -> bool:
        heard.append(computed)
        return len(asked) < 3
    with giving_way(ask):
        found = worst_failures(placed, mapped)["host"]
    assert asked == [6, 5, 4] and (found.failures, found.computed) == (8, 3)
    assert max(heard) == 3   # for who asks how far it is

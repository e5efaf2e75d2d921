"""The cluster once it has recovered: bytes, lost PGs, what a plan changes. The golden screens have
full targets, PGs without a place and PGs below min_size."""
from __future__ import annotations

from typing import List, Mapping, Sequence, Tuple

import pytest
from tests.support.clusters.unit_cluster import NONE, Cluster, change_of, hosts
from tests.support.rules import HOST_RULE
from tests.support.units import GIB

from equilibrium_mgr.runtime.time_slice import giving_way
from equilibrium_mgr.plan.placement import placement
from equilibrium_mgr.what_if.failure import (
    Failure, Recovery, at_failure, pgs_by_osd, recover, worst_failures)

Ups = Mapping[str, Tuple[int, ...]]


def fails(*osds: int) -> Failure:
    return Failure("it", "host", frozenset(osds))


def after(cluster: Cluster, failure: Failure, mapped: Ups) -> Recovery:
    return recover(placement(cluster.snapshot()), failure, mapped)


def two_copies() -> Cluster:
    cluster = Cluster(hosts(4)).pool(1, size=2)
    return cluster.pg("1.0", "0 1", 10 * GIB).pg("1.1", "0 2", 20 * GIB).pg("1.2", "1 2", GIB)


def test_pgs_that_lose_too_many_shards_are_lost_and_copied_nowhere() -> None:
    cluster = two_copies().pool(2, size=3, k=2).pg("2.0", "0 1 2", 20 * GIB)
    found = after(cluster, fails(0, 1), {"1.0": (2, 3), "1.1": (3, 2), "1.2": (3, 2),
                                         "2.0": (3, NONE, 2)})
    assert found.lost == {1: 1, 2: 1}
    assert found.used == {2: (20 + 1 + 10) * GIB, 3: (20 + 1) * GIB}
    assert found.severity() > after(two_copies(), fails(0), {"1.0": (3, 1)}).severity()


def test_a_pg_that_lacks_an_osd_already_counts_where_it_is_touched() -> None:
    cluster = two_copies().pg("1.3", [3], GIB, state="active+undersized")
    assert "1.3" in pgs_by_osd(placement(cluster.snapshot()))[NONE]
    assert after(cluster, fails(0), {"1.3": (3,)}).undersized == {}
    found = after(cluster, fails(0), {"1.3": (3, 1)})   # it was osd.0 that has failed already
    assert found.used[1] == 12 * GIB
    assert found.undersized == {}


def full_osds() -> Cluster:
    """Two OSDs with room for one shard of 20 GiB less than the shards that change places."""
    cluster = Cluster(hosts(5)).pool(1, size=1)
    cluster.pg("1.0", [0], 20 * GIB).pg("1.1", [1], 20 * GIB).pg("1.2", [2], GIB)
    return cluster.osd(0, used=75 * GIB).osd(1, used=75 * GIB)


def test_pgs_may_wait_for_each_other_forever() -> None:
    """An OSD has room, 90 GiB, once the shard that leaves it is gone."""
    found = after(full_osds(), fails(4), {"1.0": (1,), "1.1": (0,), "1.2": (3,)})
    assert found.too_full == {"1.0": 20 * GIB, "1.1": 20 * GIB}
    assert found.no_room_bytes == 40 * GIB and found.copied_bytes == 41 * GIB
    assert found.fullest[0] == pytest.approx(0.75)
    assert found.peak[0] == pytest.approx(0.9)   # what OSDs take at most
    free = full_osds().osd(1, used=60 * GIB)   # it takes the shard, and the other then has room
    found = after(free, fails(4), {"1.0": (1,), "1.1": (0,)})
    assert not found.too_full
    assert found.peak[0] == pytest.approx(0.8)


def test_osds_keep_what_a_pg_without_a_place_has_left() -> None:
    """Nothing of a PG is deleted until all its shards are somewhere."""
    cluster = Cluster(hosts(5)).pool(1, size=3, k=2).pg("1.0", [0, 1, 2], 20 * GIB)
    found = after(cluster, fails(0), {"1.0": (NONE, 3, 2)})
    assert found.used == {1: 10 * GIB, 2: 10 * GIB, 3: 10 * GIB, 4: 0}
    assert (found.undersized, found.unplaced_bytes) == ({1: 1}, 10 * GIB)
    # the old OSD of a shard without another goes on to serve it
    found = after(cluster, fails(4), {"1.0": (0, 3, NONE)})
    assert found.used == {0: 10 * GIB, 1: 0, 2: 10 * GIB, 3: 10 * GIB}
    assert (found.undersized, found.unplaced_bytes) == ({}, 0)


def test_pgs_below_min_size_are_left_to_ceph() -> None:
    cluster = Cluster(hosts(4)).pool(1, size=2, min_size=2).pg("1.0", [0, 1], GIB)
    placed = placement(cluster.snapshot())
    found = recover(placed, fails(0), {"1.0": (3, 1)})
    assert "active" not in at_failure(placed, found).pgs["1.0"].state


def test_a_plan_counts_as_carried_out() -> None:
    snapshot = two_copies().snapshot()
    placed = placement(snapshot).after([
        change_of("1.0", [0, 1], [3, 1]), change_of("1.1", [9, 2], [3, 2])])   # elsewhere by now
    assert sorted(placed.changes) == ["1.0"]
    assert placed.used == {0: 20 * GIB, 1: 11 * GIB, 2: 21 * GIB, 3: 10 * GIB}
    assert pgs_by_osd(placed)[3] == ["1.0"]
    found = recover(placed, fails(3), {"1.0": (0, 1)})
    assert found.used == {0: 30 * GIB, 1: 11 * GIB, 2: 21 * GIB}


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
    assert asked == [6, 5, 4]
    assert (found.failures, found.computed) == (8, 3)
    assert max(heard) == 3   # for who asks how far it is

"""Utilization per class and free space per pool."""
from __future__ import annotations

import pytest
from tests.support.clusters.random_clusters import random_cluster
from tests.support.clusters.unit_cluster import Cluster, hosts
from tests.support.clusters.usages import snapshot_usage
from tests.support.plan_legality import part_of
from tests.support.rules import OSD_RULE
from tests.support.units import GIB


def test_free_space_is_what_the_first_full_osd_allows() -> None:
    """Smallest of (size x full ratio - used) / (its shards / (pg_num x k)) over the OSDs."""
    cluster = Cluster(hosts(1, 3), {0: OSD_RULE}).pool(1, size=2, name="rbd")
    cluster.pg("1.0", [0, 1], num_bytes=10 * GIB).pg("1.1", [0, 2], num_bytes=20 * GIB)
    space = snapshot_usage(cluster.snapshot()).pools["rbd"]
    # osd.0: (95 - 30) / (2 / 2) = 65; osd.1: (95 - 10) / (1 / 2) = 170; osd.2: 150
    assert space.free_bytes == 65 * GIB
    assert space.limiting_osd == 0 and space.stored_bytes == 30 * GIB


def test_room_is_what_fits_if_all_pools_grow_alike() -> None:
    """osd.0 gets a shard of each pool, so it is full before either pool alone would be."""
    cluster = Cluster(hosts(1, 3), {0: OSD_RULE})
    cluster.pool(1, size=1, name="a").pool(2, size=1, name="b")
    cluster.pg("1.0", [0], num_bytes=10 * GIB).pg("2.0", [0], num_bytes=5 * GIB)
    cluster.pg("2.1", [1], num_bytes=5 * GIB)
    usage = snapshot_usage(cluster.snapshot())
    # osd.0 has 80 free and gets 10 + 5 of every 20 written
    assert usage.room is not None
    assert (usage.room.bytes, usage.room.limiting_osd) == (int(80 * GIB / 15 * 20), 0)
    assert usage.room.bytes < sum(space.free_bytes for space in usage.pools.values())


@pytest.mark.parametrize("seed", range(90, 92))
def test_room_is_no_more_than_free_bytes_and_a_written_cluster_is_full(seed: int) -> None:
    snapshot = random_cluster(seed).snapshot()
    room = snapshot_usage(snapshot).room
    assert room is not None
    factor = min(pool.size / pool.data_shards for pool in snapshot.pools.values())
    free = sum(max(0.0, osd.size_bytes * snapshot.full_ratio - osd.target_bytes)
               for osd in snapshot.osds.values())
    assert 0 <= room.bytes <= free / factor
    stored = sum(pool.stored_bytes for pool in snapshot.pools.values())
    written = {osd: 0.0 for osd in snapshot.osds}
    for pg in snapshot.pgs.values():
        pool = snapshot.pools[pg.pool]
        share = pool.stored_bytes * part_of(pg.pgid, pool.pg_num) / pool.data_shards
        for osd in pg.up:
            if osd in written:
                written[osd] += room.bytes / stored * share
    fills = {osd.id: osd.size_bytes * snapshot.full_ratio - osd.target_bytes - written[osd.id]
             for osd in snapshot.osds.values() if written[osd.id]}
    assert min(fills, key=lambda osd: fills[osd]) == room.limiting_osd
    assert min(fills.values()) == pytest.approx(0.0, abs=len(snapshot.pools) * 4) or (
        room.bytes == 0 and min(fills.values()) < 0)


def test_pgs_that_are_still_to_be_split_get_twice_as_much() -> None:
    """Of three PGs the one with number 1 has half of the bytes (ceph_stable_mod)."""
    cluster = Cluster(hosts(1, 3), {0: OSD_RULE}).pool(1, size=1, name="rbd")
    cluster.pg("1.0", [0], num_bytes=10 * GIB).pg("1.1", [1], num_bytes=20 * GIB)
    cluster.pg("1.2", [2], num_bytes=10 * GIB)
    space = snapshot_usage(cluster.snapshot()).pools["rbd"]
    # osd.0: (95 - 10) / (1 / 4); osd.1: (95 - 20) / (2 / 4) = 150
    assert (space.free_bytes, space.limiting_osd) == (150 * GIB, 1)


@pytest.mark.parametrize("seed", range(90, 92))
def test_free_space_formula_on_random_clusters(seed: int) -> None:
    snapshot = random_cluster(seed).snapshot()
    usage = snapshot_usage(snapshot)
    for pool in snapshot.pools.values():
        limits = []
        for osd in snapshot.osds.values():
            part = sum(pg.up.count(osd.id) * part_of(pg.pgid, pool.pg_num)
                       for pg in snapshot.pgs.values() if pg.pool == pool.id)
            if part:
                free = max(0.0, osd.size_bytes * snapshot.full_ratio - osd.target_bytes)
                limits.append(free / (part / pool.data_shards))
        assert usage.pools[pool.name].free_bytes == pytest.approx(min(limits), abs=1)


def test_class_usage() -> None:
    cluster = Cluster(hosts(4), classes={3: ""}).pool(1, size=1).pg("1.0", [0], num_bytes=0)
    for osd, gib in enumerate((10, 20, 60, 7)):
        cluster.osd(osd, used=gib * GIB)
    usage = snapshot_usage(cluster.snapshot()).classes
    hdd = usage["hdd"]
    assert (hdd.osds, hdd.size_bytes, hdd.used_bytes) == (3, 300 * GIB, 90 * GIB)
    assert (hdd.max, hdd.min) == (0.6, 0.1) and hdd.mean == pytest.approx(0.3)
    assert hdd.stddev == pytest.approx((0.14 / 3) ** 0.5)
    assert hdd.fullest_osd == 2
    assert usage["none"].osds == 1


def test_out_osds_and_those_without_statistics_do_not_count() -> None:
    cluster = Cluster(hosts(4)).pool(1, size=1).pg("1.0", [0], num_bytes=0)
    cluster.mark_out(1).without_statistics = [2]
    assert snapshot_usage(cluster.snapshot()).classes["hdd"].osds == 2


def test_usage_is_that_of_the_target_state() -> None:
    cluster = Cluster(hosts(3)).pool(1, size=1).pg("1.0", [1], num_bytes=50 * GIB, acting=[0])
    usage = snapshot_usage(cluster.snapshot()).classes["hdd"]
    assert (usage.max, usage.fullest_osd) == (0.5, 1)

"""Utilization per class and room; tests/support/plan_legality.py counts the rest of each plan's
figures again."""
from __future__ import annotations

import pytest
from tests.support.clusters.random_clusters import random_cluster
from tests.support.clusters.unit_cluster import Cluster, hosts
from tests.support.clusters.usages import snapshot_usage
from tests.support.plan_legality import part_of
from tests.support.rules import OSD_RULE
from tests.support.units import GIB


def test_room_is_what_fits_if_all_pools_grow_alike() -> None:
    """osd.0 gets a shard of each pool, so it is full before either pool alone would be."""
    cluster = Cluster(hosts(1, 3), {0: OSD_RULE}).pool(1, size=1).pool(2, size=1)
    cluster.pg("1.0", [0], 10 * GIB).pg("2.0", [0], 5 * GIB).pg("2.1", [1], 5 * GIB)
    # osd.0 has 80 free and gets 10 + 5 of every 20 written
    assert snapshot_usage(cluster.snapshot()).room == (int(80 * GIB / 15 * 20), 0)


@pytest.mark.parametrize("seed", range(90, 92))
def test_an_osd_is_full_when_the_room_is_written(seed: int) -> None:
    snapshot = random_cluster(seed).snapshot()
    room = snapshot_usage(snapshot).room
    assert room is not None
    growth = room.bytes / sum(pool.stored_bytes for pool in snapshot.pools.values())
    free = {osd.id: osd.size_bytes * snapshot.full_ratio - osd.target_bytes
            for osd in snapshot.osds.values()}
    growing = set()
    for pg in snapshot.pgs.values():
        pool = snapshot.pools[pg.pool]
        written = growth * pool.stored_bytes * part_of(pg.pgid, pool.pg_num) / pool.data_shards
        growing.update(free.keys() & pg.up)
        for osd in growing.intersection(pg.up):
            free[osd] -= written
    least, fullest = min((free[osd], osd) for osd in growing)
    assert fullest == room.limiting_osd
    if room.bytes:
        assert least == pytest.approx(0.0, abs=4 * len(snapshot.pools))
    else:
        assert least <= 0.0


def test_pgs_that_are_still_to_be_split_get_twice_as_much() -> None:
    """Of three PGs the one with number 1 has half of the bytes (ceph_stable_mod)."""
    cluster = Cluster(hosts(1, 3), {0: OSD_RULE}).pool(1, size=1, name="rbd")
    cluster.pg("1.0", [0], num_bytes=10 * GIB).pg("1.1", [1], num_bytes=20 * GIB)
    cluster.pg("1.2", [2], num_bytes=10 * GIB)
    space = snapshot_usage(cluster.snapshot()).pools["rbd"]
    # osd.0: (95 - 10) / (1 / 4); osd.1: (95 - 20) / (2 / 4) = 150
    assert (space.free_bytes, space.limiting_osd) == (150 * GIB, 1)


def test_class_usage() -> None:
    """Without OSDs that are out or tell nothing."""
    cluster = Cluster(hosts(6), classes={3: ""}).pool(1, size=1).pg("1.0", [0], 0)
    for osd, gib in enumerate((10, 20, 60, 7)):
        cluster.osd(osd, used=gib * GIB)
    cluster.mark_out(4).without_statistics = [5]
    usage = snapshot_usage(cluster.snapshot()).classes
    assert usage["none"].osds == 1
    # OSDs, size, used, max, min, mean, stddev, the fullest
    assert usage["hdd"] == pytest.approx(
        (3, 300 * GIB, 90 * GIB, 0.6, 0.1, 0.3, (0.14 / 3) ** 0.5, 2), rel=1e-12)

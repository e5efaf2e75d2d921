"""The size model.

What holds exactly: with O the OSDs' own data (shards' logical bytes x allocation ratio + omap),
the shards of a class never exceed what its OSDs use, and what they fall short by is at most the
part of the overhead that does not grow with objects. Where overhead is c bytes per object and b
bytes per device, every shard is own + c x objects, and each OSD keeps b that belong to no shard.
"""
from __future__ import annotations

import random

import pytest
from tests.support.clusters.unit_cluster import Cluster, hosts
from tests.support.rules import HDD_HOSTS, SSD_HOSTS
from tests.support.units import GIB, MIB

from equilibrium_mgr.snapshot.builder import SnapshotBuilder
from equilibrium_mgr.snapshot.sizes.size_model import cost_per_object


def metadata_cluster(per_object: int, base: int, seed: int = 1) -> Cluster:
    """Every device uses its shards, `per_object` bytes per object and `base` bytes of its own."""
    rng = random.Random(seed)
    cluster = Cluster(hosts(6)).pool(1, size=2)
    for ps in range(20):
        up, gibs = rng.sample(range(6), 2), rng.randint(1, 4)
        objects, omap = rng.randint(0, 50_000), rng.randint(0, 900) * MIB
        cluster.pg(f"1.{ps:x}", up, gibs * GIB, objects, omap)
    cluster.bytes_per_object = per_object
    cluster.used = {osd: cluster.used_bytes(osd) + base for osd in range(6)}
    return cluster


@pytest.mark.parametrize("base", [0, GIB])
@pytest.mark.parametrize("per_object", [0, 4096])
def test_metadata_is_shared_out_by_objects(per_object: int, base: int) -> None:
    cluster = metadata_cluster(per_object, base)
    snapshot = cluster.snapshot()
    for pgid, pg in snapshot.pgs.items():
        expected = cluster.shard_bytes(pgid) + per_object * pg.objects
        assert pg.shard_bytes == pytest.approx(expected, abs=64)
    for osd in range(6):
        shards = sum(pg.shard_bytes for pg in snapshot.pgs.values() if osd in pg.up)
        assert snapshot.osds[osd].used_bytes - shards == pytest.approx(base, abs=1024)


def test_files_that_come_and_go_cost_no_object_anything() -> None:
    """As 20.2.4 had them: by least squares 4 kB an object, of which 3,400 left and took nothing."""
    objects = [3701, 3759, 3801, 4444, 4686, 4730, 4885]
    beside = [15073280, 15544320, 15544320, 15020032, 20119552, 19410944, 20119552]
    assert cost_per_object(objects, beside) == 0.0


@pytest.mark.parametrize("seed", range(5))
def test_shards_of_a_class_never_exceed_what_it_uses(seed: int) -> None:
    rng = random.Random(seed)
    cluster = metadata_cluster(rng.choice((0, 8192)), 0, seed)
    cluster.used = {osd: int(used * rng.uniform(0.4, 1.3)) for osd, used in cluster.used.items()}
    snapshot = cluster.snapshot()
    shards = sum(pg.shard_bytes * len(pg.up) for pg in snapshot.pgs.values())
    assert 0 < shards <= sum(o.used_bytes for o in snapshot.osds.values()) + 1


def test_class_that_is_not_compressed_is_not_shrunk() -> None:
    cluster = Cluster(hosts(4), {0: HDD_HOSTS, 1: SSD_HOSTS}, classes={2: "ssd", 3: "ssd"})
    cluster.pool(1, size=2).pool(2, size=2, rule=1)
    cluster.pg("1.0", "0 1", num_bytes=8 * GIB).pg("2.0", "2 3", num_bytes=8 * GIB)
    snapshot = cluster.osd(0, used=2 * GIB).osd(1, used=2 * GIB).snapshot()
    assert snapshot.pgs["1.0"].shard_bytes == 2 * GIB
    assert snapshot.pgs["2.0"].shard_bytes == 8 * GIB


def test_no_negative_sizes_from_negative_figures() -> None:
    cluster = Cluster(hosts(2)).pool(1, size=2).pg("1.0", "0 1", num_bytes=-5, objects=3)
    assert cluster.snapshot().pgs["1.0"].shard_bytes == 0


def test_no_osd_with_statistics_is_no_crash() -> None:
    cluster = Cluster(hosts(2)).pool(1, size=2).pg("1.0", "0 1", num_bytes=GIB)
    cluster.without_statistics = [0, 1]
    assert cluster.snapshot().pgs["1.0"].shard_bytes == GIB


def test_what_moves_have_shown_is_added_and_makes_no_other_pools_shards_smaller() -> None:
    """Only those of its shards that have come take more: its others still take what they did."""
    cluster = Cluster(hosts(2)).pool(1, size=1).pool(2, size=1)
    for ps in range(4):
        for pool in (1, 2):
            cluster.pg(f"{pool}.{ps}", [ps % 2], objects=1000)
    cluster.osd(0, used=6 * GIB).osd(1, used=4 * GIB)
    snapshot = SnapshotBuilder().build(cluster.reading()._replace(measured={1: 2 * GIB / 1000}))
    assert snapshot.pgs["2.0"].shard_bytes == pytest.approx(GIB, rel=0.01)
    assert snapshot.pgs["1.0"].shard_bytes == pytest.approx(3 * GIB, rel=0.01)

"""Sizes of the shards of EC-optimized pools by position.

What holds exactly: where OSDs have stored what their positions hold, the fit finds that again.
"""
from __future__ import annotations

import random
from typing import Dict, List, Sequence, Tuple

import pytest
from tests.support.clusters.unit_cluster import Cluster, hosts
from tests.support.units import GIB

from equilibrium_mgr.snapshot.builder import SnapshotBuilder
from equilibrium_mgr.snapshot.sizes.position_ratios import ALIKE, Layout, PoolObjects

K, M, WIDTH = 4, 2, 4 * 16384
KIB = 1024


def test_small_objects_by_the_formula() -> None:
    """As 20.2.4 stores 10,000 B, 4+2: with stripe units of 16 KiB, and of 4 KiB."""
    assert Layout(K, K + M, WIDTH).object_bytes(10_000) == [12 * KIB, 0, 0, 0]
    assert Layout(K, K + M, 4 * 4096).object_bytes(10_000) == [4 * KIB, 4 * KIB, 4 * KIB, 0]


def test_whole_stripes_are_alike() -> None:
    assert Layout(K, K + M, WIDTH).object_bytes(10 * WIDTH) == [160 * KIB] * 4
    assert Layout(K, K + M, WIDTH).ratios([160.0 * KIB] * 4) == ()


def test_parity_is_as_large_as_the_first_shard() -> None:
    ratios = Layout(K, K + M, WIDTH).ratios([12.0, 0.0, 0.0, 0.0])
    assert ratios == (2.0, 0.0, 0.0, 0.0, 2.0, 2.0)


def test_positions_after_a_chunk_mapping() -> None:
    ratios = Layout(2, 4, 0, later=[2]).ratios([3.0, 1.0])
    assert ratios == pytest.approx((1.2, 1.2, 0.4, 1.2), abs=0.001)


def filled(osds: int, sizes: Sequence[int], seed: int = 1,
           pgs: int = 64) -> Tuple[PoolObjects, Dict[int, int]]:
    """PGs on random OSDs whose objects take `sizes` at the data shards."""
    rng = random.Random(seed)
    objects, stored = PoolObjects(Layout(K, K + M, WIDTH)), dict.fromkeys(range(osds), 0)
    for _ in range(pgs):
        count, up = rng.randint(900, 1100), rng.sample(range(osds), K + M)
        objects.add(up, 10_000 * count, count)
        for position, osd in enumerate(up):
            stored[osd] += count * sizes[position if position < K else 0]
    return objects, stored


@pytest.mark.parametrize("sizes", [
    (12 * KIB, 0, 0, 0), (16 * KIB, 16 * KIB, 4 * KIB, 0),
    (8 * KIB, 6 * KIB, 6 * KIB, 6 * KIB)])   # of the last, some were written before the flag
def test_what_was_stored_is_found_again(sizes: Tuple[int, ...]) -> None:
    objects, stored = filled(12, sizes)
    found = objects.ratios(stored)
    assert found.is_fitted and found.ratios == pytest.approx(
        Layout(K, K + M, WIDTH).ratios([float(size) for size in sizes]), abs=0.01)


def test_few_osds_do_not_tell() -> None:
    objects, stored = filled(7, (8 * KIB, 6 * KIB, 6 * KIB, 6 * KIB))
    # by the mean object
    assert objects.ratios(stored) == ((2.0, 0.0, 0.0, 0.0, 2.0, 2.0), False)


def test_what_positions_do_not_explain_is_not_believed() -> None:
    rng = random.Random(2)
    objects, _ = filled(12, (12 * KIB, 0, 0, 0))
    assert objects.ratios({osd: rng.randrange(GIB) for osd in range(12)}) == (
        (2.0, 0.0, 0.0, 0.0, 2.0, 2.0), False)


def test_an_empty_pool_has_no_ratios() -> None:
    assert PoolObjects(Layout(K, K + M, WIDTH)).ratios({}) == ALIKE


def optimized_cluster(osds: int = 12, pgs: int = 48, seed: int = 1) -> Cluster:
    """A pool of small objects, 4+2 with allow_ec_optimizations."""
    rng = random.Random(seed)
    cluster = Cluster(hosts(osds)).pool(
        1, size=K + M, k=K, stripe_width=WIDTH, flags_names="hashpspool,ec_optimizations",
        nonprimary_shards="{1,2,3}")
    for ps in range(pgs):
        count = rng.randint(90_000, 110_000)
        cluster.pg(f"1.{ps:x}", rng.sample(range(osds), K + M), num_bytes=10_000 * count,
                   objects=count)
    settle(cluster)
    return cluster


SMALL = (12 * KIB, 0, 0, 0)   # bytes of an object at each data shard


def held(cluster: Cluster, sizes: Sequence[int] = SMALL) -> Dict[int, int]:
    """OSD → bytes of the pool that it has by position."""
    found = dict.fromkeys(cluster.osds, 0)
    for pgid, up in cluster.up.items():
        for position, osd in enumerate(up):
            found[osd] += cluster.records[pgid].num_objects * sizes[
                position if position < K else 0]
    return found


def settle(cluster: Cluster, sizes: Sequence[int] = SMALL) -> None:
    """OSDs use what their up sets give them, and tell so."""
    counts = held(cluster, sizes)
    cluster.used = {osd: count + GIB for osd, count in counts.items()}
    cluster.stored = [{"poolid": 1, "osd": osd, "data_stored": count, "allocated": count}
                      for osd, count in counts.items()]
    cluster.store_stats[1] = {"allocated": sum(counts.values())}


def test_shards_are_as_large_as_osds_have_them() -> None:
    cluster = optimized_cluster()
    snapshot = cluster.snapshot()
    shards: Dict[int, int] = dict.fromkeys(cluster.osds, 0)
    for pg in snapshot.pgs.values():
        for osd in pg.up:
            shards[osd] += snapshot.shard_bytes(pg, osd, pg.up)
    assert shards == pytest.approx(held(cluster), rel=0.01)


def test_what_rocksdb_holds_of_an_object_is_at_every_position() -> None:
    """Data at positions 0, 4 and 5 alone."""
    cluster, per_object = optimized_cluster(), 4500
    objects = dict.fromkeys(cluster.osds, 0)
    for pgid, up in cluster.up.items():
        for osd in up:
            objects[osd] += cluster.records[pgid].num_objects
    cluster.used = {osd: used + per_object * objects[osd] for osd, used in cluster.used.items()}
    snapshot = cluster.snapshot()
    for pg in snapshot.pgs.values():
        for position, osd in enumerate(pg.up):
            wanted = per_object + (12 * KIB if position == 0 or position >= K else 0)
            assert snapshot.shard_bytes(pg, osd, pg.up) == pytest.approx(
                wanted * pg.objects, rel=0.02)


def test_ratios_are_fitted_now_and_then_and_kept() -> None:
    cluster, builder = optimized_cluster(), SnapshotBuilder()
    first = builder.build(cluster.reading()).pools[1].position_ratios
    assert first[0] == pytest.approx(2.0, abs=0.02) and first[1] == pytest.approx(0.0, abs=0.02)
    looks: List[Tuple[float, ...]] = []
    for pgid in cluster.records:   # now of whole stripes
        cluster.records[pgid] = cluster.records[pgid]._replace(
            num_bytes=8 * WIDTH * cluster.records[pgid].num_objects)
    settle(cluster, [32 * 4 * KIB] * K)
    for seconds in (60.0, 700.0):
        looks.append(builder.build(cluster.reading()._replace(
            taken_at=1000.0 + seconds)).pools[1].position_ratios)
    assert looks == [first, ()]


def test_what_osds_have_told_is_kept_while_they_do_not_tell() -> None:
    """Before the flag objects were padded. While OSDs hold what has left them too, or one of them
    is out, the mean object, which says that all is at three positions, is believed no more than
    before."""
    padded = [3 * KIB] * K
    cluster, builder = optimized_cluster(), SnapshotBuilder()
    settle(cluster, padded)
    assert builder.build(cluster.reading()).pools[1].is_uniform
    told, rng = cluster.stored, random.Random(7)
    for stored in ([dict(row, data_stored=int(row["data_stored"] * rng.uniform(0.6, 1.4)))
                    for row in told], told[:-5]):
        cluster.stored = stored
        moving = builder.build(cluster.reading()._replace(taken_at=1700.0))
        assert moving.pools[1].is_uniform
    cluster.stored = told
    settle(cluster)
    later = builder.build(cluster.reading()._replace(taken_at=2400.0)).pools[1]
    assert later.position_ratios[0] == pytest.approx(2.0, abs=0.02)

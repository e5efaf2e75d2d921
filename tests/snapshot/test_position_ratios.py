"""Sizes of the shards of EC-optimized pools by position."""
from __future__ import annotations

import random
from typing import Dict, Sequence, Tuple

import pytest
from tests.support.clusters.unit_cluster import Cluster, hosts
from tests.support.units import GIB

from equilibrium_mgr.snapshot.sizes.osd_factors import position_ratios

K, M, WIDTH = 4, 2, 4 * 16384
KIB = 1024


def ratios(size: int, k: int = K, m: int = M, width: int = WIDTH, later: str = "") -> Tuple[
        float, ...]:
    return position_ratios({"size": k + m, "stripe_width": width, "nonprimary_shards": later}, k,
                           size)


def test_small_objects_by_the_formula() -> None:
    """As 20.2.4 stores 10,000 B, 4+2: with stripe units of 16 KiB, and of 4 KiB. Parity is as
    large as the first shard."""
    assert ratios(10_000) == (2.0, 0.0, 0.0, 0.0, 2.0, 2.0)
    assert ratios(10_000, width=4 * 4096) == pytest.approx((1.2, 1.2, 1.2, 0, 1.2, 1.2), abs=0.001)


def test_whole_stripes_are_alike() -> None:
    assert ratios(10 * WIDTH) == ()


def test_positions_after_a_chunk_mapping() -> None:
    assert ratios(16 * KIB, 2, 2, 2 * 12 * KIB, "{2}") == pytest.approx(
        (1.2, 1.2, 0.4, 1.2), abs=0.001)


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

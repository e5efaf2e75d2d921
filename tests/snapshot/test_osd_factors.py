"""OSDs on which the same shard takes more or less than on others.

What holds exactly: with factors that differ clearly, the shards of an OSD, each as large as it is
there, are what the OSD has of its pools; without such there are no factors at all.
"""
from __future__ import annotations

import random
from math import ceil
from typing import Dict, List, Sequence, Tuple

import pytest
from tests.support.clusters.unit_cluster import Cluster, hosts
from tests.support.units import GIB

from equilibrium_mgr.snapshot.builder import SnapshotBuilder, build_snapshot
from equilibrium_mgr.snapshot.model import Snapshot
from equilibrium_mgr.snapshot.sizes.osd_factors import (
    NO_FACTORS, OsdFactors, exact_ratio, fit_osd_factors, fit_size_factors)

OSDS = 8
SIZE = 100 * GIB


def rows(ratios: Dict[Tuple[int, int], float], stored: int = 10 * GIB) -> List[
        Tuple[int, int, int, int]]:
    """(pool, OSD, allocated, stored) for (pool, OSD) → allocated ÷ stored."""
    return [(pool, osd, int(stored * ratio), stored) for (pool, osd), ratio in ratios.items()]


def fitted(ratios: Dict[Tuple[int, int], float], kept: OsdFactors = NO_FACTORS,
           stored: int = 10 * GIB) -> OsdFactors:
    """`kept`: of the last fit."""
    return fit_osd_factors(rows(ratios, stored), [
        {"osd": osd, "statfs": {"total": SIZE}} for osd in range(OSDS)], kept)


def two_pools(small: float, large: float, odd: int = 3) -> Dict[Tuple[int, int], float]:
    """Pools of small and of large objects; the first OSDs have a larger min_alloc_size."""
    usual = {1: (1.23, small), 2: (1.004, large)}
    return {(pool, osd): ratio * (factor if osd < odd else 1.0)
            for pool, (ratio, factor) in usual.items() for osd in range(OSDS)}


def test_osds_of_one_kind_have_no_factors() -> None:
    rng = random.Random(1)
    assert fitted({(1, osd): 1.2 * rng.uniform(0.97, 1.03) for osd in range(OSDS)}) == NO_FACTORS


def test_osds_that_all_differ_have_no_factors() -> None:
    """A spread without kinds is that of the data, not of the OSDs."""
    assert fitted({(1, osd): 1.0 + 0.1 * osd for osd in range(OSDS)}) == NO_FACTORS


@pytest.mark.parametrize("odd", [1, 3, 4])
def test_a_larger_min_alloc_size(odd: int) -> None:
    found = fitted(two_pools(5.33, 1.045, odd))
    for osd in range(OSDS):
        assert found.of_shard(1, osd) == pytest.approx(5.33 if osd < odd else 1.0, abs=0.01)
        assert found.of_shard(2, osd) == 1.0   # too little to be clear
        assert (osd in found.osds) == (osd < odd)
    # of 10 GiB each: 5.33 times 1.23, and 1.004
    assert fit_size_factors(found, {0: {1: 12.3, 2: 10.04}}, {}, {})[0] == pytest.approx(
        (5.33 * 1.23 + 1.004) / 2.234, rel=0.01)


def test_most_osds_are_the_usual_ones() -> None:
    found = fitted(two_pools(5.33, 1.0, 6))
    assert set(found.osds) == {6, 7}
    assert found.of_shard(1, 7) == pytest.approx(1 / 5.33, abs=0.001)


def test_what_is_too_little_tells_nothing() -> None:
    assert fitted(two_pools(5.33, 1.0), stored=GIB // 100) == NO_FACTORS


def test_a_factor_stays_while_it_is_as_good() -> None:
    first = fitted(two_pools(5.33, 1.0))
    assert fitted(two_pools(5.40, 1.0), first).allocation == first.allocation
    assert fitted(two_pools(7.0, 1.0), first).of_shard(1, 0) == pytest.approx(7.0, abs=0.01)
    assert fitted(two_pools(1.0, 1.0), first) == NO_FACTORS


def test_ratios_add_up_exactly() -> None:
    ratios = [exact_ratio(value) for value in (0.333, 1.777, 5.331, 0.0019)]
    assert sum(ratios) == sum(reversed(ratios)) == sum(sorted(ratios))


def odd_cluster(seed: int = 1) -> Cluster:
    """A pool of small objects and one of large ones; three of eight OSDs are odd."""
    rng = random.Random(seed)
    cluster = Cluster(hosts(OSDS)).pool(1, size=3).pool(2, size=3)
    for pool in (1, 2):
        for ps in range(24):
            cluster.pg(f"{pool}.{ps:x}", rng.sample(range(OSDS), 3),
                       num_bytes=rng.randint(900, 1100) * GIB // 1000, objects=1000)
        cluster.taken_ratios.update({(pool, osd): 4.0 if pool == 1 else 1.5 for osd in range(3)})
        stored: Dict[int, int] = {}
        for row in cluster.pool_statfs():
            stored[row["poolid"]] = stored.get(row["poolid"], 0) + row["allocated"]
        cluster.store_stats[pool] = {"allocated": stored[pool]}
    return cluster


def devices_hold(cluster: Cluster, snapshot: Snapshot) -> None:
    """The shards of each OSD, as large as they are there, are what it uses."""
    for osd in snapshot.osds.values():
        shards = sum(snapshot.shard_bytes(pg, osd.id, pg.up)
                     for pg in snapshot.pgs.values() if osd.id in pg.up)
        assert osd.device_bytes(shards) == pytest.approx(cluster.used_bytes(osd.id), rel=0.005)
        assert osd.device_bytes(osd.size_bytes) == pytest.approx(SIZE, abs=ceil(osd.size_factor))
        assert osd.utilization == pytest.approx(cluster.used_bytes(osd.id) / SIZE, abs=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_shards_are_as_large_as_devices_have_them(seed: int) -> None:
    cluster = odd_cluster(seed)
    devices_hold(cluster, cluster.snapshot())


def small_objects(per_object: int, omap: int, odd: Sequence[int] = (0, 1, 2)) -> Cluster:
    """A pool of objects of 12 KiB, of which odd OSDs make 64 KiB; what RocksDB holds of an object
    is the same everywhere. Every OSD uses some of its own."""
    rng, cluster = random.Random(3), Cluster(hosts(OSDS)).pool(1, size=3)
    cluster.bytes_per_object = per_object
    for ps in range(48):
        objects = rng.randint(18_000, 22_000)
        cluster.pg(f"1.{ps:x}", rng.sample(range(OSDS), 3), num_bytes=12288 * objects,
                   objects=objects, omap=omap * objects)
    cluster.taken_ratios = {(1, osd): 5.333 for osd in odd}
    cluster.store_stats[1] = {"allocated": sum(row["allocated"] for row in cluster.pool_statfs())}
    return cluster


@pytest.mark.parametrize(("per_object", "omap"), [(0, 0), (4500, 0), (0, 4500), (900, 300)])
def test_metadata_and_omap_take_what_they_take_anywhere(per_object: int, omap: int) -> None:
    """A shard of data D and metadata M is 5.33 D + M large."""
    cluster = small_objects(per_object, omap)
    snapshot = cluster.snapshot()
    for pgid, pg in snapshot.pgs.items():
        data, beside = cluster.data_bytes(pgid), (per_object + omap) * pg.objects
        for number in pg.up:
            osd = snapshot.osds[number]
            assert osd.device_bytes(snapshot.shard_bytes(pg, number, pg.up)) == pytest.approx(
                data * (5.333 if number < 3 else 1.0) + beside, rel=0.01)
    devices_hold(cluster, snapshot)
    assert snapshot.pools[1].is_uniform   # the OSD's own factor says it all


def test_metadata_that_becomes_more() -> None:
    builder, cluster = SnapshotBuilder(), small_objects(900, 0)
    before = builder.build(cluster.reading()).osds[0].size_factor
    cluster.bytes_per_object = 9000
    later = cluster.reading()._replace(taken_at=1700.0)
    full = builder.build(later)
    assert full.osds == build_snapshot(later).osds
    assert full.osds[0].size_factor < 0.9 * before
    devices_hold(cluster, full)


def test_metadata_of_a_pool_beside_one_without() -> None:
    """The OSD's factor is that of its mean shard; each pool's own is beside it."""
    cluster = small_objects(0, 4500).pool(2, size=3)
    rng = random.Random(4)
    for ps in range(24):
        cluster.pg(f"2.{ps:x}", rng.sample(range(OSDS), 3), num_bytes=GIB // 4, objects=64)
    cluster.taken_ratios.update({(2, osd): 5.333 for osd in range(3)})
    cluster.store_stats[2] = {"allocated": sum(
        row["allocated"] for row in cluster.pool_statfs() if row["poolid"] == 2)}
    snapshot = cluster.snapshot()
    devices_hold(cluster, snapshot)
    assert snapshot.pools[1].osd_ratios[0] < 1.0 < snapshot.pools[2].osd_ratios[0]


def test_the_usual_osds_have_plain_bytes() -> None:
    snapshot = odd_cluster().snapshot()
    assert {osd.id for osd in snapshot.osds.values() if osd.size_factor != 1.0} == {0, 1, 2}
    assert all(osd.size_bytes == SIZE for osd in snapshot.osds.values() if osd.id > 2)
    assert all(not set(pool.osd_ratios) - {0, 1, 2} for pool in snapshot.pools.values())


def test_what_comes_and_goes_is_as_large_as_there() -> None:
    cluster = odd_cluster()
    source, target = 7, 0
    pgid = next(p for p, up in cluster.up.items() if source in up and target not in up
                and p.startswith("1."))
    before = cluster.up[pgid]
    cluster.acting[pgid] = list(before)
    cluster.up[pgid] = [target if osd == source else osd for osd in before]
    cluster.records[pgid] = cluster.records[pgid]._replace(state="active+remapped+backfilling")
    snapshot = cluster.snapshot()
    stored = cluster.shard_bytes(pgid)
    there, here = snapshot.osds[target], snapshot.osds[source]
    assert there.device_bytes(there.inbound_bytes) == pytest.approx(4.0 * stored, rel=0.01)
    assert here.device_bytes(here.outbound_bytes) == pytest.approx(stored, rel=0.01)


def test_an_osd_that_becomes_a_usual_one() -> None:
    builder, cluster = SnapshotBuilder(), odd_cluster()
    assert builder.build(cluster.reading()).osds[0].size_factor > 1.0
    cluster.taken_ratios = {key: 1.0 for key in cluster.taken_ratios}
    del cluster.store_stats[1], cluster.store_stats[2]
    assert builder.build(cluster.reading()).osds[0].size_factor == 1.0


def test_osds_that_report_for_the_first_time() -> None:
    """After a failover OSDs report one after the other: their factors are not waited for."""
    builder, cluster = SnapshotBuilder(), odd_cluster()
    cluster.without_statistics = [0, 1]
    assert builder.build(cluster.reading()).osds[2].size_factor > 1.0
    cluster.without_statistics = []
    osds = builder.build(cluster.reading()._replace(taken_at=1005.0)).osds
    fresh = cluster.snapshot().osds
    assert osds[0].size_factor == pytest.approx(fresh[0].size_factor, rel=0.03)
    assert osds[0].size_factor > 1.0


_GARBLED = {"nothing allocated": {"allocated": 4096}, "nothing stored": {"data_stored": 1},
            "below zero": {"allocated": -GIB, "data_stored": -GIB},
            "an allocated that wrapped": {"allocated": (1 << 64) - GIB},
            "a stored that wrapped": {"data_stored": (1 << 64) - GIB},
            "both": {"allocated": (1 << 62), "data_stored": (1 << 62)}}


@pytest.mark.parametrize("garbled", _GARBLED.values(), ids=_GARBLED.keys())
@pytest.mark.parametrize("osd", [0, 5])
def test_garbled_figures_of_an_osd_say_nothing_of_it(osd: int, garbled: Dict[str, int]) -> None:
    """Nor of any other OSD, and are forgotten with the next fit."""
    cluster, builder = odd_cluster(), SnapshotBuilder()
    expected = cluster.snapshot().osds
    cluster.stored = [dict(row, **(garbled if (row["poolid"], row["osd"]) == (1, osd) else {}))
                      for row in cluster.pool_statfs()]
    found = builder.build(cluster.reading())
    assert {number for number in found.osds if number != osd and (
        found.osds[number].size_factor, found.osds[number].size_bytes) != (
            expected[number].size_factor, expected[number].size_bytes)} == set()
    assert found.osds[osd].size_factor == pytest.approx(1.0, abs=0.51)   # of its other pool
    assert min(osd.size_bytes for osd in found.osds.values()) > GIB
    cluster.stored = []
    later = builder.build(cluster.reading()._replace(taken_at=1700.0))
    assert all(
        later.osds[number].size_factor == expected[number].size_factor for number in expected)


def test_an_osd_that_was_out() -> None:
    """The mgr has zeros for it; once it is in again its factor is not waited for."""
    builder, cluster = SnapshotBuilder(), odd_cluster()
    expected = builder.build(cluster.reading()).osds[0].size_factor
    reading = cluster.reading()
    zeros = [{**stats, "statfs": {"total": 0, "available": 0}, "kb": 0, "kb_used": 0}
             if stats["osd"] == 0 else stats for stats in reading.osd_stats]
    assert builder.build(reading._replace(osd_stats=zeros, taken_at=1010.0)).osds[
        0].size_factor == 1.0
    assert builder.build(reading._replace(taken_at=1020.0)).osds[0].size_factor == expected > 1.0

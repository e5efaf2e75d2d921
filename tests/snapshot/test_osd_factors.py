"""OSDs on which the same shard takes more or less than on others.

What holds exactly: with factors that differ clearly, the shards of an OSD, each as large as it is
there, are what the OSD has of its pools; without such there are no factors at all.
"""
from __future__ import annotations

import random
from math import ceil
from typing import Dict, Sequence

import pytest
from tests.support.clusters.unit_cluster import Cluster, hosts
from tests.support.units import GIB

from equilibrium_mgr.snapshot.builder import SnapshotBuilder
from equilibrium_mgr.snapshot.model import Snapshot

OSDS = 8
SIZE = 100 * GIB


def test_osds_that_all_differ_have_no_factors() -> None:
    """A spread without kinds is that of the data, not of the OSDs."""
    cluster = odd_cluster()
    cluster.taken_ratios = {(pool, osd): 1.0 + 0.1 * osd for pool in (1, 2) for osd in range(OSDS)}
    assert {osd.size_factor for osd in cluster.snapshot().osds.values()} == {1.0}


def odd_cluster(seed: int = 1) -> Cluster:
    """A pool of small objects and one of large ones; three of eight OSDs are odd."""
    rng = random.Random(seed)
    cluster = Cluster(hosts(OSDS)).pool(1, size=3).pool(2, size=3)
    for pool in (1, 2):
        for ps in range(24):
            cluster.pg(f"{pool}.{ps:x}", rng.sample(range(OSDS), 3),
                       num_bytes=rng.randint(900, 1100) * GIB // 1000, objects=1000)
        cluster.taken_ratios.update({(pool, osd): 4.0 if pool == 1 else 1.5 for osd in range(3)})
        rows = [row for row in cluster.pool_statfs() if row["poolid"] == pool]
        cluster.store_stats[pool] = {
            key: sum(row[key] for row in rows) for key in ("allocated", "data_stored")}
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


def test_an_osd_that_has_stopped_reporting_makes_no_shard_larger() -> None:
    """Its last figures are from when it deleted twice its shards of pool 1."""
    cluster = odd_cluster()
    expected = cluster.snapshot().pgs
    cluster.stored = cluster.pool_statfs()
    for row in cluster.stored:
        if (row["poolid"], row["osd"]) == (1, OSDS - 1):
            for key in ("allocated", "data_stored"):
                cluster.store_stats[1][key] += 2 * row[key]
                row[key] *= 3
    reading = cluster.reading()._replace(stale_osds=frozenset([OSDS - 1]))
    for pgid, pg in SnapshotBuilder().build(reading).pgs.items():
        assert pg.shard_bytes == pytest.approx(expected[pgid].shard_bytes, rel=0.01)


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

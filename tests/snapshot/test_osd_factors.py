"""OSDs on which the same shard takes more or less than on others.

What holds exactly: with factors that differ clearly, the shards of an OSD, each as large as it is
there, are what the OSD has of its pools; without such there are no factors at all.
"""
from __future__ import annotations

import random
from math import ceil
from typing import Dict, Tuple

import pytest
from tests.support.clusters.unit_cluster import Cluster, hosts
from tests.support.units import GIB

from equilibrium_mgr.snapshot.builder import SnapshotBuilder
from equilibrium_mgr.snapshot.model import Snapshot

OSDS = 8
SIZE = 100 * GIB
#: What OSDs tell of each pool.
FIGURES = ("allocated", "data_stored")


class OddOsds(Cluster):
    """A pool of small objects and one of large ones; three of eight OSDs are odd."""

    def __init__(self, seed: int = 1) -> None:
        super().__init__(hosts(OSDS))
        rng = random.Random(seed)
        for pool in (1, 2):
            self.pool(pool, size=3)
            for ps in range(24):
                self.pg(f"{pool}.{ps:x}", rng.sample(range(OSDS), 3),
                        num_bytes=rng.randint(900, 1100) * GIB // 1000, objects=1000)
        for osd in range(3):
            self.taken_ratios.update({(1, osd): 4.0, (2, osd): 1.5})
        rows = self.pool_statfs()
        for pool in (1, 2):
            mine = [row for row in rows if row["poolid"] == pool]
            self.store_stats[pool] = {key: sum(row[key] for row in mine) for key in FIGURES}

    def stored_of(self, osd: int) -> Dict[str, int]:
        """The row that the OSD tells of pool 1, to be changed."""
        self.stored = [dict(row) for row in self.pool_statfs()]
        (found,) = [row for row in self.stored if (row["poolid"], row["osd"]) == (1, osd)]
        return found


odd_cluster = OddOsds   # as other folders call it


def test_osds_that_all_differ_have_no_factors() -> None:
    """A spread without kinds is that of the data, not of the OSDs."""
    cluster = OddOsds()
    for osd in range(OSDS):
        cluster.taken_ratios[1, osd] = cluster.taken_ratios[2, osd] = 1.0 + 0.1 * osd
    assert {osd.size_factor for osd in cluster.snapshot().osds.values()} == {1.0}


def devices_hold(cluster: Cluster, snapshot: Snapshot) -> None:
    """The shards of each OSD, as large as they are there, are what it uses."""
    for osd in snapshot.osds.values():
        used, shards = cluster.used_bytes(osd.id), 0
        for pg in snapshot.pgs.values():
            if osd.id in pg.up:
                shards += snapshot.shard_bytes(pg, osd.id, pg.up)
        assert osd.device_bytes(shards) == pytest.approx(used, rel=0.005)
        assert osd.device_bytes(osd.size_bytes) == pytest.approx(SIZE, abs=ceil(osd.size_factor))
        assert osd.utilization == pytest.approx(used / SIZE, abs=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_shards_are_as_large_as_devices_have_them(seed: int) -> None:
    cluster = OddOsds(seed)
    devices_hold(cluster, cluster.snapshot())


def test_an_osd_that_has_stopped_reporting_makes_no_shard_larger() -> None:
    """Its last figures are from when it deleted twice its shards of pool 1."""
    cluster = OddOsds()
    expected = cluster.snapshot().pgs
    row = cluster.stored_of(OSDS - 1)
    for key in FIGURES:
        cluster.store_stats[1][key] += 2 * row[key]
        row[key] *= 3
    reading = cluster.reading()._replace(stale_osds=frozenset([OSDS - 1]))
    for pgid, pg in SnapshotBuilder().build(reading).pgs.items():
        assert pg.shard_bytes == pytest.approx(expected[pgid].shard_bytes, rel=0.01)


def small_objects(per_object: int, omap: int) -> Cluster:
    """A pool of objects of 12 KiB, of which odd OSDs make 64 KiB; what RocksDB holds of an object
    is the same everywhere. Every OSD uses some of its own."""
    rng, cluster = random.Random(3), Cluster(hosts(OSDS)).pool(1, size=3)
    cluster.bytes_per_object = per_object
    for ps in range(48):
        objects = rng.randint(18_000, 22_000)
        cluster.pg(f"1.{ps:x}", rng.sample(range(OSDS), 3), num_bytes=12288 * objects,
                   objects=objects, omap=omap * objects)
    cluster.taken_ratios = {(1, 0): 5.333, (1, 1): 5.333, (1, 2): 5.333}
    cluster.store_stats[1] = {"allocated": sum(row["allocated"] for row in cluster.pool_statfs())}
    return cluster


@pytest.mark.parametrize(("per_object", "omap"), [(0, 0), (4500, 0), (0, 4500), (900, 300)])
def test_metadata_and_omap_take_what_they_take_anywhere(per_object: int, omap: int) -> None:
    """A shard of data D and metadata M is 5.33 D + M large."""
    cluster = small_objects(per_object, omap)
    snapshot = cluster.snapshot()
    for pgid, pg in snapshot.pgs.items():
        beside = (per_object + omap) * pg.objects
        for osd in pg.up:
            found = snapshot.osds[osd].device_bytes(snapshot.shard_bytes(pg, osd, pg.up))
            expected = cluster.data_bytes(pgid) * cluster.taken_ratio(1, osd) + beside
            assert found == pytest.approx(expected, rel=0.01)
    devices_hold(cluster, snapshot)
    assert snapshot.pools[1].is_uniform   # the OSD's own factor says it all


def test_what_comes_and_goes_is_as_large_as_there() -> None:
    cluster = OddOsds()
    pgid, up = next((pgid, up) for pgid, up in cluster.up.items() if 7 in up and 0 not in up)
    cluster.acting[pgid] = list(up)
    up[up.index(7)] = 0
    cluster.records[pgid] = cluster.records[pgid]._replace(state="active+remapped+backfilling")
    snapshot = cluster.snapshot()
    stored = cluster.shard_bytes(pgid)
    there, here = snapshot.osds[0], snapshot.osds[7]
    assert there.device_bytes(there.inbound_bytes) == pytest.approx(4.0 * stored, rel=0.01)
    assert here.device_bytes(here.outbound_bytes) == pytest.approx(stored, rel=0.01)


_GARBLED = {
    "nothing allocated": {"allocated": 4096},
    "nothing stored": {"data_stored": 1},
    "below zero": dict.fromkeys(FIGURES, -GIB),
    "an allocated that wrapped": {"allocated": (1 << 64) - GIB},
    "a stored that wrapped": {"data_stored": (1 << 64) - GIB},
    "both": dict.fromkeys(FIGURES, 1 << 62)}


@pytest.mark.parametrize("garbled", _GARBLED.values(), ids=_GARBLED.keys())
@pytest.mark.parametrize("osd", [0, 5])
def test_garbled_figures_of_an_osd_say_nothing_of_it(osd: int, garbled: Dict[str, int]) -> None:
    """Nor of any other OSD, and are forgotten with the next fit."""
    cluster, builder = OddOsds(), SnapshotBuilder()
    expected = sizes(cluster.snapshot())
    cluster.stored_of(osd).update(garbled)
    found = sizes(builder.build(cluster.reading()))
    assert found[osd][0] == pytest.approx(1.0, abs=0.51)   # of its other pool
    assert found[osd][1] > GIB
    assert {**found, osd: expected[osd]} == expected
    cluster.stored = []
    assert sizes(builder.build(cluster.reading()._replace(taken_at=1700.0))) == expected


def sizes(snapshot: Snapshot) -> Dict[int, Tuple[float, int]]:
    return {osd.id: (osd.size_factor, osd.size_bytes) for osd in snapshot.osds.values()}

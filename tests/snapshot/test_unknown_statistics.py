"""Unreported is unknown, not empty: random pools whose statistics come late or in parts."""
from __future__ import annotations

import random
from typing import Any, Dict, List, Mapping

import pytest
from tests.support.clusters.unit_cluster import Cluster, hosts
from tests.support.units import GIB, MIB

from equilibrium_mgr.snapshot import immovable_reasons as reasons
from equilibrium_mgr.snapshot.pg_statistics import PgStatistics

BYTES_ONLY, OMAP_ONLY, MIXED, EMPTY = "bytes only", "omap only", "mixed", "empty"


class TruePool:
    """What a pool's PGs really hold, and what the mgr gets to see of it."""

    def __init__(self, rng: random.Random, pool: int) -> None:
        self.rng, self.pool = rng, pool
        self.kind = rng.choice((BYTES_ONLY, OMAP_ONLY, MIXED, EMPTY))
        self.pgids = [f"{pool}.{ps:x}" for ps in range(rng.choice((4, 8, 12)))]
        self.objects = {pgid: 0 for pgid in self.pgids}
        self.reported = {pgid: True for pgid in self.pgids}

    def write(self, most: int) -> None:
        for pgid in self.pgids if self.kind != EMPTY else ():
            self.objects[pgid] += self.rng.randrange(most // 2, most + 1)

    def bytes_of(self, pgid: str) -> int:
        return self.objects[pgid] * (0 if self.kind == OMAP_ONLY else MIB)

    def omap_of(self, pgid: str) -> int:
        return self.objects[pgid] * (0 if self.kind == BYTES_ONLY else 5000)

    def seen(self) -> List[str]:
        return [pgid for pgid in self.pgids if self.reported[pgid]]

    def pool_stat(self) -> Dict[str, Any]:
        """PGs that nobody has reported count for nothing in it."""
        return {"poolid": self.pool, "stat_sum": {
            "num_objects": sum(self.objects[p] for p in self.seen()),
            "num_bytes": sum(self.bytes_of(p) for p in self.seen()),
            "num_omap_bytes": sum(self.omap_of(p) for p in self.seen())}}

    def pg_stats(self) -> List[Dict[str, Any]]:
        return [{"pgid": p, "state": "active+clean", "reported_epoch": 9, "up": [0], "acting": [0],
                 "stat_sum": {"num_objects": self.objects[p], "num_bytes": self.bytes_of(p),
                              "num_omap_bytes": self.omap_of(p)}}
                if self.reported[p] else
                {"pgid": p, "state": "unknown", "reported_epoch": 0, "up": [], "acting": [],
                 "stat_sum": {} if self.rng.random() < 0.5 else {"num_objects": 0}}
                for p in self.pgids]

    def progress(self) -> Dict[str, Dict[str, Any]]:
        return {p: {"num_bytes": self.bytes_of(p), "num_bytes_recovered": 0,
                    "state": "active+clean", "reported_epoch": 9} if self.reported[p] else
                {"num_bytes": 0, "num_bytes_recovered": 0, "state": "unknown",
                 "reported_epoch": 0} for p in self.pgids}


class TrueCluster:
    """Pools through a full reading and what comes after it within the hour."""

    def __init__(self, seed: int) -> None:
        rng = random.Random(seed)
        self.pools = [TruePool(rng, number) for number in range(1, 6)]
        for pool in self.pools:
            if rng.random() < 0.6:
                pool.write(rng.choice((4, 1000)))
            for pgid in pool.pgids:
                pool.reported[pgid] = rng.random() < rng.choice((0.3, 1.0, 1.0))
        self.statistics = PgStatistics()
        self.statistics.read_full(self.pg_stats(), self.pool_stats())
        for pool in self.pools:
            if rng.random() < 0.7:
                pool.write(rng.choice((4, 1000, 100_000)))
            for pgid in pool.pgids:
                pool.reported[pgid] = pool.reported[pgid] or rng.random() < 0.8

    def pg_stats(self) -> List[Dict[str, Any]]:
        return [stat for pool in self.pools for stat in pool.pg_stats()]

    def pool_stats(self) -> List[Dict[str, Any]]:
        return [pool.pool_stat() for pool in self.pools]

    def progress(self) -> Dict[str, Dict[str, Any]]:
        return {pgid: pg for pool in self.pools for pgid, pg in pool.progress().items()}


@pytest.mark.parametrize("seed", range(60))
def test_figures_of_pgs_come_to_those_of_their_pool(seed: int) -> None:
    cluster = TrueCluster(seed)
    records = cluster.statistics.records(cluster.progress(), cluster.pool_stats(), {}, {})
    for pool in cluster.pools:
        seen, total = pool.seen(), pool.pool_stat()["stat_sum"]
        for name, found in (("num_objects", [records[p].num_objects for p in seen]),
                            ("num_omap_bytes", [records[p].omap_bytes for p in seen])):
            if seen:
                assert sum(found) == pytest.approx(total[name], rel=0.001, abs=2 * len(seen))


@pytest.mark.parametrize("seed", range(60))
def test_objects_of_one_size_are_where_their_bytes_are(seed: int) -> None:
    """However unevenly a pool has grown since the full reading: its throttle counts objects."""
    cluster = TrueCluster(seed)
    records = cluster.statistics.records(cluster.progress(), cluster.pool_stats(), {}, {})
    for pool in cluster.pools:
        for pgid in pool.seen() if pool.kind in (BYTES_ONLY, MIXED) else ():
            assert records[pgid].num_objects == pytest.approx(pool.objects[pgid], rel=0.001, abs=2)


@pytest.mark.parametrize("seed", range(60))
def test_nothing_that_holds_data_is_taken_for_empty(seed: int) -> None:
    cluster = TrueCluster(seed)
    records = cluster.statistics.records(cluster.progress(), cluster.pool_stats(), {}, {})
    for pool in cluster.pools:
        for pgid in pool.pgids:
            assert records[pgid].is_unknown == (not pool.reported[pgid])
            if pool.reported[pgid] and pool.objects[pgid]:
                assert records[pgid].num_objects > 0
        if pool.kind == EMPTY:
            assert all(records[pgid].num_objects == 0 for pgid in pool.pgids)


def test_pgs_that_had_not_reported_take_as_much_as_others() -> None:
    """Half of a pool of omap is reported at the full reading, all of it later."""
    def full(count: int) -> List[Mapping[str, Any]]:
        return [{"pgid": f"7.{i:x}", "state": "active+clean" if i < count else "unknown",
                 "stat_sum": {"num_objects": 1000 + i, "num_omap_bytes": GIB} if i < count else {}}
                for i in range(16)]
    statistics = PgStatistics()
    statistics.read_full(full(8), [{"poolid": 7, "stat_sum": {"num_objects": 8028}}])
    now = statistics.records(
        {f"7.{i:x}": {"num_bytes": 0, "state": "active+clean", "reported_epoch": 9}
         for i in range(16)},
        [{"poolid": 7, "stat_sum": {"num_objects": 16028, "num_omap_bytes": 16 * GIB}}], {}, {})
    assert [record.num_objects for record in now.values()] == pytest.approx([1002] * 16, abs=4)
    assert {record.omap_bytes for record in now.values()} == {GIB}


# -- what the snapshot makes of it -----------------------------------------------------------------


def unreported() -> Cluster:
    cluster = Cluster(hosts(4)).pool(1, size=2)
    for ps in range(6):
        cluster.pg(f"1.{ps:x}", [0, 1], num_bytes=GIB, objects=100)
    cluster.pg("1.6", [1, 2], num_bytes=0, objects=0, state="unknown", reported=0)
    cluster.pg("1.7", [1, 2], num_bytes=0, objects=0)
    del cluster.records["1.7"]
    return cluster.osd(1, used=8 * GIB).osd(2, used=2 * GIB)   # devices know what they hold


def test_unreported_pgs_have_the_mean_and_stay() -> None:
    snapshot = unreported().snapshot()
    for pgid in ("1.6", "1.7"):
        pg = snapshot.pgs[pgid]
        assert (pg.objects, pg.shard_bytes) == (100, GIB)
        assert pg.immovable == reasons.NO_STATISTICS
    assert snapshot.skipped == {reasons.NO_STATISTICS: 2}


def test_unreported_pgs_on_their_way_are_misplaced() -> None:
    cluster = unreported()
    cluster.acting["1.6"] = [1, 3]
    cluster.pg_status = {"misplaced_objects": 7, "misplaced_total": 1200}
    assert cluster.snapshot().misplaced_copies == 107


@pytest.mark.parametrize("num_bytes, omap, objects, least", [
    (GIB, 0, 0, 1), (0, GIB, 0, 1), (0, 0, 0, 0), (GIB, 0, 7, 7)])
def test_only_what_holds_nothing_has_no_objects(num_bytes: int, omap: int, objects: int,
                                                least: int) -> None:
    cluster = Cluster(hosts(2)).pool(1, size=2)
    cluster.pg("1.0", [0, 1], num_bytes=num_bytes, omap=omap, objects=objects)
    assert cluster.snapshot().pgs["1.0"].objects == least


# -- omap ------------------------------------------------------------------------------------------


def omap_pool(scrubbed: int, allocated: bool, pgs: int = 16, seed: int = 1) -> Cluster:
    """Objects of 400 kB omap each, no bytes; so many PGs have been deep-scrubbed since."""
    rng = random.Random(seed)
    cluster = Cluster(hosts(6)).pool(1, size=3)
    total = 0
    used = {osd: GIB for osd in range(6)}
    for ps in range(pgs):
        up, objects = rng.sample(range(6), 3), rng.randrange(20, 50)
        cluster.pg(f"1.{ps:x}", up, num_bytes=0, objects=objects,
                   omap=objects * 400_000 if ps < scrubbed else 0)
        total += 3 * objects * 400_000
        for osd in up:
            used[osd] += objects * 400_000
    for osd, taken in used.items():
        cluster.osd(osd, used=taken)
    cluster.store_stats[1] = {"omap_allocated": total if allocated else 0}
    return cluster


@pytest.mark.parametrize("scrubbed", [0, 1, 8, 16])
def test_omap_that_the_pool_tells_is_spread_over_its_pgs(scrubbed: int) -> None:
    """As Ceph 20 does; copies are divided out."""
    snapshot = omap_pool(scrubbed, allocated=True).snapshot()
    for pg in snapshot.pgs.values():
        assert pg.shard_bytes == pytest.approx(pg.objects * 400_000, rel=0.001)
        assert pg.immovable is None


def test_one_pg_without_a_deep_scrub_is_not_given_what_all_have_grown_by() -> None:
    """A single object would have weighed as much as all other PGs together."""
    cluster = omap_pool(16, allocated=True)
    cluster.pg("1.f", cluster.up["1.f"], num_bytes=0, objects=1)
    cluster.store_stats[1]["omap_allocated"] *= 2
    assert cluster.snapshot().pgs["1.f"].shard_bytes <= 5 * 800_000


@pytest.mark.parametrize("scrubbed", [0, 5])
def test_omap_that_nobody_tells_makes_pgs_unknown(scrubbed: int) -> None:
    """As Ceph 16 does."""
    snapshot = omap_pool(scrubbed, allocated=False).snapshot()
    assert snapshot.skipped == {reasons.OMAP_UNMEASURED: 16 - scrubbed}


@pytest.mark.parametrize("scrubbed", [0, 5])
@pytest.mark.parametrize("written_out", [0.2, 0.5, 1.0])
@pytest.mark.parametrize("release, late", [
    ("octopus", True), ("pacific", True), ("quincy", True), ("reef", False), ("tentacle", False)])
def test_omap_that_osds_tell_late_is_the_least_that_it_can_be(
        release: str, late: bool, written_out: float, scrubbed: int) -> None:
    """Before Ceph 18 some hundred MiB on each OSD wait to be written out, none tells which."""
    cluster = omap_pool(scrubbed, allocated=True)
    cluster.extra["require_osd_release"] = release
    allocated = cluster.store_stats[1]["omap_allocated"]
    cluster.store_stats[1]["omap_allocated"] = int(allocated * written_out)
    snapshot = cluster.snapshot()
    assert snapshot.skipped == ({reasons.OMAP_UNMEASURED: 16 - scrubbed} if late else {})


@pytest.mark.parametrize("release, unmeasured", [("pacific", [0, 1]), ("tentacle", [])])
@pytest.mark.parametrize("told", [0, 100 * MIB])
def test_a_part_of_the_objects_with_omap_is_enough_where_it_is_told_late(
        release: str, unmeasured: List[int], told: int) -> None:
    """Seen on 16.2.15: 100 objects of 325 had 80 MB of omap, the others 22 MB of bytes."""
    cluster = Cluster(hosts(3)).pool(1, size=2)
    cluster.extra["require_osd_release"] = release
    cluster.store_stats[1] = {"omap_allocated": told}
    for ps, with_omap, omap in ((0, 100, 0), (1, 40, 0), (2, 3, 0), (3, 100, 80 * MIB)):
        cluster.pg(f"1.{ps:x}", [0, 1], num_bytes=22 * MIB, objects=325, omap=omap)
        cluster.records[f"1.{ps:x}"] = cluster.records[f"1.{ps:x}"]._replace(
            omap_objects=with_omap)
    pgs = cluster.snapshot().pgs
    assert [ps for ps in range(4) if pgs[f"1.{ps:x}"].immovable == reasons.OMAP_UNMEASURED
            ] == unmeasured


def test_erasure_coded_pools_have_no_omap() -> None:
    cluster = Cluster(hosts(3)).pool(1, size=3, k=2).pg("1.0", [0, 1, 2], num_bytes=0, objects=9)
    assert cluster.snapshot().pgs["1.0"].immovable is None

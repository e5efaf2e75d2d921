"""Unreported is unknown, not empty: random pools whose statistics come late or in parts."""
from __future__ import annotations

import random
from collections import Counter
from typing import Any, Callable, Dict, List

import pytest
from tests.support.clusters.unit_cluster import Cluster, hosts
from tests.support.units import GIB, MIB

from equilibrium_mgr.snapshot import immovable_reasons as reasons
from equilibrium_mgr.snapshot.pg_statistics import PgStatistics

BYTES_ONLY, OMAP_ONLY, MIXED, EMPTY = "bytes only", "omap only", "mixed", "empty"
#: Bytes and omap of an object.
_OF_AN_OBJECT = {BYTES_ONLY: (MIB, 0), OMAP_ONLY: (0, 5000), MIXED: (MIB, 5000), EMPTY: (0, 0)}
_REPORTED: Dict[str, Any] = {
    "state": "active+clean", "reported_epoch": 9, "up": [0], "acting": [0]}
_UNKNOWN: Dict[str, Any] = {"state": "unknown", "reported_epoch": 0, "up": [], "acting": []}


class TruePool:
    """What a pool's PGs really hold, and what the mgr gets to see of it."""

    def __init__(self, rng: random.Random, pool: int) -> None:
        self.rng, self.pool = rng, pool
        self.kind = rng.choice(list(_OF_AN_OBJECT))
        self.pgids = [f"{pool}.{ps:x}" for ps in range(rng.choice((4, 8, 12)))]
        self.objects = dict.fromkeys(self.pgids, 0)
        self.reported = dict.fromkeys(self.pgids, True)

    def write(self, most: int) -> None:
        for pgid in self.pgids if self.kind != EMPTY else ():
            self.objects[pgid] += self.rng.randrange(most // 2, most + 1)

    def figures(self, pgid: str) -> Dict[str, int]:
        """What the PG really holds."""
        objects = self.objects[pgid]
        object_bytes, object_omap = _OF_AN_OBJECT[self.kind]
        return {"num_objects": objects, "num_bytes": objects * object_bytes,
                "num_omap_bytes": objects * object_omap}

    def seen(self) -> List[str]:
        return [pgid for pgid in self.pgids if self.reported[pgid]]

    def pool_stat(self) -> Dict[str, Any]:
        """PGs that nobody has reported count for nothing in it."""
        total: Counter[str] = Counter(num_objects=0)
        for pgid in self.seen():
            total.update(self.figures(pgid))
        return {"poolid": self.pool, "stat_sum": total}

    def pg_stat(self, pgid: str) -> Dict[str, Any]:
        if self.reported[pgid]:
            return {**_REPORTED, "pgid": pgid, "stat_sum": self.figures(pgid)}
        figures = {} if self.rng.random() < 0.5 else {"num_objects": 0}
        return {**_UNKNOWN, "pgid": pgid, "stat_sum": figures}

    def progress(self, pgid: str) -> Dict[str, Any]:
        if self.reported[pgid]:
            return {**_REPORTED, "num_bytes": self.figures(pgid)["num_bytes"]}
        return {**_UNKNOWN, "num_bytes": 0}


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
        statistics = PgStatistics()
        statistics.read_full(list(self.of_pgs(TruePool.pg_stat).values()), self.pool_stats())
        for pool in self.pools:
            if rng.random() < 0.7:
                pool.write(rng.choice((4, 1000, 100_000)))
            for pgid in pool.pgids:
                pool.reported[pgid] = pool.reported[pgid] or rng.random() < 0.8
        self.records = statistics.records(
            self.of_pgs(TruePool.progress), self.pool_stats(), {}, {})

    def of_pgs(self, what: Callable[[TruePool, str], Dict[str, Any]]) -> Dict[str, Dict[str, Any]]:
        return {pgid: what(pool, pgid) for pool in self.pools for pgid in pool.pgids}

    def pool_stats(self) -> List[Dict[str, Any]]:
        return [pool.pool_stat() for pool in self.pools]


@pytest.mark.parametrize("seed", range(60))
def test_figures_of_pgs_come_to_those_of_their_pool(seed: int) -> None:
    cluster = TrueCluster(seed)
    for pool in cluster.pools:
        records, total = [cluster.records[p] for p in pool.seen()], pool.pool_stat()["stat_sum"]
        margin = 2 * len(records)
        objects = sum(record.num_objects for record in records)
        assert objects == pytest.approx(total["num_objects"], rel=0.001, abs=margin)
        omap = sum(record.omap_bytes for record in records)
        assert omap == pytest.approx(total["num_omap_bytes"], rel=0.001, abs=margin)


@pytest.mark.parametrize("seed", range(60))
def test_objects_of_one_size_are_where_their_bytes_are(seed: int) -> None:
    """However unevenly a pool has grown since the full reading: its throttle counts objects."""
    cluster = TrueCluster(seed)
    for pool in cluster.pools:
        for pgid in pool.seen() if pool.kind in (BYTES_ONLY, MIXED) else ():
            found = cluster.records[pgid].num_objects
            assert found == pytest.approx(pool.objects[pgid], rel=0.001, abs=2)


@pytest.mark.parametrize("seed", range(60))
def test_nothing_that_holds_data_is_taken_for_empty(seed: int) -> None:
    cluster = TrueCluster(seed)
    for pool in cluster.pools:
        for pgid in pool.pgids:
            record = cluster.records[pgid]
            assert record.is_unknown == (not pool.reported[pgid])
            if pool.reported[pgid] and pool.objects[pgid]:
                assert record.num_objects > 0
            elif pool.kind == EMPTY:
                assert record.num_objects == 0


def test_pgs_that_had_not_reported_take_as_much_as_others() -> None:
    """Half of a pool of omap is reported at the full reading, all of it later."""
    full = []
    for number in range(8):
        figures = {"num_objects": 1000 + number, "num_omap_bytes": GIB}
        full.append({**_REPORTED, "pgid": f"7.{number:x}", "stat_sum": figures})
        full.append({**_UNKNOWN, "pgid": f"7.{8 + number:x}", "stat_sum": {}})
    statistics = PgStatistics()
    statistics.read_full(full, [{"poolid": 7, "stat_sum": {"num_objects": 8028}}])
    pool = {"poolid": 7, "stat_sum": {"num_objects": 16028, "num_omap_bytes": 16 * GIB}}
    progress = {pg["pgid"]: {**_REPORTED, "num_bytes": 0} for pg in full}
    now = statistics.records(progress, [pool], {}, {})
    assert [record.num_objects for record in now.values()] == pytest.approx([1002] * 16, abs=4)
    assert {record.omap_bytes for record in now.values()} == {GIB}


# -- what the snapshot makes of it -----------------------------------------------------------------


def unreported() -> Cluster:
    cluster = Cluster(hosts(4)).pool(1, size=2)
    for ps in range(6):
        cluster.pg(f"1.{ps:x}", "0 1", num_bytes=GIB, objects=100)
    cluster.pg("1.6", "1 2", num_bytes=0, objects=0, state="unknown", reported=0)
    cluster.pg("1.7", "1 2", num_bytes=0, objects=0)
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
    cluster.pg("1.0", "0 1", num_bytes=num_bytes, omap=omap, objects=objects)
    assert cluster.snapshot().pgs["1.0"].objects == least


# -- omap ------------------------------------------------------------------------------------------


OMAP_OF_AN_OBJECT = 400_000


def omap_pool(scrubbed: int, told: float = 1.0) -> Cluster:
    """16 PGs of objects with omap and no bytes; so many have been deep-scrubbed since, and OSDs
    tell this part of all omap."""
    rng = random.Random(1)
    cluster = Cluster(hosts(6)).pool(1, size=3)
    used = dict.fromkeys(range(6), GIB)
    for ps in range(16):
        up, objects = rng.sample(range(6), 3), rng.randrange(20, 50)
        held = objects * OMAP_OF_AN_OBJECT
        shown = held if ps < scrubbed else 0
        cluster.pg(f"1.{ps:x}", up, num_bytes=0, objects=objects, omap=shown)
        for osd in up:
            used[osd] += held
    cluster.used = used
    allocated = sum(used.values()) - 6 * GIB
    cluster.store_stats[1] = {"omap_allocated": int(allocated * told)}
    return cluster


@pytest.mark.parametrize("scrubbed", [0, 1, 8, 16])
def test_omap_that_the_pool_tells_is_spread_over_its_pgs(scrubbed: int) -> None:
    """As Ceph 20 does; copies are divided out."""
    for pg in omap_pool(scrubbed).snapshot().pgs.values():
        assert pg.shard_bytes == pytest.approx(pg.objects * OMAP_OF_AN_OBJECT, rel=0.001)
        assert pg.immovable is None


def test_one_pg_without_a_deep_scrub_is_not_given_what_all_have_grown_by() -> None:
    """A single object would have weighed as much as all other PGs together."""
    cluster = omap_pool(16, 2.0)
    cluster.pg("1.f", cluster.up["1.f"], num_bytes=0, objects=1)
    assert cluster.snapshot().pgs["1.f"].shard_bytes <= 5 * 2 * OMAP_OF_AN_OBJECT


@pytest.mark.parametrize("scrubbed", [0, 5])
def test_omap_that_nobody_tells_makes_pgs_unknown(scrubbed: int) -> None:
    """As Ceph 16 does."""
    assert omap_pool(scrubbed, 0.0).snapshot().skipped == {reasons.OMAP_UNMEASURED: 16 - scrubbed}


@pytest.mark.parametrize("scrubbed", [0, 5])
@pytest.mark.parametrize("written_out", [0.2, 0.5, 1.0])
@pytest.mark.parametrize("release, is_late", [
    ("octopus", True), ("pacific", True), ("quincy", True), ("reef", False), ("tentacle", False)])
def test_omap_that_osds_tell_late_is_the_least_that_it_can_be(
        release: str, is_late: bool, written_out: float, scrubbed: int) -> None:
    """Before Ceph 18 some hundred MiB on each OSD wait to be written out, none tells which."""
    cluster = omap_pool(scrubbed, written_out)
    cluster.extra["require_osd_release"] = release
    expected = {}
    if is_late:
        expected[reasons.OMAP_UNMEASURED] = 16 - scrubbed
    assert cluster.snapshot().skipped == expected


@pytest.mark.parametrize("release, unmeasured", [
    ("pacific", ["1.0", "1.1"]), ("tentacle", [])])
@pytest.mark.parametrize("told", [0, 100 * MIB])
def test_a_part_of_the_objects_with_omap_is_enough_where_it_is_told_late(
        release: str, unmeasured: List[str], told: int) -> None:
    """Seen on 16.2.15: 100 objects of 325 had 80 MB of omap, the others 22 MB of bytes."""
    cluster = Cluster(hosts(3)).pool(1, size=2)
    cluster.extra["require_osd_release"] = release
    cluster.store_stats[1] = {"omap_allocated": told}
    for pgid, with_omap, omap in (("1.0", 100, 0), ("1.1", 40, 0), ("1.2", 3, 0),
                                  ("1.3", 100, 80 * MIB)):
        cluster.pg(pgid, [0, 1], num_bytes=22 * MIB, objects=325, omap=omap)
        cluster.records[pgid] = cluster.records[pgid]._replace(omap_objects=with_omap)
    found = cluster.snapshot().pgs.values()
    assert [pg.pgid for pg in found if pg.immovable == reasons.OMAP_UNMEASURED] == unmeasured


def test_erasure_coded_pools_have_no_omap() -> None:
    cluster = Cluster(hosts(3)).pool(1, size=3, k=2).pg("1.0", "0 1 2", num_bytes=0, objects=9)
    assert cluster.snapshot().pgs["1.0"].immovable is None

"""Omap that has left an OSD counts as leaving until the OSD's own figure for omap shows it gone."""
from __future__ import annotations

from typing import Tuple

import pytest
from tests.support.clusters.unit_cluster import Cluster, hosts
from tests.support.rules import OSD_RULE
from tests.support.units import GIB

from equilibrium_mgr.snapshot.builder import SnapshotBuilder

OMAP = 4 * GIB
PGS = 8


def omap_cluster(data: int = 0) -> Cluster:
    """Eight PGs of 4 GiB of omap: six on osd.0, two on osd.1; osd.2 is empty. Their `data` bytes
    take four times as much."""
    cluster = Cluster(hosts(1, 3), {0: OSD_RULE}).pool(1, size=1)
    for ps in range(PGS):
        cluster.pg(f"1.{ps:x}", [int(ps >= 6)], num_bytes=data, objects=1000, omap=OMAP)
    if data:
        cluster.store_stats[1] = {"allocated": PGS * 4 * data}
    for osd, pgs in enumerate((6, 2, 0)):
        report(cluster, osd, pgs)
    return cluster


def report(cluster: Cluster, osd: int, shards: int) -> None:
    """What the OSD says of itself: so many shards, more or less than it has."""
    cluster.osd(osd, used=shards * (OMAP + 4 * cluster.records["1.0"].num_bytes))
    cluster.omap_reported[osd] = shards * OMAP
    cluster.store_stats[1] = {**cluster.store_stats.get(1, {}),
                              "omap_allocated": sum(cluster.omap_reported.values())}


def moved(shards: int = 3, data: int = 0) -> Tuple[Cluster, SnapshotBuilder]:
    """So many went from osd.0 to osd.2 and have arrived; osd.0 has given nothing back."""
    cluster, builder = omap_cluster(data), SnapshotBuilder()
    builder.build(cluster.reading())
    pgids = [f"1.{ps:x}" for ps in range(shards)]
    for pgid in pgids:
        cluster.pg(pgid, [2], num_bytes=data, objects=1000, omap=OMAP, items=[(0, 2)], acting=[0],
                   state="active+remapped+backfilling", reported=101)
    cluster.epoch = 101
    builder.build(cluster.reading())
    for pgid in pgids:
        del cluster.acting[pgid]
        cluster.pg(pgid, [2], num_bytes=data, objects=1000, omap=OMAP, items=[(0, 2)],
                   reported=102)
    report(cluster, 2, shards)
    cluster.epoch = 102
    return cluster, builder


def test_what_has_left_counts_as_leaving() -> None:
    cluster, builder = moved()
    for _ in range(5):
        osds = builder.build(cluster.reading()).osds
        assert osds[0].used_bytes == 6 * OMAP
        assert osds[0].target_bytes == pytest.approx(3 * OMAP, rel=0.02)
        assert [osds[osd].uncompacted_bytes for osd in (1, 2)] == [0, 0]


def test_what_has_just_been_sent_away_leaves_once() -> None:
    cluster, builder = omap_cluster(), SnapshotBuilder()
    builder.build(cluster.reading())
    cluster.up = dict(cluster.up)
    cluster.pg("1.0", [2], objects=1000, omap=OMAP, items=[(0, 2)],
               reported=100)   # it has not told yet
    cluster.epoch = 101
    for _ in range(2):
        osd = builder.build(cluster.reading()).osds[0]
        assert osd.target_bytes == pytest.approx(5 * OMAP, rel=0.02)


@pytest.mark.parametrize("given_back", [1, 2, 3])
def test_what_the_osd_has_given_back_is_not_expected_any_more(given_back: int) -> None:
    cluster, builder = moved()
    builder.build(cluster.reading())
    report(cluster, 0, 6 - given_back)
    osd = builder.build(cluster.reading()).osds[0]
    assert osd.target_bytes == pytest.approx(3 * OMAP, rel=0.02)
    report(cluster, 0, 6)   # clients have written: that stays
    osd = builder.build(cluster.reading()).osds[0]
    assert osd.uncompacted_bytes <= (3 - given_back) * OMAP * 1.01


@pytest.mark.parametrize("told", [False, True])
def test_an_osd_that_tells_nothing_of_omap_is_believed(told: bool) -> None:
    """As one of Ceph 16 with all of it in write buffers; and a mgr that did not see it leave."""
    cluster, builder = moved()
    if not told:
        cluster.omap_reported[0] = 0
    snapshot = (SnapshotBuilder() if told else builder).build(cluster.reading())
    assert snapshot.osds[0].target_bytes == 6 * OMAP


def test_what_an_osd_keeps_while_others_lack_it_has_not_left() -> None:
    cluster, builder = moved()
    builder.build(cluster.reading())
    report(cluster, 0, 3)   # all that left is free
    for ps in range(3, 6):
        cluster.pg(f"1.{ps:x}", [0], num_bytes=0, objects=1000, omap=OMAP, reported=103,
                   state="active+undersized+degraded+remapped+backfilling")
    osd = builder.build(cluster.reading()).osds[0]
    assert osd.target_bytes == pytest.approx(3 * OMAP, rel=0.02)


@pytest.mark.parametrize("scrubbed", [PGS, 3])
def test_omap_that_rocksdb_compresses_takes_what_osds_report(scrubbed: int) -> None:
    """As by default since Ceph 19: deep scrubs count keys and values as clients wrote them."""
    cluster, builder = omap_cluster(), SnapshotBuilder()
    for ps in range(PGS):
        pgid = f"1.{ps:x}"
        cluster.records[pgid] = cluster.records[pgid]._replace(
            omap_bytes=int(2.2 * OMAP) if ps < scrubbed else 0)
    snapshot = builder.build(cluster.reading())
    for pg in snapshot.pgs.values():
        assert pg.shard_bytes == pytest.approx(OMAP, rel=0.01)
    cluster.up = dict(cluster.up, **{"1.0": [2]})
    cluster.records = {**cluster.records,
                       "1.0": cluster.records["1.0"]._replace(reported_epoch=102)}
    cluster.epoch = 102
    report(cluster, 2, 1)   # it has arrived, and osd.0 has compacted nothing
    for _ in range(3):
        target = builder.build(cluster.reading()).osds[0].target_bytes
        assert target == pytest.approx(5 * OMAP, rel=0.02)


def test_before_ceph_18_what_is_not_reported_may_be_there_all_the_same() -> None:
    cluster = omap_cluster()
    cluster.extra["require_osd_release"] = "pacific"
    cluster.store_stats[1]["omap_allocated"] //= 2
    assert {pg.shard_bytes for pg in cluster.snapshot().pgs.values()} == {OMAP}

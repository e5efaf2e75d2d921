"""Omap that has left an OSD counts as leaving until the OSD's own figure for omap shows it gone."""
from __future__ import annotations

from typing import Any, Dict

import pytest
from tests.support.clusters.unit_cluster import Cluster, hosts
from tests.support.rules import OSD_RULE
from tests.support.units import GIB

from equilibrium_mgr.snapshot.builder import SnapshotBuilder
from equilibrium_mgr.snapshot.model import Osd

OMAP = 4 * GIB
PGS = 8


class Compacting(Cluster):
    """Eight PGs of 4 GiB of omap: six on osd.0, two on osd.1; osd.2 is empty; and the mgr."""

    def __init__(self) -> None:
        super().__init__(hosts(1, 3), {0: OSD_RULE})
        self.pool(1, size=1)
        self.builder = SnapshotBuilder()
        for ps in range(PGS):
            self.put(ps, int(ps >= 6))
        for osd, pgs in enumerate((6, 2, 0)):
            self.report(osd, pgs)

    def put(self, ps: int, osd: int, **fields: Any) -> None:
        self.pg(f"1.{ps}", [osd], num_bytes=0, objects=1000, omap=OMAP, **fields)

    def report(self, osd: int, shards: int) -> None:
        """What the OSD says of itself: so many shards, more or less than it has."""
        self.osd(osd, used=shards * OMAP)
        self.omap_reported[osd] = shards * OMAP
        self.store_stats[1] = {"omap_allocated": sum(self.omap_reported.values())}

    def look(self) -> Dict[int, Osd]:
        return self.builder.build(self.reading()).osds


def moved() -> Compacting:
    """Three went from osd.0 to osd.2 and have arrived; osd.0 has given nothing back."""
    cluster = Compacting()
    cluster.look()
    for ps in range(3):
        cluster.put(ps, 2, items=[(0, 2)], acting=[0], state="active+remapped+backfilling",
                    reported=101)
    cluster.epoch = 101
    cluster.look()
    cluster.acting.clear()
    for ps in range(3):
        cluster.put(ps, 2, items=[(0, 2)], reported=102)
    cluster.report(2, 3)
    cluster.epoch = 102
    return cluster


def ends_with(osd: Osd, shards: int) -> bool:
    """Whether it has only these in the end."""
    return osd.target_bytes == pytest.approx(shards * OMAP, rel=0.02)


def test_what_has_left_counts_as_leaving() -> None:
    cluster = moved()
    for _ in range(5):
        osds = cluster.look()
        assert osds[0].used_bytes == 6 * OMAP
        assert ends_with(osds[0], 3)
        assert osds[1].uncompacted_bytes == osds[2].uncompacted_bytes == 0


def test_what_has_just_been_sent_away_leaves_once() -> None:
    cluster = Compacting()
    cluster.look()
    cluster.up = dict(cluster.up)
    cluster.put(0, 2, items=[(0, 2)])   # it has not told yet
    cluster.epoch = 101
    for _ in range(2):
        assert ends_with(cluster.look()[0], 5)


@pytest.mark.parametrize("given_back", [1, 2, 3])
def test_what_the_osd_has_given_back_is_not_expected_any_more(given_back: int) -> None:
    cluster = moved()
    cluster.look()
    cluster.report(0, 6 - given_back)
    assert ends_with(cluster.look()[0], 3)
    cluster.report(0, 6)   # clients have written: that stays
    assert cluster.look()[0].uncompacted_bytes <= (3 - given_back) * OMAP * 1.01


@pytest.mark.parametrize("told", [False, True])
def test_an_osd_that_tells_nothing_of_omap_is_believed(told: bool) -> None:
    """As one of Ceph 16 with all of it in write buffers; and a mgr that did not see it leave."""
    cluster = moved()
    if told:
        cluster.builder = SnapshotBuilder()
    else:
        cluster.omap_reported[0] = 0
    assert cluster.look()[0].target_bytes == 6 * OMAP


def test_what_an_osd_keeps_while_others_lack_it_has_not_left() -> None:
    cluster = moved()
    cluster.look()
    cluster.report(0, 3)   # all that left is free
    for ps in range(3, 6):
        cluster.put(ps, 0, reported=103,
                    state="active+undersized+degraded+remapped+backfilling")
    assert ends_with(cluster.look()[0], 3)


@pytest.mark.parametrize("scrubbed", [PGS, 3])
def test_omap_that_rocksdb_compresses_takes_what_osds_report(scrubbed: int) -> None:
    """As by default since Ceph 19: deep scrubs count keys and values as clients wrote them."""
    cluster = Compacting()
    for number, (pgid, record) in enumerate(cluster.records.items()):
        omap = int(2.2 * OMAP) if number < scrubbed else 0
        cluster.records[pgid] = record._replace(omap_bytes=omap)
    snapshot = cluster.builder.build(cluster.reading())
    for pg in snapshot.pgs.values():
        assert pg.shard_bytes == pytest.approx(OMAP, rel=0.01)
    cluster.up = {**cluster.up, "1.0": [2]}
    record = cluster.records["1.0"]._replace(reported_epoch=102)
    cluster.records = {**cluster.records, "1.0": record}
    cluster.epoch = 102
    cluster.report(2, 1)   # it has arrived, and osd.0 has compacted nothing
    for _ in range(3):
        assert ends_with(cluster.look()[0], 5)


def test_before_ceph_18_what_is_not_reported_may_be_there_all_the_same() -> None:
    cluster = Compacting()
    cluster.extra["require_osd_release"] = "pacific"
    cluster.store_stats[1]["omap_allocated"] //= 2
    assert {pg.shard_bytes for pg in cluster.snapshot().pgs.values()} == {OMAP}

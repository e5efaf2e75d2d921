"""Data that has left an OSD counts as leaving until the OSD has deleted it."""
from __future__ import annotations

from itertools import count as counter
from typing import Tuple

import pytest
from tests.support.clusters.unit_cluster import Cluster, hosts
from tests.support.rules import OSD_RULE
from tests.support.units import GIB

from equilibrium_mgr.snapshot.builder import SnapshotBuilder
from equilibrium_mgr.snapshot.model import Snapshot

DATA = 4 * GIB
SHARDS = (15, 12, 9, 12, 12)   # by OSD
MOVED = 3
_TIMES = counter(1000, 100)


def look(builder: SnapshotBuilder, cluster: Cluster) -> Snapshot:
    """At a time of its own, by when OSDs have reported what was before."""
    return builder.build(cluster.reading()._replace(taken_at=next(_TIMES)))


def told(cluster: Cluster, osd: int, shards: float, count: int) -> None:
    """The OSD reports the bytes of so many shards, and that it counts so many PGs."""
    cluster.osd(osd, used=GIB + int(shards * DATA))
    cluster.num_pgs[osd] = count
    cluster.store_stats[1] = {"allocated": sum(cluster.used.values()) - len(cluster.used) * GIB}


def data_cluster() -> Cluster:
    """60 PGs of 4 GiB: three too many on osd.0, which osd.2 lacks."""
    cluster = Cluster(hosts(1, 5), {0: OSD_RULE}).pool(1, size=1)
    for osd, pgs in enumerate(SHARDS):
        for _ in range(pgs):
            cluster.pg(f"1.{len(cluster.up):x}", [osd], num_bytes=DATA, objects=1000)
        told(cluster, osd, pgs, pgs)
    return cluster


def moved(was_seen: bool = True, more: float = 0.0) -> Tuple[Cluster, SnapshotBuilder]:
    """Three went from osd.0 to osd.2 and have arrived; osd.0 has deleted nothing. `was_seen`: while
    they moved. `more`: shards' bytes that osd.2 had beside its shards until then."""
    cluster, builder = data_cluster(), SnapshotBuilder()
    told(cluster, 2, 9 + more, 9)
    look(builder, cluster)
    pgids, cluster.up = [f"1.{ps:x}" for ps in range(MOVED)], dict(cluster.up)
    for pgid in pgids if was_seen else ():
        cluster.pg(pgid, [2], num_bytes=DATA, objects=1000, items=[(0, 2)], acting=[0],
                   state="active+remapped+backfilling", reported=101)
        cluster.epoch = 101
    if was_seen:
        told(cluster, 2, 9 + more, 12)
        look(builder, cluster)
        cluster.records = dict(cluster.records)   # the next look's are others
    for pgid in pgids:
        cluster.acting.pop(pgid, None)
        cluster.pg(pgid, [2], num_bytes=DATA, objects=1000, items=[(0, 2)], reported=102)
    told(cluster, 2, 12, 12)
    cluster.epoch = 102
    return cluster, builder


@pytest.mark.parametrize("was_seen", [True, False])
def test_what_has_left_counts_as_leaving_until_it_is_deleted(was_seen: bool) -> None:
    cluster, builder = moved(was_seen)
    for left, count in ((3.0, 15), (2.0, 15), (0.5, 14), (0.0, 13)):
        told(cluster, 0, 12 + left, count)
        for _ in range(4):   # its pool's figure tells the sizes of shards, and counts the leftover
            osds = look(builder, cluster).osds
        assert osds[0].undeleted_bytes == pytest.approx(left * DATA, abs=0.05 * DATA)
        assert osds[0].target_bytes == pytest.approx(12 * DATA + GIB, rel=0.01)
        assert [osds[osd].undeleted_bytes for osd in (1, 2, 3, 4)] == [0] * 4


def test_what_has_come_is_there_before_its_osd_reports_it() -> None:
    cluster, builder = moved()
    told(cluster, 2, 9, 12)   # as it was before
    osd = look(builder, cluster).osds[2]
    assert osd.target_bytes == pytest.approx(12 * DATA + GIB, rel=0.01)


def test_what_has_become_clean_is_whole_although_another_epoch_followed() -> None:
    cluster, builder = moved(more=2.0)
    cluster.epoch = 103   # of another PG; idle ones have nothing to tell of it
    told(cluster, 0, 12.0, 12)
    for _ in range(3):
        osd = look(builder, cluster).osds[2]
    assert osd.target_bytes == osd.used_bytes


def test_what_an_osd_counts_beyond_the_map_explains_its_bytes_though_nobody_saw_it_leave() -> None:
    cluster, builder = moved()
    told(cluster, 0, 12, 12)
    for _ in range(2):   # now it is known of nothing that left it
        look(builder, cluster)
    told(cluster, 0, 13, 13)   # from before, since its reports are late
    osd = look(builder, cluster).osds[0]
    assert osd.undeleted_bytes == pytest.approx(DATA, rel=0.05)
    assert osd.least_residual_bytes <= osd.residual_bytes < 2 * GIB


def by_pool(cluster: Cluster, more: int = 0) -> SnapshotBuilder:
    """Each OSD tells what it has of each pool, osd.0 `more` bytes of pool 1; a mgr that has just
    taken over."""
    held = {(pool, osd): sum(cluster.data_bytes(pgid) for pgid, up in cluster.up.items()
                             if up == [osd] and pgid[0] == str(pool))
            for pool in (1, 2) for osd in range(len(SHARDS))}
    held[1, 0] += more
    cluster.stored = [{"poolid": pool, "osd": osd, "allocated": count, "data_stored": count}
                      for (pool, osd), count in held.items()]
    for pool in (1, 2):
        of_pool = sum(count for (number, _), count in held.items() if number == pool)
        cluster.store_stats[pool] = {"allocated": of_pool, "data_stored": of_pool}
    return SnapshotBuilder()


def with_larger_shards() -> Cluster:
    """A second pool, whose shards are larger than all that is deleted."""
    cluster = data_cluster().pool(2, size=1)
    for osd, shards in enumerate(SHARDS):
        cluster.pg(f"2.{osd}", [osd], num_bytes=2 * DATA, objects=1000)
        told(cluster, osd, shards + 2, shards + 1)
    return cluster


def test_what_left_before_a_mgr_took_over_makes_no_shard_larger() -> None:
    cluster = with_larger_shards()
    told(cluster, 0, SHARDS[0] + 2 + 6, SHARDS[0] + 1 + 6)   # it deletes six of pool 1
    snapshot = look(by_pool(cluster, 6 * DATA), cluster)
    assert snapshot.pgs["2.1"].shard_bytes == pytest.approx(
        2 * snapshot.pgs["1.1"].shard_bytes, rel=0.01)
    assert snapshot.osds[0].undeleted_bytes == pytest.approx(6 * DATA, rel=0.05)


def test_what_is_on_an_osd_that_is_out_makes_no_shard_larger() -> None:
    cluster = with_larger_shards()
    builder = by_pool(cluster)
    look(builder, cluster)
    cluster.mark_out(4).osd(4, up=0, state=["exists"]).pg(
        "2.4", [4], num_bytes=2 * DATA, objects=1000, state="down")
    cluster.up = {pgid: [0] if up == [4] and pgid[0] == "1" else up
                  for pgid, up in cluster.up.items()}
    told(cluster, 0, SHARDS[0] + SHARDS[4] + 2, SHARDS[0] + SHARDS[4] + 1)
    cluster.without_statistics = [4]   # the mgr has none of an OSD that is out
    cluster.stored[0] = {**cluster.stored[0], "data_stored": 27 * DATA, "allocated": 27 * DATA}
    cluster.store_stats[1] = dict.fromkeys(("allocated", "data_stored"), 72 * DATA)
    pgs = look(builder, cluster).pgs
    assert pgs["2.1"].shard_bytes == pytest.approx(2 * pgs["1.1"].shard_bytes, rel=0.01)


@pytest.mark.parametrize("others", [0, 1])
def test_a_pool_of_which_no_osd_is_known_to_hold_all_is_as_large_as_all_osds_tell(
        others: int) -> None:
    """A mgr takes over while each OSD with shards of pool 1 deletes one. OSDs store three bytes for
    each logical one of that pool. `others`: OSDs beside those, of which all is known."""
    cluster = with_larger_shards()
    if others:
        cluster.up = {pgid: [0] if up == [4] and pgid[0] == "1" else up
                      for pgid, up in cluster.up.items()}
    builder = by_pool(cluster)
    cluster.stored = [{**row, **dict.fromkeys(
        ("allocated", "data_stored"), 3 * (row["data_stored"] + DATA))}
        if row["poolid"] == 1 and row["data_stored"] else row for row in cluster.stored]
    for osd in range(len(SHARDS)):
        bytes_ = sum(row["data_stored"] for row in cluster.stored if row["osd"] == osd)
        told(cluster, osd, bytes_ / DATA, sum(up == [osd] for up in cluster.up.values())
             + (osd < len(SHARDS) - others))
    cluster.store_stats[1] = dict.fromkeys(("allocated", "data_stored"), sum(
        row["data_stored"] for row in cluster.stored if row["poolid"] == 1))
    pgs = look(builder, cluster).pgs
    assert pgs["1.1"].shard_bytes / pgs["2.1"].shard_bytes == pytest.approx(1.5, rel=0.15)


def test_what_an_osd_told_of_a_pool_that_has_left_it_makes_no_shard_larger() -> None:
    cluster = with_larger_shards()
    builder = by_pool(cluster)
    cluster.up = {pgid: [0] if up == [4] and pgid[0] == "1" else up
                  for pgid, up in cluster.up.items()}   # osd.4 has deleted them, the row stays
    told(cluster, 0, SHARDS[0] + SHARDS[4] + 2, SHARDS[0] + SHARDS[4] + 1)
    told(cluster, 4, 2, 1)
    cluster.stored[0] = {**cluster.stored[0], "data_stored": 27 * DATA, "allocated": 27 * DATA}
    cluster.store_stats[1] = dict.fromkeys(("allocated", "data_stored"), 72 * DATA)
    pgs = look(builder, cluster).pgs
    assert pgs["2.1"].shard_bytes == pytest.approx(2 * pgs["1.1"].shard_bytes, rel=0.01)


@pytest.mark.parametrize("is_up", [True, False])
def test_old_figures_of_an_osd_make_no_shard_larger(is_up: bool) -> None:
    """The last figures of osd.0 are from when it deleted as many shards of pool 1 as it has."""
    cluster = with_larger_shards()
    builder = by_pool(cluster, SHARDS[0] * DATA)
    if not is_up:
        cluster.osd(0, up=0, state=["exists"])
    stale = frozenset([0] if is_up else [])
    pgs = builder.build(cluster.reading()._replace(stale_osds=stale)).pgs
    assert pgs["2.1"].shard_bytes == pytest.approx(2 * pgs["1.1"].shard_bytes, rel=0.01)


def test_the_size_of_shards_stays_between_its_bounds_while_copies_are_missing() -> None:
    """Half of the PGs recover: so much of them is there as there may be."""
    cluster, builder = data_cluster(), SnapshotBuilder()
    for allocated, expected in ((1.5, 1.5), (1.3, 1.5), (0.6, 1.2)):
        for osd, shards in enumerate(SHARDS):
            told(cluster, osd, allocated * shards, shards)
        assert look(builder, cluster).pgs["1.1"].shard_bytes == pytest.approx(
            expected * DATA, rel=0.01)
        cluster.records = {pgid: record._replace(state="active+recovering+degraded")
                           if int(pgid[2:], 16) % 2 else record
                           for pgid, record in cluster.records.items()}


def stored_times(cluster: Cluster, pool: int, factor: int = 3) -> None:
    """OSDs store so many bytes for each byte that `by_pool` has of a pool."""
    total = 0
    for row in cluster.stored:
        if row["poolid"] == pool:
            row["data_stored"] = row["allocated"] = factor * row["data_stored"]
            total += row["data_stored"]
    cluster.store_stats[pool] = {"allocated": total, "data_stored": total}


@pytest.mark.parametrize(("deleted", "expected"), [(1, 2 / 3), (2, 6.0)])
def test_what_every_osd_deletes_may_be_of_any_pool(deleted: int, expected: float) -> None:
    """A mgr takes over while each OSD deletes a shard of a pool that takes thrice its bytes."""
    cluster = with_larger_shards()
    builder = by_pool(cluster)
    for row in cluster.stored:
        if row["poolid"] == deleted:
            row["data_stored"] += deleted * DATA
    for osd, shards in enumerate(SHARDS):
        told(cluster, osd, 3 * (shards + 3), shards + 2)
    stored_times(cluster, deleted)
    stored_times(cluster, 3 - deleted, 1)
    pgs = look(builder, cluster).pgs
    assert pgs["2.1"].shard_bytes / pgs["1.1"].shard_bytes == pytest.approx(expected, rel=0.01)


def test_a_pool_is_as_large_as_told_although_no_copy_is_certainly_whole() -> None:
    cluster = with_larger_shards()
    builder = by_pool(cluster)
    stored_times(cluster, 2)
    for osd in range(len(SHARDS)):
        cluster.pg(f"2.{osd}", [osd], num_bytes=2 * DATA, objects=1000,
                   state="active+recovering+degraded")
    pgs = look(builder, cluster).pgs
    assert pgs["2.1"].shard_bytes / pgs["1.1"].shard_bytes == pytest.approx(6.0, rel=0.01)


def test_what_has_left_an_osd_is_as_large_as_that_osd_tells() -> None:
    """The only shard of pool 2 on osd.0 has gone to osd.1 and is not deleted yet. Since then OSDs
    store four bytes for each."""
    cluster = with_larger_shards()
    builder = by_pool(cluster)
    stored_times(cluster, 2)
    look(builder, cluster)
    cluster.up = {**cluster.up, "2.0": [1]}
    told(cluster, 0, SHARDS[0] + 2, SHARDS[0] + 1)
    told(cluster, 1, SHARDS[1] + 4, SHARDS[1] + 2)
    cluster.epoch = 101
    by_pool(cluster)
    for row in cluster.stored:
        if (row["poolid"], row["osd"]) == (2, 0):
            row["data_stored"] = 2 * DATA
    stored_times(cluster, 2, 4)
    pgs = look(builder, cluster).pgs
    assert pgs["2.1"].shard_bytes / pgs["1.1"].shard_bytes == pytest.approx(8.0, rel=0.01)


def test_shards_of_a_pool_that_is_gone_are_as_large_as_they_were() -> None:
    cluster = with_larger_shards()
    builder = by_pool(cluster)
    stored_times(cluster, 2)
    for osd, shards in enumerate(SHARDS):
        cluster.osd(osd, used=GIB + (shards + 6) * DATA)
    look(builder, cluster)
    cluster.pools, cluster.up = {1: cluster.pools[1]}, {
        pgid: up for pgid, up in cluster.up.items() if pgid[0] == "1"}
    cluster.epoch = 101
    osds = look(builder, cluster).osds
    assert osds[1].undeleted_bytes == pytest.approx(6 * DATA, rel=0.05)

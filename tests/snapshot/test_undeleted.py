"""Data that has left an OSD counts as leaving until the OSD has deleted it."""
from __future__ import annotations

from itertools import count as counter
from typing import Any, Callable, List, Sequence

import pytest
from tests.support.clusters.unit_cluster import Cluster, hosts
from tests.support.rules import OSD_RULE
from tests.support.units import GIB

from equilibrium_mgr.snapshot.builder import SnapshotBuilder
from equilibrium_mgr.snapshot.model import Osd, Snapshot, pool_of

DATA = 4 * GIB
SHARDS = (15, 12, 9, 12, 12)   # by OSD
MOVED = ("1.0", "1.1", "1.2")
_TIMES = counter(1000, 100)


class Deleting(Cluster):
    """60 PGs of 4 GiB: three too many on osd.0, which osd.2 lacks; and the mgr."""

    def __init__(self) -> None:
        super().__init__(hosts(1, 5), {0: OSD_RULE})
        self.pool(1, size=1)
        self.builder = SnapshotBuilder()
        for osd, pgs in enumerate(SHARDS):
            for _ in range(pgs):
                self.pg(f"1.{len(self.up):x}", [osd], num_bytes=DATA, objects=1000)
            self.told(osd, pgs, pgs)

    def look(self, **fields: Any) -> Snapshot:
        """At a time of its own, by when OSDs have reported what was before."""
        return self.builder.build(self.reading()._replace(taken_at=next(_TIMES), **fields))

    def told(self, osd: int, shards: float, count: int) -> None:
        """The OSD reports the bytes of so many shards, and that it counts so many PGs."""
        self.osd(osd, used=GIB + int(shards * DATA))
        self.num_pgs[osd] = count
        self.store_stats[1] = {"allocated": sum(self.used.values()) - len(self.used) * GIB}


def moved(was_seen: bool = True, more: float = 0.0) -> Deleting:
    """Three went from osd.0 to osd.2 and have arrived; osd.0 has deleted nothing. `was_seen`: while
    they moved. `more`: shards' bytes that osd.2 had beside its shards until then."""
    cluster = Deleting()
    cluster.told(2, 9 + more, 9)
    cluster.look()
    cluster.up = dict(cluster.up)
    if was_seen:
        for pgid in MOVED:
            cluster.pg(pgid, [2], num_bytes=DATA, objects=1000, items="0>2", acting="0",
                       state="active+remapped+backfilling", reported=101)
        cluster.epoch = 101
        cluster.told(2, 9 + more, 12)
        cluster.look()
        cluster.records = dict(cluster.records)   # the next look's are others
    cluster.acting.clear()
    for pgid in MOVED:
        cluster.pg(pgid, [2], num_bytes=DATA, objects=1000, items="0>2", reported=102)
    cluster.told(2, 12, 12)
    cluster.epoch = 102
    return cluster


def ends_with(osd: Osd, shards: int) -> bool:
    """Whether it has only these in the end."""
    return osd.target_bytes == pytest.approx(shards * DATA + GIB, rel=0.01)


@pytest.mark.parametrize("was_seen", [True, False])
def test_what_has_left_counts_as_leaving_until_it_is_deleted(was_seen: bool) -> None:
    cluster = moved(was_seen)
    for left, count in ((3.0, 15), (2.0, 15), (0.5, 14), (0.0, 13)):
        cluster.told(0, 12 + left, count)
        for _ in range(4):   # its pool's figure tells the sizes of shards, and counts the leftover
            first, *others = cluster.look().osds.values()
        assert first.undeleted_bytes == pytest.approx(left * DATA, abs=0.05 * DATA)
        assert ends_with(first, 12)
        assert {osd.undeleted_bytes for osd in others} == {0}


def test_what_has_come_is_there_before_its_osd_reports_it() -> None:
    cluster = moved()
    cluster.told(2, 9, 12)   # as it was before
    assert ends_with(cluster.look().osds[2], 12)


def test_what_has_become_clean_is_whole_although_another_epoch_followed() -> None:
    cluster = moved(more=2.0)
    cluster.epoch = 103   # of another PG; idle ones have nothing to tell of it
    cluster.told(0, 12, 12)
    for _ in range(3):
        osd = cluster.look().osds[2]
    assert osd.target_bytes == osd.used_bytes


def test_what_an_osd_counts_beyond_the_map_explains_its_bytes_though_nobody_saw_it_leave() -> None:
    cluster = moved()
    cluster.told(0, 12, 12)
    for _ in range(2):   # now it is known of nothing that left it
        cluster.look()
    cluster.told(0, 13, 13)   # from before, since its reports are late
    osd = cluster.look().osds[0]
    assert osd.undeleted_bytes == pytest.approx(DATA, rel=0.05)
    assert osd.least_residual_bytes <= osd.residual_bytes < 2 * GIB


# -- two pools -------------------------------------------------------------------------------------


class TwoPools(Deleting):
    """A second pool, whose shards are larger than all that is deleted. Each OSD tells what it has
    of each pool; the mgr has just taken over."""

    def __init__(self) -> None:
        super().__init__()
        self.pool(2, size=1)
        for osd, shards in enumerate(SHARDS):
            self.pg(f"2.{osd}", [osd], num_bytes=2 * DATA, objects=1000)
            self.told(osd, shards + 2, shards + 1)
        self.tell_pools()

    def tell_pools(self) -> None:
        """As it is by the map."""
        held = {(pool, osd): 0 for pool in (1, 2) for osd in self.osds}
        for pgid, (osd,) in self.up.items():
            held[pool_of(pgid), osd] += self.data_bytes(pgid)
        self.stored = [{"poolid": pool, "osd": osd, "allocated": count, "data_stored": count}
                       for (pool, osd), count in held.items()]
        for pool in (1, 2):
            self.tell(pool, int)

    def tell(self, pool: int, changed: Callable[[int], int]) -> None:
        """OSDs tell other bytes of a pool: what it makes of those that they told."""
        total = 0
        for row in self.stored:
            if row["poolid"] == pool:
                row["data_stored"] = row["allocated"] = changed(row["data_stored"])
                total += row["data_stored"]
        self.store_stats[pool] = {"allocated": total, "data_stored": total}

    def tell_more(self, shards: int) -> None:
        """osd.0 has so many of pool 1 beside those by the map."""
        self.stored[0]["data_stored"] += shards * DATA
        self.tell(1, int)

    def put_all_of_4_on_0(self) -> None:
        """Shards of pool 1."""
        self.up = dict(self.up)
        for pgid, up in self.up.items():
            if up == [4] and pgid[0] == "1":
                self.up[pgid] = [0]

    def ratio(self, **fields: Any) -> float:
        """Of the sizes of the pools' shards: 2 unless OSDs store more than there is."""
        pgs = self.look(**fields).pgs
        return pgs["2.1"].shard_bytes / pgs["1.1"].shard_bytes


def test_what_left_before_a_mgr_took_over_makes_no_shard_larger() -> None:
    cluster = TwoPools()
    cluster.told(0, SHARDS[0] + 2 + 6, SHARDS[0] + 1 + 6)   # it deletes six of pool 1
    cluster.tell_more(6)
    assert cluster.ratio() == pytest.approx(2.0, rel=0.01)
    assert cluster.look().osds[0].undeleted_bytes == pytest.approx(6 * DATA, rel=0.05)


def test_what_is_on_an_osd_that_is_out_makes_no_shard_larger() -> None:
    cluster = TwoPools()
    cluster.look()
    cluster.mark_out(4).osd(4, up=0, state=["exists"]).pg(
        "2.4", [4], num_bytes=2 * DATA, objects=1000, state="down")
    cluster.without_statistics = [4]   # the mgr has none of an OSD that is out
    check_all_of_4_on_0(cluster)


def test_what_an_osd_told_of_a_pool_that_has_left_it_makes_no_shard_larger() -> None:
    cluster = TwoPools()
    cluster.told(4, 2, 1)   # osd.4 has deleted them, the row stays
    check_all_of_4_on_0(cluster)


def check_all_of_4_on_0(cluster: TwoPools) -> None:
    cluster.put_all_of_4_on_0()
    shards = SHARDS[0] + SHARDS[4]
    cluster.told(0, shards + 2, shards + 1)
    cluster.tell_more(SHARDS[4])
    assert cluster.ratio() == pytest.approx(2.0, rel=0.01)


@pytest.mark.parametrize("others", [0, 1])
def test_a_pool_of_which_no_osd_is_known_to_hold_all_is_as_large_as_all_osds_tell(
        others: int) -> None:
    """A mgr takes over while each OSD with shards of pool 1 deletes one. OSDs store three bytes for
    each logical one of that pool. `others`: OSDs beside those, of which all is known."""
    cluster = TwoPools()
    if others:
        cluster.put_all_of_4_on_0()
        cluster.tell_pools()
    ups = list(cluster.up.values())
    for osd in cluster.osds:
        deletes = int(osd < len(SHARDS) - others)
        count = ups.count([osd])   # one of them of pool 2, twice as large
        cluster.told(osd, 3 * (count - 1 + deletes) + 2, count + deletes)
    cluster.tell(1, lambda count: 3 * (count + DATA) if count else 0)
    assert 1.0 / cluster.ratio() == pytest.approx(1.5, rel=0.15)


@pytest.mark.parametrize("is_up", [True, False])
def test_old_figures_of_an_osd_make_no_shard_larger(is_up: bool) -> None:
    """The last figures of osd.0 are from when it deleted as many shards of pool 1 as it has."""
    cluster = TwoPools()
    cluster.tell_more(SHARDS[0])
    stale: List[int] = [0]
    if not is_up:
        cluster.osd(0, up=0, state=["exists"])
        stale = []
    assert cluster.ratio(stale_osds=frozenset(stale)) == pytest.approx(2.0, rel=0.01)


def thrice(count: int) -> int:
    return 3 * count


def recovering(cluster: Cluster, pgids: Sequence[str]) -> None:
    """These PGs, in the next look."""
    cluster.records = dict(cluster.records)
    for pgid in pgids:
        cluster.records[pgid] = cluster.records[pgid]._replace(state="active+recovering+degraded")


def test_the_size_of_shards_stays_between_its_bounds_while_copies_are_missing() -> None:
    """Half of the PGs recover: so much of them is there as there may be."""
    cluster = Deleting()
    for allocated, expected in ((1.5, 1.5), (1.3, 1.5), (0.6, 1.2)):
        for osd, shards in enumerate(SHARDS):
            cluster.told(osd, allocated * shards, shards)
        size = cluster.look().pgs["1.1"].shard_bytes
        assert size == pytest.approx(expected * DATA, rel=0.01)
        recovering(cluster, list(cluster.up)[1::2])


@pytest.mark.parametrize(("deleted", "expected"), [(1, 2 / 3), (2, 6.0)])
def test_what_every_osd_deletes_may_be_of_any_pool(deleted: int, expected: float) -> None:
    """A mgr takes over while each OSD deletes a shard of a pool that takes thrice its bytes."""
    cluster = TwoPools()
    for osd, shards in enumerate(SHARDS):
        cluster.told(osd, 3 * (shards + 3), shards + 2)
    cluster.tell(deleted, lambda count: 3 * (count + deleted * DATA))
    cluster.tell(3 - deleted, int)
    assert cluster.ratio() == pytest.approx(expected, rel=0.01)


def test_a_pool_is_as_large_as_told_although_no_copy_is_certainly_whole() -> None:
    cluster = TwoPools()
    cluster.tell(2, thrice)
    recovering(cluster, [f"2.{osd}" for osd in cluster.osds])
    assert cluster.ratio() == pytest.approx(6.0, rel=0.01)


def test_what_has_left_an_osd_is_as_large_as_that_osd_tells() -> None:
    """The only shard of pool 2 on osd.0 has gone to osd.1 and is not deleted yet. Since then OSDs
    store four bytes for each."""
    cluster = TwoPools()
    cluster.tell(2, thrice)
    cluster.look()
    cluster.told(0, SHARDS[0] + 2, SHARDS[0] + 1)
    cluster.told(1, SHARDS[1] + 4, SHARDS[1] + 2)
    cluster.epoch = 101
    cluster.up = {**cluster.up, "2.0": [1]}
    cluster.tell_pools()
    cluster.tell(2, lambda count: 4 * (count or 2 * DATA))   # osd.0 has none by the map
    assert cluster.ratio() == pytest.approx(8.0, rel=0.01)


def test_shards_of_a_pool_that_is_gone_are_as_large_as_they_were() -> None:
    cluster = TwoPools()
    cluster.tell(2, thrice)
    for osd, shards in enumerate(SHARDS):
        cluster.osd(osd, used=GIB + (shards + 6) * DATA)
    cluster.look()
    del cluster.pools[2]
    cluster.up = {pgid: up for pgid, up in cluster.up.items() if pgid[0] == "1"}
    cluster.epoch = 101
    assert cluster.look().osds[1].undeleted_bytes == pytest.approx(6 * DATA, rel=0.05)

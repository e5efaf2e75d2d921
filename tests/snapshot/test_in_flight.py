"""What is in flight, however Ceph carries it, and what is truly short of copies."""
from __future__ import annotations

from collections import Counter
from typing import Any, Dict, Optional, Sequence, Tuple

import pytest
from tests.snapshot.pg_lives import ASYNC, BACKFILL, IN_PLACE, MOVING, Lives, pg_status
from tests.support.clusters.unit_cluster import NONE, Cluster, hosts
from tests.support.placed import pairs
from tests.support.tables import rows

from equilibrium_mgr.snapshot.builder import SnapshotBuilder
from equilibrium_mgr.snapshot.model import Snapshot


def shards_in_flight(snapshot: Snapshot) -> Tuple[Dict[int, int], Dict[int, int]]:
    """(coming, leaving) per OSD; every shard is 1 or 3 GiB."""
    coming: Dict[int, int] = Counter()
    leaving: Dict[int, int] = Counter()
    for pg in snapshot.pgs.values():
        gains, losses = snapshot.transfers(pg)
        coming.update(Counter(gains))
        leaving.update(Counter(losses))
    return coming, leaving


@pytest.mark.parametrize("seed", range(30))
def test_in_flight_is_what_the_history_of_events_says(seed: int) -> None:
    lives, builder = Lives(seed), SnapshotBuilder()
    builder.build(lives.reading())
    ways = set()
    for _ in range(40):
        lives.step()
        snapshot = builder.build(lives.reading())
        assert shards_in_flight(snapshot) == (lives.coming(), lives.leaving())
        # though Ceph calls PGs so that move
        assert {state.degraded for state in snapshot.pool_states.values()} <= {0}
        ways |= {life.way for life in lives.lives if life.phase == MOVING}
    assert ways == {BACKFILL, ASYNC, IN_PLACE}


@pytest.mark.parametrize("seed", range(10))
def test_a_new_mgr_sees_what_is_in_flight_but_for_recovery_in_place(seed: int) -> None:
    """It has no memory: acting sets and upmap items tell most of it."""
    lives = Lives(seed)
    for _ in range(25):
        lives.step()
    snapshot = SnapshotBuilder().build(lives.reading())
    for life in lives.lives:
        gains, losses = snapshot.transfers(snapshot.pgs[life.pgid])
        if life.phase != MOVING:
            assert gains == losses == ()
        elif life.way == BACKFILL:
            assert (sorted(gains), sorted(losses)) == (sorted(life.gains()), sorted(life.losses()))
        elif life.way == ASYNC:
            assert set(gains) == set(life.gains())
            assert set(losses) <= set(life.raw)


class Watched:
    """PG 1.0 on osd.6, osd.2 and osd.1, and a mgr that has seen it clean."""

    def __init__(self, cluster: Optional[Cluster] = None) -> None:
        self.builder = SnapshotBuilder()
        self.cluster = cluster or Cluster(hosts(8)).pool(1, size=3).pg("1.0", "6 2 1")
        if cluster is None:
            assert not self.look().in_flight()

    def look(self, **fields: Any) -> Snapshot:
        return self.builder.build(self.cluster.reading()._replace(**fields))

    def degraded(self) -> int:
        return self.look().pool_states[1].degraded

    def move(self, state: str, reported: int, acting: Sequence[int] = (),
             up: Sequence[int] = (6, 2, 3)) -> None:
        """In the next epoch it is wanted elsewhere, and has reported this state."""
        cluster = self.cluster
        cluster.epoch += 1
        cluster.up = {"1.0": list(up)}
        cluster.acting = {"1.0": list(acting)} if acting else {}
        self.report(state, reported)

    def report(self, state: str, reported: int) -> None:
        records = self.cluster.records
        records["1.0"] = records["1.0"]._replace(state=state, reported_epoch=reported)


@pytest.fixture
def watched() -> Watched:
    return Watched()


@pytest.fixture
def unsettled(watched: Watched) -> Watched:
    """Clean as of epoch 103; it was wanted elsewhere from one of the epochs 101 to 110 on."""
    watched.move("active+clean", 103)
    watched.cluster.epoch = 110
    return watched


LOG_RECOVERY = [
    ("active+recovering+undersized+remapped", (6, 2)),
    ("active+recovery_wait+degraded", ()),
    ("active+recovering+degraded", ())]


@pytest.mark.parametrize("state, acting", LOG_RECOVERY)
def test_a_pg_whose_source_goes_down_meanwhile_is_short_of_copies(
        watched: Watched, state: str, acting: Tuple[int, ...]) -> None:
    watched.move(state, 101, acting)
    watched.look()
    watched.cluster.osd(1, up=0, state=["exists"])
    assert watched.degraded() == 1
    watched.cluster.osd(1, up=1, up_from=105, state=["exists", "up"])   # it has missed writes
    assert watched.degraded() == 1
    watched.move("active+clean", 110)
    watched.cluster.epoch = 110
    assert not watched.look().pool_states.get(1, (0, 0))[1]


def test_a_fallen_osd_is_filled_anew_by_another(watched: Watched) -> None:
    """It holds its copy no longer; the new one gains, and the PG is short of copies."""
    watched.cluster.osd(1, up=0, state=["exists"]).mark_out(1)
    watched.move("active+recovering+undersized+degraded+remapped", 101, (6, 2))
    snapshot = watched.look()
    assert snapshot.transfers(snapshot.pgs["1.0"]) == ((3,), ())
    assert snapshot.pool_states[1].degraded == 1


def test_an_osd_that_is_backfilled_is_taken_for_empty(watched: Watched) -> None:
    """It may have been replaced."""
    watched.move("active+undersized+degraded+remapped+backfilling", 101, (6, 2), (6, 2, 1))
    snapshot = watched.look()
    assert snapshot.transfers(snapshot.pgs["1.0"])[0] == (1,)
    assert snapshot.pool_states[1].degraded == 1


@pytest.mark.parametrize("state", ["active+undersized+degraded", "active+recovering+degraded",
                                   "active+undersized"])
def test_what_was_degraded_before_it_is_looked_at_is_degraded(state: str) -> None:
    """Its report may be older than the map, whose epochs pass for other reasons."""
    cluster = Cluster(hosts(8)).pool(1, size=3).pg("1.0", "6 2 1", state=state, reported=90)
    cluster.pg_status = pg_status(cluster)
    watched = Watched(cluster)
    for _ in range(3):
        assert watched.degraded() == 1
        cluster.epoch += 1


@pytest.mark.parametrize("items, state, leaving, before", rows("""
1>3 7>5  recovery_wait                [1, 7]
1>3 7>5  recovery_wait                [7]     1>3
1>3 7>5  recovery_wait+backfill_wait  [7]
0>2      recovering                   [7]     0>2 5>7
"""))
def test_a_new_mgr_knows_which_items_the_last_one_has_changed(
        items: str, state: str, leaving: str, before: str) -> None:
    """While the log fills osd.5, osd.3 serves although it may lack its shard."""
    cluster = Cluster(hosts(8)).pool(1, size=4, k=2).pg(
        "1.0", "6 2 3 5", items=items, acting=(6, 2, 3, NONE),
        state=f"active+{state}+undersized+degraded+remapped")
    reading = cluster.reading()._replace(sent={"1.0": pairs(before)})
    found = shards_in_flight(SnapshotBuilder().build(reading))[1]
    assert str(sorted(found)) == leaving


@pytest.mark.parametrize("k, acting", [(0, (6, 2)), (2, (6, 2, NONE))])
@pytest.mark.parametrize("is_known", [False, True])
@pytest.mark.parametrize("state", ["active+undersized+degraded+remapped+backfill_wait",
                                   "active+recovery_wait+undersized+degraded+remapped",
                                   "active+recovering+undersized+degraded+remapped"])
def test_an_upmap_item_of_long_ago_makes_no_move_of_a_lost_copy(
        state: str, is_known: bool, k: int, acting: Sequence[int]) -> None:
    """The item's target has restarted, or has been replaced; osd.1 gave its copy away long ago."""
    watched = Watched(Cluster(hosts(8)).pool(1, size=3, k=k).pg("1.0", "6 2 3", items="1>3"))
    if is_known:
        assert not watched.look().in_flight()
    watched.move(state, 101, acting)
    snapshot = watched.look()
    assert snapshot.pool_states[1].degraded == 1
    assert not snapshot.osds[1].outbound_bytes


def test_a_report_between_two_readings_is_believed_when_the_pg_must_have_peered(
        unsettled: Watched) -> None:
    assert unsettled.look().in_flight()
    assert not unsettled.look(taken_at=1130.0).in_flight()


def test_what_moved_and_arrived_while_nobody_looked_is_not_on_its_way(unsettled: Watched) -> None:
    """Off for an hour: a plan made now must not count the PG's bytes as still to come."""
    assert not unsettled.look(taken_at=4600.0).in_flight()


def test_how_long_it_takes_until_a_remapped_pg_shows_whether_it_moves(unsettled: Watched) -> None:
    first = unsettled.look(taken_at=1060.0, changed_at=1050.0)
    assert first.unsettled_seconds == 10.0
    unsettled.cluster.epoch = 111      # the map goes on, and tells nothing of this PG
    later = unsettled.look(taken_at=1075.0, changed_at=1074.0)
    assert later.unsettled_seconds == 5.0 and later.in_flight()
    last = unsettled.look(taken_at=1081.0, changed_at=1080.0)
    assert last.unsettled_seconds == 0.0 and not last.in_flight()


@pytest.mark.parametrize("meanwhile", ["remapped+peering", "unknown", "activating+remapped",
                                       "stale+active+undersized+remapped"])
@pytest.mark.parametrize("told_first", [True, False])
def test_a_lost_copy_stays_lost_while_its_pg_peers(meanwhile: str, told_first: bool) -> None:
    """osd.6 was replaced; long ago its PGs were upmapped to it from osd.1, which holds nothing."""
    lost = "active+undersized+degraded+remapped+backfill_wait"
    cluster = Cluster(hosts(8)).pool(1, size=3)
    watched = Watched(cluster.pg("1.0", "6 2 3", acting="2 3", items="1>6", state=lost))
    for epoch, state in enumerate([lost] * told_first + [meanwhile, lost, lost], cluster.epoch):
        cluster.epoch = epoch
        watched.report(state, epoch)
        snapshot = watched.look()
        assert snapshot.osds[1].outbound_bytes == 0
    assert snapshot.pool_states[1].degraded == 1


def test_a_clock_that_is_set_back_does_not_keep_plans_waiting(unsettled: Watched) -> None:
    unsettled.look(taken_at=9000.0, changed_at=8999.0)
    unsettled.cluster.epoch = 111
    assert unsettled.look(taken_at=5400.0, changed_at=9001.0).unsettled_seconds <= 20.0


def test_what_was_believed_to_have_arrived_may_yet_show_that_it_moves(unsettled: Watched) -> None:
    """Nobody has looked for long; the PG reported, and was upmapped a moment ago."""
    unsettled.cluster.epoch = 104
    assert unsettled.look(taken_at=4600.0, changed_at=4597.0).unsettled_seconds > 0.0
    unsettled.report("active+recovering+degraded", 104)
    later = unsettled.look(taken_at=4621.0, changed_at=4597.0)
    assert later.transfers(later.pgs["1.0"]) == ((3,), (1,))
    assert later.pool_states.get(1) is None or later.pool_states[1].degraded == 0


@pytest.mark.parametrize("was_seen", [True, False])
def test_an_osd_with_another_disk_has_nothing_of_what_it_held(watched: Watched,
                                                              was_seen: bool) -> None:
    """`was_seen`: while the PG already moved, and its old OSD was down."""
    cluster = watched.cluster.osd(1, uuid="first")
    watched.look()
    watched.move("active+recovery_wait+undersized+degraded+remapped", 101, (6, 2))
    if was_seen:
        cluster.osd(1, up=0)
        watched.look()
    cluster.osd(1, up=1, uuid="second")
    snapshot = watched.look()
    assert 1 not in snapshot.pgs["1.0"].holders
    assert snapshot.pool_states[1].degraded == 1


def test_a_pg_that_moves_by_its_acting_set_is_settled(unsettled: Watched) -> None:
    unsettled.cluster.acting["1.0"] = [6, 2, 1]
    snapshot = unsettled.look(taken_at=1060.0, changed_at=1059.0)
    assert snapshot.in_flight() and snapshot.unsettled_seconds == 0.0


def test_what_moves_since_a_moment_ago_is_on_its_way_though_nobody_looked_for_long(
        watched: Watched) -> None:
    """Its report is as old as the last look: it says nothing of the new up set."""
    watched.move("active+clean", 100)
    assert watched.look(taken_at=4600.0).in_flight()


def test_a_failed_reading_does_not_disturb_the_memory(watched: Watched) -> None:
    watched.move("active+clean", 100)
    with pytest.raises(KeyError):
        watched.look(osd_map={"epoch": 101})
    assert watched.look().in_flight()

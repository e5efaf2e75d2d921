"""Per-OSD limits, the share in transit, busy PGs, cooldown, nearfull targets, and relief."""
from __future__ import annotations

import random
from typing import Any, Dict, List, Optional, Sequence

import pytest
from tests.support.clusters.unit_cluster import Cluster, change_of, hosts
from tests.support.units import GIB

from equilibrium_mgr.execution.batch_selection import Decision, next_batch
from equilibrium_mgr.execution.osd_traffic import osd_traffic
from equilibrium_mgr.execution.pending_moves import PendingMove, PendingMoves
from equilibrium_mgr.execution.throttle_state import ThrottleLimits
from equilibrium_mgr.plan.model import PgChange
from equilibrium_mgr.planner.planner import make_plan
from equilibrium_mgr.snapshot import immovable_reasons as reasons

FREE = ThrottleLimits(max_misplaced_ratio=1.0, max_moves=1000, fill_limit=0.0, misplaced_copies=0,
              in_flight=())
Entries = Optional[Dict[str, PendingMove]]


def pgs(count: int = 10, num_bytes: int = GIB, **fields: Any) -> Cluster:
    """PGs 1.0, 1.1, … on osd.0 and osd.1 of eight."""
    cluster = Cluster(hosts(8)).pool(1, size=2)
    for ps in range(count):
        cluster.pg(f"1.{ps:x}", [0, 1], num_bytes=num_bytes, objects=10, **fields)
    return cluster


def wanted(targets: Sequence[int]) -> List[PgChange]:
    """1.0, 1.1, … leave osd.0, each for its target."""
    return [change_of(f"1.{ps:x}", (0, 1), (osd, 1)) for ps, osd in enumerate(targets)]


def batch(cluster: Cluster, changes: Sequence[PgChange], limits: ThrottleLimits = FREE,
          troubled: Optional[Dict[int, str]] = None, pending: Entries = None) -> Decision:
    snapshot = cluster.snapshot()
    return next_batch(snapshot, changes, limits, troubled or {},
                      osd_traffic(snapshot, pending or {}))


def sent(decision: Decision) -> List[str]:
    return [change.pgid for change in decision.send]


# -- shards per OSD --------------------------------------------------------------------------------

def test_shards_leaving_an_osd_are_limited() -> None:
    decision = batch(pgs(), wanted([2, 3, 4, 5, 6]), FREE._replace(max_backfills=3))
    assert sent(decision) == ["1.0", "1.1", "1.2"] and decision.throttled
    assert decision.waiting_for == (
        "osd.0 has 3 shards leaving already (max_backfills_per_osd)")


def test_shards_coming_to_an_osd_are_limited() -> None:
    cluster = Cluster(hosts(8)).pool(1, size=1)
    changes = []
    for ps in range(5):
        cluster.pg(f"1.{ps:x}", [ps], objects=10)
        changes.append(change_of(f"1.{ps:x}", [ps], [7]))
    decision = batch(cluster, changes, FREE._replace(max_backfills=2))
    assert sent(decision) == ["1.0", "1.1"]
    assert decision.waiting_for == "osd.7 has 2 shards coming already (max_backfills_per_osd)"


def test_directions_are_counted_apart() -> None:
    """Two come to osd.2 and two leave it."""
    cluster = pgs(2).pg("1.a", [2, 1], objects=1).pg("1.b", [2, 1], objects=1)
    changes = wanted([2, 2]) + [change_of("1.a", (2, 1), (3, 1)), change_of("1.b", (2, 1), (4, 1))]
    assert len(batch(cluster, changes, FREE._replace(max_backfills=2)).send) == 4


def test_moves_of_others_count() -> None:
    cluster = pgs().pg("1.a", [5, 6], acting=[0, 6]).pg("1.b", [5, 6], acting=[0, 6])
    decision = batch(cluster, wanted([2, 3, 4]), FREE._replace(max_backfills=3))
    assert sent(decision) == ["1.0"]
    decision = batch(cluster, wanted([5, 3, 4]), FREE._replace(max_backfills=2))
    assert sent(decision) == []


def test_own_moves_count_that_ceph_does_not_show_yet() -> None:
    cluster = pgs().pg("1.9", [5, 1])         # sent a moment ago: acting is up still
    pending = {"1.9": PendingMove(10, 1, GIB, 101, 990.0, (5,), (0,))}
    limits = FREE._replace(max_backfills=1)
    assert sent(batch(cluster, wanted([2]), limits)) == ["1.0"]
    assert sent(batch(cluster, wanted([2]), limits, pending=pending)) == []


# -- bytes in transit ------------------------------------------------------------------------------

def test_share_of_an_osd_in_transit() -> None:
    """10 GiB of 100 may leave osd.0."""
    decision = batch(pgs(num_bytes=4 * GIB), wanted([2, 3, 4]),
                     FREE._replace(max_transit_ratio=0.1))
    assert sent(decision) == ["1.0", "1.1"]
    assert decision.throttled
    assert not decision.above_transit_limit
    assert decision.waiting_for == (
        "osd.0 would have more than 0.100 of its size in transit (max_transit_ratio)")


def test_share_coming_to_an_osd() -> None:
    cluster = Cluster(hosts(8)).pool(1, size=1)
    changes = []
    for ps in range(4):
        cluster.pg(f"1.{ps:x}", [ps], num_bytes=4 * GIB, objects=10)
        changes.append(change_of(f"1.{ps:x}", [ps], [7]))
    assert len(batch(cluster, changes, FREE._replace(max_transit_ratio=0.1)).send) == 2


def test_what_has_been_copied_is_in_transit_no_more() -> None:
    cluster = pgs(num_bytes=4 * GIB)
    cluster.pg("1.a", [5, 6], num_bytes=8 * GIB, acting=[0, 6], uncopied_ratio=0.25)
    limits = FREE._replace(max_transit_ratio=0.1)
    assert sent(batch(cluster, wanted([2, 3, 4]), limits)) == ["1.0", "1.1"]


def test_one_big_shard_may_go_alone_and_that_is_told() -> None:
    limits = FREE._replace(max_transit_ratio=0.1)
    decision = batch(pgs(3, num_bytes=20 * GIB), wanted([2, 3, 4]), limits)
    assert sent(decision) == ["1.0"] and decision.above_transit_limit == "1.0"
    busy = pgs(3, num_bytes=20 * GIB).pg("1.a", [5, 2], num_bytes=GIB, acting=[6, 2])
    assert sent(batch(busy, wanted([5]), limits)) == []      # something else comes to osd.5
    leaving = pgs(3, num_bytes=20 * GIB).pg("1.a", [5, 2], num_bytes=GIB, acting=[6, 2])
    assert sent(batch(leaving, wanted([6]), limits)) == []   # or leaves osd.6


# -- fill ------------------------------------------------------------------------------------------

def test_nearfull_osds_are_no_targets() -> None:
    cluster = pgs(2).osd(2, used=85 * GIB)
    decision = batch(cluster, wanted([2, 3]))
    assert sent(decision) == ["1.1"] and decision.waiting_for == "osd.2 is nearfull"
    assert [change.pgid for change, _ in decision.full] == ["1.0"]


def test_what_ceph_does_not_show_yet_fills_its_target() -> None:
    cluster = pgs(num_bytes=GIB).osd(2, used=80 * GIB).pg("1.9", [2, 1], num_bytes=8 * GIB)
    pending = {"1.9": PendingMove(10, 1, 8 * GIB, 101, 990.0, (2,), (0,))}
    assert sent(batch(cluster, wanted([2]))) == ["1.0"]
    assert sent(batch(cluster, wanted([2]), pending=pending)) == []


def test_what_has_just_arrived_counts_until_its_osd_has_reported_it() -> None:
    cluster = pgs(2).osd(2, used=80 * GIB)
    ours = PendingMoves()
    ours.add(change_of("1.1", (0, 1), (2, 1)), pgs(2, num_bytes=8 * GIB).snapshot(), 990.0)
    cluster.pg("1.1", [2, 1], items=[(0, 2)], reported=101)
    snapshot = cluster.snapshot()
    ours.remove_arrived(snapshot)
    assert ours.entries == {}

    def refused() -> bool:
        on_its_way = osd_traffic(snapshot, ours.entries, ours.arrivals)
        return not next_batch(snapshot, wanted([2]), FREE, {}, on_its_way).send
    assert refused()
    ours.remove_arrived(snapshot._replace(taken_at=1061.0))
    assert not refused()


# -- PGs that have to wait -------------------------------------------------------------------------

@pytest.mark.parametrize("state, words", [
    ("active+clean+scrubbing", "scrubbed"), ("active+clean+scrubbing+deep", "scrubbed"),
    ("active+clean+scrubbing+deep+repair", "scrubbed"), ("active+clean+repair", "repaired"),
    ("active+clean+snaptrim", "snap-trimmed")])
def test_busy_pgs_wait(state: str, words: str) -> None:
    cluster = pgs(2).pg("1.0", [0, 1], objects=10, state=state)
    decision = batch(cluster, wanted([2, 3]))
    assert sent(decision) == ["1.1"] and decision.later == wanted([2])
    assert decision.waiting_for == f"pg 1.0 is being {words}" and not decision.throttled


@pytest.mark.parametrize("state, reason", [
    ("active+clean+inconsistent", reasons.INCONSISTENT),
    ("active+clean+scrubbing+deep+inconsistent", reasons.INCONSISTENT),
    ("active+clean+failed_repair", reasons.INCONSISTENT), ("stale+active+clean", reasons.STALE)])
def test_pgs_of_which_nobody_knows_the_good_copies_stay(state: str, reason: str) -> None:
    cluster = pgs(2).pg("1.0", [0, 1], objects=10, state=state)
    decision = batch(cluster, wanted([2, 3]))
    assert sent(decision) == ["1.1"] and decision.later == wanted([2])
    assert decision.waiting_for == reason
    assert "1.0" not in {move.pgid for move in make_plan(cluster.snapshot()).moves}


@pytest.mark.parametrize("state", ["active+clean+snaptrim_wait", "active+clean+snaptrim_error",
                                   "active+clean+laggy"])
def test_pgs_that_may_stay_so_for_long_do_not(state: str) -> None:
    assert sent(batch(pgs(1, state=state), wanted([2]))) == ["1.0"]


@pytest.mark.parametrize("stale", [0, 2])
def test_osds_without_recent_statistics(stale: int) -> None:
    snapshot = pgs(1).snapshot()._replace(stale_osds=frozenset((stale,)))
    decision = next_batch(snapshot, wanted([2]), FREE, {})
    assert decision.send == [] and decision.waiting_for == (
        f"osd.{stale} has not reported its statistics for too long")


def test_pg_that_was_moved_a_short_while_ago() -> None:
    limits = FREE._replace(cooling={"1.0": 100.0})
    decision = batch(pgs(2), wanted([2, 3]), limits)
    assert sent(decision) == ["1.1"] and decision.throttled
    assert decision.waiting_for == (
        "pg 1.0 was moved a short while ago and stays until 1970-01-01 00:19 UTC (pg_cooldown)")
    overfull = pgs(2).osd(0, used=86 * GIB)
    assert sent(batch(overfull, wanted([2, 3]), limits)) == ["1.0", "1.1"]


# -- relief ----------------------------------------------------------------------------------------

DEGRADED = {1: "pool 'pool1' has 3 PGs degraded"}
RELIEF = FREE._replace(relievable_osds=(0,), degraded_pools=(1,))


def test_full_osds_are_relieved_while_pgs_are_degraded() -> None:
    changes = wanted([2]) + [change_of("1.1", (0, 1), (0, 3)), change_of("1.2", (0, 1), (4, 5))]
    decision = batch(pgs(), changes, RELIEF, DEGRADED)
    assert sent(decision) == ["1.0"]          # the others take shards off osd.1 as well
    assert decision.waiting_for == DEGRADED[1]


@pytest.mark.parametrize("limits", [FREE, RELIEF._replace(relievable_osds=()),
                                    RELIEF._replace(degraded_pools=())])
def test_no_relief(limits: ThrottleLimits) -> None:
    assert batch(pgs(), wanted([2]), limits, DEGRADED).send == []


@pytest.mark.parametrize("state", ["active+undersized+degraded", "active+recovering+degraded",
                                   "peering"])
def test_degraded_pgs_themselves_are_left_alone(state: str) -> None:
    assert batch(pgs(state=state), wanted([2]), RELIEF, DEGRADED).send == []


def test_relief_keeps_the_other_limits() -> None:
    limits = RELIEF._replace(max_backfills=1)
    assert sent(batch(pgs(), wanted([2, 3]), limits, DEGRADED)) == ["1.0"]


# -- all of them -----------------------------------------------------------------------------------

@pytest.mark.parametrize("seed", range(150))
def test_no_limit_is_ever_passed(seed: int) -> None:
    rng = random.Random(seed)
    cluster = Cluster(hosts(8)).pool(1, size=2)
    changes, pending = [], {}
    for ps in range(rng.randint(1, 30)):
        osds = rng.sample(range(8), 3)
        pgid, size = f"1.{ps:x}", rng.randrange(12 * GIB)
        kind = rng.random()
        if kind < 0.15:
            cluster.pg(pgid, osds[:2], size, acting=[osds[2], osds[1]], uncopied_ratio=rng.random())
        elif kind < 0.3:
            cluster.pg(pgid, osds[:2], size)
            pending[pgid] = PendingMove(1, 1, size, 101, 990.0, (osds[0],), (osds[2],))
        else:
            cluster.pg(pgid, osds[:2], size)
            changes.append(change_of(pgid, osds[:2], [osds[2], osds[1]]))
    for osd in range(8):
        cluster.osd(osd, used=rng.randrange(90 * GIB))
    limits = FREE._replace(max_backfills=rng.choice((0, 1, 2, 4)),
                           max_transit_ratio=rng.choice((0.0, 0.05, 0.1)))
    check(cluster, changes, limits, pending)


def check(cluster: Cluster, changes: List[PgChange], limits: ThrottleLimits,
          pending: Dict[str, PendingMove]) -> None:
    snapshot = cluster.snapshot()
    decision = batch(cluster, changes, limits, pending=pending)
    before, after = osd_traffic(snapshot, pending), osd_traffic(snapshot, pending)
    for change in decision.send:
        size = snapshot.pgs[change.pgid].shard_bytes
        after.add(((change.up_after[0], size),), ((change.up_before[0], size),))
    for osd in snapshot.osds.values():
        old, new = before.of(osd.id), after.of(osd.id)
        for was, now in ((old.shards_in, new.shards_in), (old.shards_out, new.shards_out)):
            assert now <= max(was, limits.max_backfills or 1000)
        share = (limits.max_transit_ratio or 10.0) * osd.size_bytes
        idle = not old.shards_in and not old.shards_out
        for was, now, shards in ((old.bytes_in, new.bytes_in, new.shards_in),
                                 (old.bytes_out, new.bytes_out, new.shards_out)):
            assert now <= max(was, share) or (idle and shards == 1)
        if new.shards_in > old.shards_in:
            assert osd.used_bytes < 0.85 * osd.size_bytes
            assert osd.used_bytes + new.bytes_in <= 0.88 * osd.size_bytes

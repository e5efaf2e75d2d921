"""Every shard in flight: from where to where, how much is left, its state, and who moves it."""
from __future__ import annotations

from typing import Container, List, Mapping, Optional, Sequence, Tuple

import pytest
from tests.support.clusters.unit_cluster import Cluster, change_of, hosts
from tests.support.units import GIB

from equilibrium_mgr.execution.pending_moves import PendingMoves
from equilibrium_mgr.observation.cluster_view import ClusterView, make_view
from equilibrium_mgr.observation.movements import (
    CRUSH, PG_NUM, PLAN, RECOVERY, UPMAP, Movement, MovingTotals, by_state)
from equilibrium_mgr.snapshot.builder import SnapshotBuilder
from equilibrium_mgr.snapshot.immovable_reasons import TO_MERGE, Immovable
from equilibrium_mgr.snapshot.model import Snapshot

FILLING = "active+remapped+backfilling"
WAITING = "active+remapped+backfill_wait"


def pool_of_two() -> Cluster:
    return Cluster(hosts(6)).pool(1, size=2)


def view_of(snapshot: Snapshot, pending: Optional[PendingMoves] = None,
            sent: Container[str] = (), before: Optional[ClusterView] = None) -> ClusterView:
    return make_view(snapshot, None, pending or PendingMoves(), 0.05, False, sent, before)


def found(cluster: Cluster, sent: Container[str] = ()) -> Sequence[Movement]:
    return view_of(cluster.snapshot(), sent=sent).movements


def routes(shards: Sequence[Movement]) -> List[Tuple[Optional[int], Optional[int], str]]:
    return [(shard.source, shard.target, shard.origin) for shard in shards]


def ours(moved: Tuple[int, ...] = (2, 1)) -> PendingMoves:
    """1.0 was sent from (0, 1) to `moved`."""
    pending = PendingMoves()
    pending.add(change_of("1.0", (0, 1), moved), pool_of_two().pg("1.0", [0, 1]).snapshot(), 990.0)
    return pending


def moved_by_item(state: str = FILLING, uncopied: float = 0.25) -> Cluster:
    return pool_of_two().pg("1.0", [2, 1], 8 * GIB, items=[(0, 2)], acting=[0, 1], state=state,
                            uncopied_ratio=uncopied)


def test_a_shard_that_a_plan_moves() -> None:
    view = view_of(moved_by_item().snapshot(), ours())
    assert view.movements == (
        Movement("1.0", 1, 0, 2, 8 * GIB, 2 * GIB, "backfilling", PLAN),)
    assert view.moving == MovingTotals(1, 2 * GIB, by_state(view.movements))


def test_what_was_sent_and_does_not_show_yet_is_peering() -> None:
    unseen = pool_of_two().pg("1.0", [0, 1], 8 * GIB).snapshot()
    (shard,) = view_of(unseen, ours()).movements
    assert shard == Movement("1.0", 1, 0, 2, GIB, GIB, "peering", PLAN)
    assert view_of(unseen, ours()).moving == MovingTotals(1, GIB, by_state([shard]))


@pytest.mark.parametrize("state", ["recovering", "recovery_wait"])
def test_what_the_last_mgr_sent_and_fills_by_the_log_is_in_the_state_that_ceph_tells(
        state: str) -> None:
    """Its up and acting sets are the same, so that the PG does not look as if it moved."""
    unseen = pool_of_two().pg("1.0", [0, 1], 8 * GIB, state=f"active+{state}").snapshot()
    assert view_of(unseen, ours()).moving.states == ({"state": state, "shards": 1},)


def test_an_upmap_item_of_somebody_else() -> None:
    view = view_of(moved_by_item(WAITING).snapshot())
    assert routes(view.movements) == [(0, 2, UPMAP)]
    assert view.moving == MovingTotals(
        0, 0, (), 1, 2 * GIB, by_state(view.movements))


def test_after_a_failover_the_cooldown_tells_what_the_last_mgr_sent() -> None:
    assert routes(found(moved_by_item(), sent={"1.0"})) == [(0, 2, PLAN)]
    removed = pool_of_two().pg("1.0", [0, 1], acting=[2, 1], state=FILLING)
    assert routes(found(removed, sent={"1.0"})) == [(2, 0, PLAN)]


def test_a_pg_that_was_sent_long_ago_may_be_moved_by_somebody_else() -> None:
    """This mgr has seen it at rest since: what it sent itself it would know."""
    builder = SnapshotBuilder()
    rest = view_of(builder.build(pool_of_two().pg("1.0", [0, 1]).reading()))
    after = view_of(builder.build(moved_by_item().reading()), sent={"1.0"}, before=rest)
    assert routes(after.movements) == [(0, 2, UPMAP)]


def test_crush_maps_a_pg_differently() -> None:
    assert routes(found(pool_of_two().pg("1.0", [3, 1], acting=[0, 1], state=FILLING))) == [
        (0, 3, CRUSH)]


@pytest.mark.parametrize("up", [[2, 1], [1, 2]])   # with another primary
def test_an_upmap_item_that_somebody_has_removed(up: List[int]) -> None:
    builder = SnapshotBuilder()
    rest = view_of(builder.build(pool_of_two().pg("1.0", up, items=[(0, 2)]).reading()))
    back = pool_of_two().pg("1.0", [0, 1], acting=[2, 1], state=FILLING)
    back.epoch = 101
    view = view_of(builder.build(back.reading()), before=rest)
    assert routes(view.movements) == [(2, 0, UPMAP)]


def test_pg_num_changes_until_the_last_shard_has_arrived() -> None:
    def moving(touched: Mapping[int, Immovable]) -> Snapshot:
        snapshot = pool_of_two().pg("1.0", [3, 1], acting=[0, 1], state=WAITING).snapshot()
        pool = snapshot.pools[1]._replace(touched=touched)
        return snapshot._replace(pools={1: pool})
    during = view_of(moving({0: TO_MERGE}))
    assert routes(during.movements) == [(0, 3, PG_NUM)]
    after = view_of(moving({}), before=during)
    assert routes(after.movements) == [(0, 3, PG_NUM)]


def test_a_lost_copy_is_recovered_from_no_osd() -> None:
    lost = pool_of_two().osd(0, up=0, state=["exists"]).mark_out(0)
    lost.pg("1.0", [3, 1], 4 * GIB, acting=[1], objects=10,
            state="active+undersized+degraded+remapped+backfilling")
    assert routes(found(lost)) == [(None, 3, RECOVERY)]


def test_a_shard_of_ours_is_ours_again_when_its_source_comes_back() -> None:
    lost = pool_of_two().osd(0, up=0, state=["exists"])
    lost.pg("1.0", [2, 1], items=[(0, 2)], acting=[1], objects=10,
            state="active+undersized+degraded+remapped+backfilling")
    during = view_of(lost.snapshot(), sent={"1.0"})
    assert routes(during.movements) == [(None, 2, RECOVERY)]
    after = view_of(moved_by_item().snapshot(), sent={"1.0"}, before=during)
    assert routes(after.movements) == [(0, 2, PLAN)]


_BY_LOG = "active+recovery_wait+undersized+degraded+remapped"


def filled_by_log(state: str = _BY_LOG) -> Cluster:
    """Ours from osd.0 to osd.2: the PG's log has all of it, and only osd.1 serves meanwhile."""
    return pool_of_two().pg("1.0", [2, 1], items=[(0, 2)], acting=[1], objects=10, state=state)


def test_after_a_failover_a_shard_that_is_filled_by_the_log_is_ours() -> None:
    """As osd.0 serves no more, no OSD seems to have the copy."""
    first = view_of(filled_by_log().snapshot(), sent={"1.0"})
    assert routes(first.movements) == [(0, 2, PLAN)]
    assert first.moving.states == ({"state": "recovery_wait", "shards": 1},)
    later = view_of(filled_by_log(_BY_LOG.replace("_wait", "ing")).snapshot(), before=first)
    assert routes(later.movements) == [(0, 2, PLAN)]


def test_a_shard_that_is_filled_by_the_log_is_not_ours() -> None:
    assert routes(found(filled_by_log())) == [(None, 2, RECOVERY)]      # not sent by us
    died = filled_by_log().osd(0, up=0, state=["exists"])
    assert routes(found(died, sent={"1.0"})) == [(None, 2, RECOVERY)]
    backfilled = filled_by_log(_BY_LOG.replace("recovery", "backfill"))
    assert routes(found(backfilled, sent={"1.0"})) == [(None, 2, RECOVERY)]
    seen = view_of(pool_of_two().pg("1.0", [2, 1], items=[(0, 2)]).snapshot())
    after = view_of(filled_by_log().snapshot(), sent={"1.0"}, before=seen)
    assert routes(after.movements) == [(None, 2, RECOVERY)]             # it had arrived


def erasure_coded() -> Cluster:
    return Cluster(hosts(8)).pool(2, size=4, k=2)


def test_erasure_coded_shards_move_position_by_position() -> None:
    swapped = erasure_coded().pg("2.0", [4, 1, 5, 3], 4 * GIB, acting=[0, 1, 2, 3], state=FILLING,
                                 items=[(0, 4), (2, 5)])
    assert routes(found(swapped)) == [(0, 4, UPMAP), (2, 5, UPMAP)]
    assert {shard.bytes for shard in found(swapped)} == {2 * GIB}


def test_two_shards_of_a_replicated_pg_are_paired_by_its_items() -> None:
    both = Cluster(hosts(8)).pool(1, size=3).pg(
        "1.0", [4, 5, 2], items=[(1, 4), (0, 5)], acting=[0, 1, 2], state=FILLING)
    assert sorted(routes(found(both))) == [(0, 5, UPMAP), (1, 4, UPMAP)]


@pytest.mark.parametrize("state, told", [
    ("active+undersized+degraded", "undersized"), ("active+undersized+remapped", "undersized"),
    ("active+degraded", "degraded"), ("active+remapped", "remapped"),
    ("active+undersized+degraded+remapped+backfill_wait", "backfill_wait"), ("down", "down"),
    ("unknown", "unknown"), ("peering", "peering"), ("active+clean", "peering")])
def test_peering_is_said_of_what_may_peer_alone(state: str, told: str) -> None:
    """A PG that has been undersized for long has peered."""
    assert [shard.state for shard in found(moved_by_item(state, 1.0))] == [told]

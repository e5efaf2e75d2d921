"""Every shard in flight: from where to where, how much is left, its state, and who moves it."""
from __future__ import annotations

from typing import Container, Mapping, Optional

import pytest
from tests.support.clusters.unit_cluster import Cluster, change_of, hosts
from tests.support.placed import osds, pairs
from tests.support.tables import rows
from tests.support.units import GIB

from equilibrium_mgr.execution.pending_moves import PendingMoves
from equilibrium_mgr.observation.cluster_view import ClusterView, make_view
from equilibrium_mgr.observation.movements import (
    PLAN, Movement, MovingTotals, by_state)
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


def moving(up: str, acting: str, items: str = "", state: str = FILLING,
           num_bytes: int = 8 * GIB, uncopied: float = 0.25, pgid: str = "1.0",
           cluster: Optional[Cluster] = None) -> Cluster:
    """1.0 on its way; `items` as `0>2 1>3`."""
    return (cluster or pool_of_two()).pg(
        pgid, osds(up), num_bytes, items=pairs(items), acting=osds(acting), state=state, objects=10,
        uncopied_ratio=uncopied)


def routes(view: ClusterView) -> str:
    """Each shard that moves, as `0>2 plan`."""
    return ", ".join(sorted(f"{shard.source}>{shard.target} {shard.origin}"
                            for shard in view.movements))


def found(cluster: Cluster, sent: Container[str] = (), before: Optional[ClusterView] = None) -> str:
    return routes(view_of(cluster.snapshot(), sent=sent, before=before))


def ours() -> PendingMoves:
    """1.0 was sent from (0, 1) to (2, 1)."""
    pending = PendingMoves()
    before = pool_of_two().pg("1.0", "0 1")
    pending.add(change_of("1.0", "0 1", "2 1"), before.snapshot(), 990.0)
    return pending


def at_rest(up: str = "0 1", items: str = "", state: str = "active+clean") -> Cluster:
    return moving(up, up, items, state)


def moved_by_item(state: str = FILLING, uncopied: float = 0.25) -> Cluster:
    return moving("2 1", "0 1", "0>2", state, uncopied=uncopied)


def test_a_shard_that_a_plan_moves() -> None:
    view = view_of(moved_by_item().snapshot(), ours())
    assert view.movements == (
        Movement("1.0", 1, 0, 2, 8 * GIB, 2 * GIB, "backfilling", PLAN),)
    assert view.moving == MovingTotals(1, 2 * GIB, by_state(view.movements))


def test_what_was_sent_and_does_not_show_yet_is_peering() -> None:
    view = view_of(at_rest().snapshot(), ours())
    assert view.movements == (Movement("1.0", 1, 0, 2, GIB, GIB, "peering", PLAN),)
    assert view.moving == MovingTotals(1, GIB, by_state(view.movements))


@pytest.mark.parametrize("state", ["recovering", "recovery_wait"])
def test_what_the_last_mgr_sent_and_fills_by_the_log_is_in_the_state_that_ceph_tells(
        state: str) -> None:
    """Its up and acting sets are the same, so that the PG does not look as if it moved."""
    unseen = at_rest(state=f"active+{state}").snapshot()
    assert view_of(unseen, ours()).moving.states == ({"state": state, "shards": 1},)


def test_an_upmap_item_of_somebody_else() -> None:
    view = view_of(moved_by_item(WAITING).snapshot())
    assert routes(view) == "0>2 upmap"
    assert view.moving == MovingTotals(
        0, 0, (), 1, 2 * GIB, by_state(view.movements))


def test_after_a_failover_the_cooldown_tells_what_the_last_mgr_sent() -> None:
    assert found(moved_by_item(), sent={"1.0"}) == "0>2 plan"
    assert found(moving("0 1", "2 1"), sent={"1.0"}) == "2>0 plan"


@pytest.mark.parametrize("up, acting, origin", [
    ("2 1", "0 1", "0>2 steered"), ("2 1", "1", "None>2 steered"),
    ("0 1", "1", "None>0 recovery"), ("0 1", "3 1", "3>0 crush")])
def test_a_shard_that_is_copied_anyway_to_an_osd_that_was_chosen(
        up: str, acting: str, origin: str) -> None:
    snapshot = moving(up, acting, "0>2" if "2" in up else "").snapshot()
    view = make_view(snapshot, None, PendingMoves(), 0.05, False, steered={"1.0"})
    assert routes(view) == origin


def test_a_pg_that_was_sent_long_ago_may_be_moved_by_somebody_else() -> None:
    """This mgr has seen it at rest since: what it sent itself it would know."""
    builder = SnapshotBuilder()
    rest = view_of(builder.build(at_rest().reading()))
    after = view_of(builder.build(moved_by_item().reading()), sent={"1.0"}, before=rest)
    assert routes(after) == "0>2 upmap"


@pytest.mark.parametrize("up", ["2 1", "1 2"])   # with another primary
def test_an_upmap_item_that_somebody_has_removed(up: str) -> None:
    builder = SnapshotBuilder()
    rest = view_of(builder.build(at_rest(up, "0>2").reading()))
    back = moving("0 1", "2 1")
    back.epoch = 101
    assert routes(view_of(builder.build(back.reading()), before=rest)) == "2>0 upmap"


def test_pg_num_changes_until_the_last_shard_has_arrived() -> None:
    def view(touched: Mapping[int, Immovable], before: Optional[ClusterView]) -> ClusterView:
        snapshot = moving("3 1", "0 1", state=WAITING).snapshot()
        pool = snapshot.pools[1]._replace(touched=touched)
        return view_of(snapshot._replace(pools={1: pool}), before=before)
    during = view({0: TO_MERGE}, None)
    assert routes(during) == routes(view({}, during)) == "0>3 pg_num"


_LOST = "active+undersized+degraded+remapped+backfilling"


def test_a_shard_of_ours_is_ours_again_when_its_source_comes_back() -> None:
    lost = pool_of_two().osd(0, up=0, state=["exists"])
    moving("2 1", "1", "0>2", _LOST, cluster=lost)
    during = view_of(lost.snapshot(), sent={"1.0"})
    assert routes(during) == "None>2 recovery"
    assert found(moved_by_item(), {"1.0"}, during) == "0>2 plan"


_BY_LOG = "active+recovery_wait+undersized+degraded+remapped"


def filled_by_log(state: str = _BY_LOG) -> Cluster:
    """Ours from osd.0 to osd.2: the PG's log has all of it, and only osd.1 serves meanwhile."""
    return moving("2 1", "1", "0>2", state)


def test_after_a_failover_a_shard_that_is_filled_by_the_log_is_ours() -> None:
    """As osd.0 serves no more, no OSD seems to have the copy."""
    first = view_of(filled_by_log().snapshot(), sent={"1.0"})
    assert routes(first) == "0>2 plan"
    assert first.moving.states == ({"state": "recovery_wait", "shards": 1},)
    assert found(filled_by_log(_BY_LOG.replace("_wait", "ing")), before=first) == "0>2 plan"


def test_a_shard_that_is_filled_by_the_log_is_not_ours() -> None:
    assert found(filled_by_log()) == "None>2 recovery"      # not sent by us
    died = filled_by_log().osd(0, up=0, state=["exists"])
    assert found(died, sent={"1.0"}) == "None>2 recovery"
    backfilled = filled_by_log(_BY_LOG.replace("recovery", "backfill"))
    assert found(backfilled, sent={"1.0"}) == "None>2 recovery"
    seen = view_of(at_rest("2 1", "0>2").snapshot())
    assert found(filled_by_log(), {"1.0"}, seen) == "None>2 recovery"             # it had arrived


def test_erasure_coded_shards_move_position_by_position() -> None:
    cluster = Cluster(hosts(8)).pool(2, size=4, k=2)
    moving("4 1 5 3", "0 1 2 3", "0>4 2>5", num_bytes=4 * GIB, pgid="2.0", cluster=cluster)
    view = view_of(cluster.snapshot())
    assert routes(view) == "0>4 upmap, 2>5 upmap"
    assert {shard.bytes for shard in view.movements} == {2 * GIB}


def test_two_shards_of_a_replicated_pg_are_paired_by_its_items() -> None:
    cluster = Cluster(hosts(8)).pool(1, size=3)
    both = moving("4 5 2", "0 1 2", "1>4 0>5", cluster=cluster)
    assert found(both) == "0>5 upmap, 1>4 upmap"


@pytest.mark.parametrize("told, state", rows("""
undersized     active+undersized+degraded
undersized     active+undersized+remapped
degraded       active+degraded
remapped       active+remapped
backfill_wait  active+undersized+degraded+remapped+backfill_wait
down           down
unknown        unknown
peering        peering
peering        active+clean
"""))
def test_peering_is_said_of_what_may_peer_alone(told: str, state: str) -> None:
    """A PG that has been undersized for long has peered."""
    shard, = view_of(moved_by_item(state, 1.0).snapshot()).movements
    assert shard.state == told

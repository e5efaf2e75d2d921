"""While the mgr changes a pg_num: what its steps touch stays, the OSDs that they need are spared,
and maps are few. Asked again of the newest map."""
from __future__ import annotations

from typing import Any, Dict

import pytest

from equilibrium_mgr.execution.dispatcher import _is_allowed
from equilibrium_mgr.execution.pending_moves import PendingMoves
from equilibrium_mgr.execution.batch import Decision, next_batch
from equilibrium_mgr.execution.pg_num_steps import in_the_way
from equilibrium_mgr.execution.round_state import ThrottleLimits
from equilibrium_mgr.snapshot.builder import SnapshotBuilder
from tests.execution.limits import FREE, limited, why
from tests.support.clusters.unit_cluster import Cluster, change_of, hosts
from tests.support.units import GIB


def merging(**fields: int) -> Cluster:
    """Eight PGs, of which 1.6 and 1.7 are to be merged into 1.2 and 1.3; the last pair is on osd.6
    and osd.7."""
    pool: Dict[str, Any] = {"pg_num": 8, "pg_num_target": 6, "pg_placement_num_target": 6, **fields}
    cluster = Cluster(hosts(10)).pool(1, size=2, **pool)
    for ps in range(8):
        cluster.pg(f"1.{ps}", "0 1", objects=10)
    return cluster.pg("1.3", "6 7", objects=10).pg("1.7", "6 7", objects=10)


def full() -> Cluster:
    """osd.0 is above nearfull."""
    return merging().osd(0, size=10 * GIB, used=int(8.7 * GIB))


def done() -> Cluster:
    """Has merged all pairs."""
    return merging(pg_num_target=8, pg_placement_num_target=8)


def batch(cluster: Cluster, *targets: int, limits: ThrottleLimits = FREE) -> Decision:
    """1.0, 1.1, 1.4, 1.5 leave osd.0, each for its target."""
    changes = [change_of(pgid, "0 1", (osd, 1))
               for pgid, osd in zip(("1.0", "1.1", "1.4", "1.5"), targets)]
    return next_batch(cluster.snapshot(), changes, limits, {})


def sent(*given: Any, **named: Any) -> int:
    return len(batch(*given, **named).send)


def test_osds_of_the_next_pair_are_spared() -> None:
    decision = batch(merging(), 2, 7, 3)
    assert len(decision.send) == 2
    assert why(decision) == "osd.7 is needed as pg_num of pool 'pool1' changes"
    assert sent(full(), 7) == 1   # relief
    # the pair has been merged: 1.6 and 1.2 are next
    assert sent(merging(pg_num=7), 7) == 0
    assert sent(merging(pg_num=6), 7) == 1


def test_osds_of_pairs_that_are_to_be_moved_soon_are_spared() -> None:
    assert sent(merging(), 4) == 1
    assert sent(merging().pg("1.6", "4 5", objects=10), 4) == 0


@pytest.mark.parametrize("before, target, state, is_back", [
    (merging(), 7, "backfill_wait", True),
    (merging(), 7, "backfilling", False),     # something may have been copied
    (merging(), 2, "backfill_wait", False),   # it waits where no step does
    (full(), 7, "backfill_wait", False),      # relief
    (done(), 7, "backfill_wait", False)])
def test_own_moves_that_wait_where_steps_do_make_way(
        before: Cluster, target: int, state: str, is_back: bool) -> None:
    pending = PendingMoves()
    pending.add(change_of("1.0", "0 1", [target, 1]), before.snapshot(), 0.0)
    after = before.pg("1.0", [target, 1], acting="0 1", objects=10,
                      state=f"active+remapped+{state}")
    assert ("1.0" in in_the_way(after.snapshot(), pending.entries)) == is_back


def test_what_has_made_way_goes_again_when_pg_num_has_its_value() -> None:
    back = limited(made_way=("1.0",))
    decision = batch(merging(), 2, limits=back)
    assert not decision.send
    assert decision.holds_up
    assert why(decision) == "pg 1.0 has made way as pg_num of pool 'pool1' changes"
    assert sent(done(), 2, limits=back) == 1
    assert sent(full(), 2, limits=back) == 1   # urgent relief


@pytest.mark.parametrize("moved, others, seconds, is_spared", [
    (True, {}, 3599.0, True), (True, {}, 3600.0, False),
    (True, {"pg_placement_num": 7}, 3600.0, True),   # a step
    (False, {}, 3600.0, True)])   # what it copies keeps its OSDs
def test_a_merge_that_stands_still_reserves_no_osds(
        moved: bool, others: Dict[str, int], seconds: float, is_spared: bool) -> None:
    builder = SnapshotBuilder()
    builder.build(merging().reading())
    later = merging(**others)
    if not moved:
        later.pg("1.7", "6 7", acting="6 8", objects=10, state="active+remapped+backfill_toofull")
    reading = later.reading()
    snapshot = builder.build(reading._replace(taken_at=reading.taken_at + seconds))
    decision = next_batch(snapshot, [change_of("1.0", "0 1", "7 1")], FREE, {})
    assert len(decision.send) == (not is_spared)


def test_few_maps_with_many_items_each() -> None:
    busy = limited(in_flight=("2.0", "2.1", "2.2"))
    decision = batch(merging(), 2, 3, limits=busy)
    assert not decision.send
    assert decision.holds_up
    assert why(decision) == ("as pg_num of pool 'pool1' changes, more is sent when half of what is"
                             " on its way has arrived")
    assert sent(merging(), 2, 3, 4, limits=busy) == 3
    assert sent(done(), 2, limits=busy) == 1
    assert sent(full(), 2, limits=busy) == 1   # urgent relief does not wait


@pytest.mark.parametrize("newest, allowed", [
    (merging(pg_num=7), True), (merging(pg_num_target=5), False),
    (merging(pg_num=1, pg_num_target=2), False), (done(), False)])
def test_a_batch_is_asked_of_the_newest_map(newest: Cluster, allowed: bool) -> None:
    """Steps of pg_num go on meanwhile, and an operator may have changed the target."""
    change = change_of("1.1", "0 1", "2 1")
    assert _is_allowed(change, merging().snapshot(), newest.snapshot()) == allowed

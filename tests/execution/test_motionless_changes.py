"""Changes that move nothing: what binds them, what drops them, and that others keep every check."""
from __future__ import annotations

from typing import List, Sequence

import pytest
from tests.execution.limits import limited
from tests.support.clusters.unit_cluster import Cluster, change_of, hosts
from tests.support.units import GIB

from equilibrium_mgr.execution.batch import Decision, next_batch
from equilibrium_mgr.execution.round_state import ThrottleLimits
from equilibrium_mgr.execution.traffic import osd_traffic
from equilibrium_mgr.execution.guards import PoolGuard
from equilibrium_mgr.plan.model import (
    CANCEL, FREEZE, UNDO, PgChange, moves_nothing)

SHUT = limited(
    max_misplaced_ratio=0.01, misplaced_copies=10_000, in_flight=("1.0", "1.1"),
    cooling={"1.0": 900.0, "1.1": 900.0}, max_pg_shards=1, max_moves_per_round=1,
    max_backfills_per_osd=1, max_transit_ratio=0.0001, max_upmap_items=0.1)
TROUBLE = {1: PoolGuard("pool 'pool1' has 3 PGs degraded", False)}
#: 1.0 on its way from osd.0 to osd.2
BACK = PgChange("1.0", (0, 1), (2, 1), (0, 1), (), 0, GIB, 10)
#: 1.1 was sent from osd.0 to osd.3, and has arrived there
RETURN = change_of("1.1", "0 1", "0 1", before="3 1")


def cluster(state: str = "active+remapped+backfill_wait") -> Cluster:
    return (Cluster(hosts(6)).pool(1, size=2)
            .pg("1.0", "2 1", objects=10, items="0>2", acting="0 1", state=state)
            .pg("1.1", "3 1", objects=10, items="0>3")
            .pg("1.2", "4 1", objects=10, items="0>4 5>3"))


def decided(made: Cluster, changes: Sequence[PgChange], kind: str = UNDO,
            limits: ThrottleLimits = SHUT) -> Decision:
    snapshot = made.snapshot()
    return next_batch(snapshot, changes, limits, TROUBLE, osd_traffic(snapshot, {}), kind=kind)


def sent(decision: Decision) -> List[str]:
    return [change.pgid for change in decision.send]


@pytest.mark.parametrize("state", ["active+remapped+backfilling+scrubbing",
                                   "active+remapped+backfill_toofull",
                                   "active+remapped+backfilling+inconsistent"])
def test_no_state_of_the_pg_does(state: str) -> None:
    assert sent(decided(cluster(state), [BACK])) == ["1.0"]


def test_what_forbids_copying_says_nothing_against_the_placement() -> None:
    made = cluster()
    made.pools[1]["tier_of"] = 5
    assert sent(decided(made, [BACK])) == ["1.0"]
    made.items["1.0"] = [(5, 2)]
    assert [d.reason for d in decided(made, [BACK]).dropped] == [
        "CRUSH maps the PG differently now"]


def test_a_freeze_ends_what_breaks_a_rule() -> None:
    """Three copies in one rack, by an item that the monitor keeps."""
    racks = {"root default": {f"rack r{r}": {
        f"host h{r}{h}": [4 * r + 2 * h, 4 * r + 2 * h + 1] for h in range(2)} for r in range(3)}}
    made = Cluster(racks, {0: "take default; choose firstn 2 rack; choose firstn 2 osd; emit"})
    made.pool(1, size=4).pg("1.0", "0 1 4 2", objects=10, items="5>2", acting="0 3 4 6",
                            state="active+remapped+backfill_wait")
    legal = PgChange("1.0", (0, 1, 4, 5), (0, 1, 4, 2), (0, 3, 4, 6), ((1, 3), (5, 6)), 0, GIB, 10)
    assert sent(decided(made, [legal], FREEZE)) == ["1.0"]
    broken = legal._replace(up_after=(0, 3, 4, 2), items=((1, 3), (5, 2)))
    assert "no longer legal" in decided(made, [broken], FREEZE).dropped[0].reason


@pytest.mark.parametrize("kind", [UNDO, CANCEL, FREEZE])
def test_an_osd_that_is_being_drained_keeps_what_it_has(kind: str) -> None:
    assert sent(decided(cluster().drain(0), [BACK], kind)) == ["1.0"]


@pytest.mark.parametrize("kind", [CANCEL, FREEZE])
def test_a_plan_that_moves_nothing_never_does(kind: str) -> None:
    made = cluster()
    made.acting.clear()   # what was on its way has come
    made.pg("1.0", "2 1", objects=10, items="0>2")
    free = SHUT._replace(misplaced_copies=0, max_misplaced_ratio=1.0, in_flight=(), cooling={})
    decision = next_batch(made.snapshot(), [BACK], free, {}, kind=kind)
    assert not decision.send and not decision.waiting
    assert [dropped.reason for dropped in decision.dropped] == ["its data has moved meanwhile"]


def test_upmap_items_alone_are_changed_until_they_are_as_wanted() -> None:
    clean = PgChange("1.2", (0, 1), (4, 1), (4, 1), ((0, 4),), 0, GIB, 10)
    assert sent(decided(cluster(), [clean], CANCEL)) == ["1.2"]
    made = cluster().pg("1.2", "4 1", objects=10)
    made.items["1.2"] = [(0, 4)]
    decision = decided(made, [clean], CANCEL)
    assert decision.done == [clean] and not decision.send


def test_the_rule_still_binds() -> None:
    """osd.0 and osd.1 share a host by now."""
    made = Cluster(hosts(3, 2)).pool(1, size=2).pg(
        "1.0", "2 1", objects=10, items="0>2", acting="0 1")
    decision = decided(made, [BACK])
    assert not decision.send
    assert decision.dropped[0].reason.startswith("no longer legal: ")


def test_an_osd_that_is_out_takes_nothing_back() -> None:
    """A pair whose target is out has no effect."""
    made = Cluster(hosts(6)).pool(1, size=2).pg(
        "1.0", "0 1", objects=10, acting="2 1", state="active+remapped").mark_out(2)
    pin = PgChange("1.0", (0, 1), (0, 1), (2, 1), ((0, 2),), 0, GIB, 10)
    assert [d.reason for d in decided(made, [pin], FREEZE).dropped] == ["osd.2 is out"]


def test_positions_count_in_erasure_coded_pools() -> None:
    made = Cluster(hosts(6)).pool(2, size=3, k=2).pg(
        "2.0", "3 1 2", acting="0 1 2", items="0>3")
    pg = made.snapshot().pgs["2.0"]
    assert moves_nothing(pg, (0, 1, 2), True) and moves_nothing(pg, (3, 1, 2), True)
    assert not moves_nothing(pg, (1, 0, 2), True)
    assert moves_nothing(pg, (1, 0, 2), False)

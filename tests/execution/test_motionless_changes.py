"""Changes that move nothing: what binds them, what drops them, and that others keep every check."""
from __future__ import annotations

from typing import Any

import pytest
from tests.execution.limits import limited
from tests.support.clusters.unit_cluster import Cluster, hosts
from tests.support.placed import osds, pairs
from tests.support.units import GIB

from equilibrium_mgr.execution.batch import Decision, next_batch
from equilibrium_mgr.execution.traffic import osd_traffic
from equilibrium_mgr.execution.guards import PoolGuard
from equilibrium_mgr.plan.model import (
    CANCEL, FREEZE, UNDO, PgChange, moves_nothing)

SHUT = limited(
    max_misplaced_ratio=0.01,
    misplaced_copies=10_000,
    in_flight=("1.0", "1.1"),
    cooling={"1.0": 900.0, "1.1": 900.0},
    max_pg_shards=1,
    max_moves_per_round=1,
    max_backfills_per_osd=1,
    max_transit_ratio=0.0001,
    max_upmap_items=0.1)
TROUBLE = {1: PoolGuard("pool 'pool1' has 3 PGs degraded", False)}
WAITS = "active+remapped+backfill_wait"


def change(raw: str, up_before: str, up_after: str, items: str = "", pgid: str = "1.0") -> PgChange:
    return PgChange(pgid, osds(raw), osds(up_before), osds(up_after), pairs(items), 0, GIB, 10)


#: 1.0 on its way from osd.0 to osd.2
BACK = change("0 1", "2 1", "0 1")
#: Leaves 1.2 a pair less.
CLEAN = change("0 1", "4 1", "4 1", "0>4", pgid="1.2")


def cluster(state: str = WAITS, items: str = "0>4 5>3") -> Cluster:
    return (Cluster(hosts(6)).pool(1, size=2)
            .pg("1.0", "2 1", objects=10, items="0>2", acting="0 1", state=state)
            .pg("1.2", "4 1", objects=10, items=items))


def decided(made: Cluster, one: PgChange, kind: str = UNDO, limits: Any = SHUT) -> Decision:
    snapshot = made.snapshot()
    return next_batch(snapshot, [one], limits, TROUBLE, osd_traffic(snapshot, {}), kind=kind)


def is_sent(made: Cluster, one: PgChange, kind: str = UNDO) -> bool:
    return decided(made, one, kind).send == [one]


def dropped(made: Cluster, one: PgChange, kind: str = UNDO, limits: Any = SHUT) -> str:
    """Returns why the batch drops the change; nothing goes or waits."""
    decision = decided(made, one, kind, limits)
    assert not decision.send
    assert not decision.waiting
    (found,) = decision.dropped
    return found.reason


@pytest.mark.parametrize("state", ["active+remapped+backfilling+scrubbing",
                                   "active+remapped+backfill_toofull",
                                   "active+remapped+backfilling+inconsistent"])
def test_no_state_of_the_pg_does(state: str) -> None:
    assert is_sent(cluster(state), BACK)


def test_what_forbids_copying_says_nothing_against_the_placement() -> None:
    made = cluster()
    made.pools[1]["tier_of"] = 5
    assert is_sent(made, BACK)
    made.items["1.0"] = [(5, 2)]
    assert dropped(made, BACK) == "CRUSH maps the PG differently now"


def test_a_freeze_ends_what_breaks_a_rule() -> None:
    """Three copies in one rack, by an item that the monitor keeps."""
    racks = {"root default": {
        "rack r0": {"host h00": [0, 1], "host h01": [2, 3]},
        "rack r1": {"host h10": [4, 5], "host h11": [6, 7]},
        "rack r2": {"host h20": [8, 9], "host h21": [10, 11]}}}
    made = Cluster(racks, {0: "take default; choose firstn 2 rack; choose firstn 2 osd; emit"})
    made.pool(1, size=4).pg("1.0", "0 1 4 2", objects=10, items="5>2", acting="0 3 4 6",
                            state=WAITS)
    assert is_sent(made, change("0 1 4 5", "0 1 4 2", "0 3 4 6", "1>3 5>6"), FREEZE)
    broken = change("0 1 4 5", "0 1 4 2", "0 3 4 2", "1>3 5>2")
    assert "no longer legal" in dropped(made, broken, FREEZE)


@pytest.mark.parametrize("kind", [UNDO, CANCEL, FREEZE])
def test_an_osd_that_is_being_drained_keeps_what_it_has(kind: str) -> None:
    assert is_sent(cluster().drain(0), BACK, kind)


@pytest.mark.parametrize("kind", [CANCEL, FREEZE])
def test_a_plan_that_moves_nothing_never_does(kind: str) -> None:
    """The data has arrived."""
    made = cluster("active+clean")
    made.acting.clear()
    assert dropped(made, BACK, kind, limited()) == "its data has moved meanwhile"


def test_upmap_items_alone_are_changed_until_they_are_as_wanted() -> None:
    assert is_sent(cluster(), CLEAN, CANCEL)
    decision = decided(cluster(items="0>4"), CLEAN, CANCEL)
    assert decision.done == [CLEAN]
    assert not decision.send


def test_the_rule_still_binds() -> None:
    """osd.0 and osd.1 share a host by now."""
    made = Cluster(hosts(3, 2)).pool(1, size=2)
    made.pg("1.0", "2 1", objects=10, items="0>2", acting="0 1")
    assert dropped(made, BACK).startswith("no longer legal: ")


def test_an_osd_that_is_out_takes_nothing_back() -> None:
    """A pair whose target is out has no effect."""
    made = Cluster(hosts(6)).pool(1, size=2).mark_out(2)
    made.pg("1.0", "0 1", objects=10, acting="2 1", state="active+remapped")
    assert dropped(made, change("0 1", "0 1", "2 1", "0>2"), FREEZE) == "osd.2 is out"


@pytest.mark.parametrize("up, positional, is_so", [
    ("0 1 2", True, True), ("3 1 2", True, True), ("1 0 2", True, False), ("1 0 2", False, True)])
def test_positions_count_in_erasure_coded_pools(up: str, positional: bool, is_so: bool) -> None:
    made = Cluster(hosts(6)).pool(2, size=3, k=2).pg("2.0", "3 1 2", acting="0 1 2", items="0>3")
    assert moves_nothing(made.snapshot().pgs["2.0"], osds(up), positional) == is_so

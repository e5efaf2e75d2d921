"""Shards leave the OSDs that are being drained, and what cannot says why."""
from __future__ import annotations

from typing import Any, FrozenSet, Set

import pytest
from tests.support.clusters.bound_clusters import fill
from tests.support.clusters.random_clusters import PER_HOST, random_cluster
from tests.support.clusters.unit_cluster import Cluster, hosts, racks, single_copies
from tests.support.giving_way import Asked
from tests.support.plan_legality import assert_legal, ended_plan
from tests.support.units import GIB

from equilibrium_mgr.plan.model import Plan, plan_from_dict
from equilibrium_mgr.plan.options import PlanOptions
from equilibrium_mgr.planner.bound.lower_bound import utilization_bounds
from equilibrium_mgr.planner.planner import make_plan
from equilibrium_mgr.runtime.time_slice import giving_way
from equilibrium_mgr.snapshot import reason_codes as codes


def planned(cluster: Cluster, **options: Any) -> Plan:
    snapshot = cluster.snapshot()
    plan = ended_plan(snapshot, PlanOptions(**options))
    assert_legal(snapshot, plan, PlanOptions(**options))
    return plan


def left_on(cluster: Cluster, plan: Plan) -> Set[str]:
    """PGs with a shard on a drained OSD once the plan is done."""
    after = {change.pgid: change.up_after for change in plan.changes}
    return {pgid for pgid, up in cluster.up.items()
            if cluster.drained & set(after.get(pgid, up))}


@pytest.mark.parametrize("drain_only", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_a_host_is_emptied_wherever_the_rules_let_it(seed: int, drain_only: bool) -> None:
    """Each shard that stays is of a PG that must not be moved now, and is counted."""
    cluster = random_cluster(seed, hybrid=seed % 2 == 0).drain(*range(PER_HOST))
    plan = planned(cluster, drain_only=drain_only)
    snapshot, left = cluster.snapshot(), 0
    for pgid in left_on(cluster, plan):
        assert snapshot.pgs[pgid].immovable is not None
        left += len(cluster.drained.intersection(cluster.up[pgid]))
    assert sum(stuck.shards for stuck in plan.stuck) == left
    assert {stuck.code for stuck in plan.stuck} <= {codes.IMMOVABLE}
    if drain_only:
        for change in plan.changes:
            assert cluster.drained.intersection(change.up_before)


def test_upmap_items_onto_a_drained_osd_are_dropped() -> None:
    """osd.3 is emptier, and yet the shard goes back to where CRUSH has it."""
    cluster = Cluster(hosts(4)).pool(1, size=1)
    cluster.pg("1.0", [1], items="0>1").pg("1.1", [2], 5 * GIB)
    (change,) = planned(cluster.drain(1), drain_only=True).changes
    assert (change.pgid, change.items, change.up_after) == ("1.0", (), (0,))


def test_three_hosts_with_three_copies_cannot_lose_one() -> None:
    cluster = fill(Cluster(hosts(3)).pool(1, size=3), 1, [[0, 1, 2]] * 4)
    plan = planned(cluster.drain(0))
    assert not plan.changes
    assert plan.stuck == ((0, codes.FAILURE_DOMAIN, 4, 4 * GIB, "1.0"),)
    assert plan_from_dict(plan.to_dict()).stuck == plan.stuck


def test_what_does_not_fit_below_the_fill_limit_stays() -> None:
    """Each of the others has 20 GiB left below 0.6: two shards of ten each."""
    cluster = single_copies([10] * 6, [40], [40]).drain(0)
    plan = planned(cluster, drain_only=True, fill_limit=0.6)
    (stuck,) = plan.stuck
    assert (len(plan.changes), stuck.code, stuck.shards) == (4, codes.FILL_LIMIT, 2)


def test_another_shard_makes_room() -> None:
    """The shard fits on no OSD until osd.1 has passed one on to osd.2."""
    cluster = single_copies([30], [15, 20], [40], [48])
    plan = planned(cluster.drain(0), drain_only=True, fill_limit=0.6)
    assert [(move.source, move.target) for move in plan.moves] == [(1, 2), (0, 1)]
    assert not left_on(cluster, plan)


def test_shards_that_share_a_rack_leave_it_together() -> None:
    rule = "take default; choose firstn 2 rack; chooseleaf firstn 2 host; emit"
    cluster = Cluster(racks(3), {0: rule}).pool(1, size=4)
    cluster.pg("1.0", "0 1 2 3").pg("1.1", "2 3 4 5")
    (change,) = planned(cluster.drain(0), drain_only=True).changes
    assert set(change.up_after) == {2, 3, 4, 5}


def test_a_drain_comes_first_and_outlives_the_limit_of_moves() -> None:
    cluster = single_copies([40, 10, 10, 10], [5], [])
    (move,) = planned(cluster.drain(1), max_moves=1).moves
    assert move.source == 1


@pytest.mark.parametrize("cluster, bound", [
    (single_copies([20, 20], [20], []), 0.3),   # 60 GiB on two of three OSDs of 100 GiB
    # what has no other place is left out
    (Cluster(hosts(3)).pool(1, size=3).pg("1.0", "0 1 2", 10 * GIB), 0.1)])
def test_the_bound_has_what_is_to_leave_on_the_others(cluster: Cluster, bound: float) -> None:
    bounds = utilization_bounds(cluster.drain(0).snapshot())
    assert bounds.highest == pytest.approx({"hdd": bound})


@pytest.mark.parametrize("count, targets, code", [
    (4, frozenset({1}), codes.OSD_EXCLUDED), (2, frozenset({0}), codes.FAILURE_DOMAIN)])
def test_an_option_that_holds_shards_is_the_reason(count: int, targets: FrozenSet[int],
                                                   code: str) -> None:
    """Where the rule would let them go to an OSD that the option leaves out, not where it forbids
    that too."""
    cluster = Cluster(hosts(count)).pool(1, size=2).pg("1.0", "0 1", GIB).drain(0)
    (stuck,) = planned(cluster, drain_only=True, targets=targets).stuck
    assert stuck.code == code


def test_what_the_search_had_no_time_for_is_not_stuck() -> None:
    """There is a place for it, which the next plan finds."""
    cluster = single_copies([10, 10], [10], []).drain(0)
    with giving_way(Asked(0)):
        plan = make_plan(cluster.snapshot(), PlanOptions(drain_only=True))
    assert left_on(cluster, plan) and plan.stuck == ()

"""Shards that a rule keeps together in one rack leave it together."""
from __future__ import annotations

from typing import Dict, List

import pytest
from tests.planner.search.parts import Parts
from tests.support.clusters.unit_cluster import Cluster, racks
from tests.support.plan_legality import assert_legal, ended_plan
from tests.support.units import GIB

from equilibrium_mgr.plan.options import PlanOptions
from equilibrium_mgr.planner.search.relief import OverfullOsd
from equilibrium_mgr.planner.state.placement_state import PlacementState

_EC = "take default; choose indep 2 rack; chooseleaf indep 2 host; emit"
_COPIES = "take default; choose firstn 2 rack; chooseleaf firstn 2 host; emit"


def in_racks(rule: str, hosts: int) -> Cluster:
    """Four racks of hosts with one OSD each; k of the pool is 1 or 2."""
    return Cluster(racks(4, hosts), {0: rule}).pool(1, size=4, k=2 * (rule == _EC))


def two_full_racks(rule: str, gib: int) -> Cluster:
    """Every PG is in racks r0 and r1, OSDs 0 to 5; the others stand empty."""
    cluster = in_racks(rule, 3)
    for ps, up in enumerate([[0, 1, 3, 4], [1, 2, 4, 5], [2, 0, 5, 3]] * 4):
        cluster.pg(f"1.{ps:x}", up, gib * GIB)
    return cluster


@pytest.mark.parametrize("rule, gib", [(_EC, 8), (_COPIES, 4)])
def test_both_shards_of_a_rack_go_to_one_other_rack(rule: str, gib: int) -> None:
    snapshot = two_full_racks(rule, gib).snapshot()
    plan = ended_plan(snapshot)
    assert_legal(snapshot, plan)
    assert plan.after.classes["hdd"].max < 0.7 * plan.before.classes["hdd"].max
    moved: Dict[str, List[int]] = {}
    for move in plan.moves:
        if move.target > 5:
            moved.setdefault(move.pgid, []).append(move.target // 3)
    assert len(moved) >= 4
    for targets in moved.values():
        assert targets in ([2, 2], [3, 3], [2, 2, 3, 3], [3, 3, 2, 2])


def test_displaced_together_they_go_home_together() -> None:
    placement = PlacementState(two_full_racks(_EC, 8).snapshot(), PlanOptions())
    joint, group = Parts(placement).joint, placement.groups[0]
    first, second = next(joint.candidates(0))
    assert joint.return_moves(0, first[1], group) == ()
    placement.move(*first)
    placement.move(*second)
    home = joint.return_moves(first[0], first[2], group)
    assert {(pg, target, source) for pg, source, target in home} == {first, second}
    assert placement.is_legal_joint(home)
    assert not placement.is_legal(*home[0]) and not placement.is_legal(*home[1])


@pytest.mark.parametrize("num_bytes", [0, 1000])
def test_a_joint_move_of_few_bytes_does_not_replace_one_that_relieves(num_bytes: int) -> None:
    """At a high price every joint move costs more than it gains, and that of few bytes least."""
    cluster = in_racks(_EC, 2).pool(2, size=4, k=2).pg("1.0", "0 1 2 3", 8 * GIB)
    cluster.pg("2.0", "0 1 2 3", num_bytes)
    placement = PlacementState(cluster.snapshot(), PlanOptions())
    parts = Parts(placement)
    found = parts.relief(1.0).find(0, OverfullOsd(parts.osds, 0.0, 1e6))
    assert found is not None
    assert [(placement.pgs[pg].pgid, source) for pg, source, _ in found.steps] == [
        ("1.0", 0), ("1.0", 1)]

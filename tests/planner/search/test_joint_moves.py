"""Shards that a rule keeps together in one rack leave it together."""
from __future__ import annotations

from typing import Dict, List

import pytest
from tests.support.clusters.unit_cluster import Cluster
from tests.support.plan_legality import assert_legal, ended_plan
from tests.support.units import GIB

from equilibrium_mgr.plan.model import Plan
from equilibrium_mgr.plan.options import PlanOptions
from equilibrium_mgr.planner.objective import Weights
from equilibrium_mgr.planner.search.joint_moves import JointMoves
from equilibrium_mgr.planner.search.relief import OverfullOsd, Relief
from equilibrium_mgr.planner.state.constraints import SearchConstraints
from equilibrium_mgr.planner.state.cost_model import CostModel
from equilibrium_mgr.planner.state.placement_state import PlacementState
from equilibrium_mgr.planner.state.target_index import ShardIndex, TargetIndex

_EC = "take default; choose indep 2 rack; chooseleaf indep 2 host; emit"
_COPIES = "take default; choose firstn 2 rack; chooseleaf firstn 2 host; emit"


def racks(count: int) -> Dict[str, Dict[str, Dict[str, List[int]]]]:
    """Racks of three hosts with one OSD each: OSDs 0 to 2 in rack r0, and so on."""
    return {"root default": {f"rack r{rack}": {f"host r{rack}h{host}": [3 * rack + host]
                                               for host in range(3)} for rack in range(count)}}


def two_full_racks(rule: str, count: int = 4) -> Cluster:
    """Every PG is in racks r0 and r1; the others stand empty."""
    k = 2 if rule == _EC else 1
    cluster = Cluster(racks(count), {0: rule}).pool(1, size=4, k=k)
    for ps in range(12):
        first, second = ps % 3, (ps + 1) % 3
        cluster.pg(f"1.{ps:x}", [first, second, 3 + first, 3 + second], num_bytes=k * 4 * GIB)
    return cluster


def by_pg(plan: Plan) -> Dict[str, List[int]]:
    moved: Dict[str, List[int]] = {}
    for move in plan.moves:
        moved.setdefault(move.pgid, []).append(move.target // 3)
    return moved


@pytest.mark.parametrize("rule", [_EC, _COPIES])
def test_both_shards_of_a_rack_go_to_one_other_rack(rule: str) -> None:
    snapshot = two_full_racks(rule).snapshot()
    plan = ended_plan(snapshot)
    assert_legal(snapshot, plan)
    assert plan.after.classes["hdd"].max < 0.7 * plan.before.classes["hdd"].max
    moved = by_pg(plan)
    new = [targets for targets in moved.values() if any(rack > 1 for rack in targets)]
    assert len(new) >= 4
    for targets in new:
        assert all(targets.count(rack) == 2 for rack in targets if rack > 1)


def moves_of(placement: PlacementState) -> JointMoves:
    count = len(placement.size_bytes)
    costs = CostModel(
        placement, Weights(count_weight=0.0), [0.1] * count,
        [float(size) for size in placement.size_bytes], [0.0] * count)
    return JointMoves(costs, TargetIndex(costs), ShardIndex(placement))


def test_displaced_together_they_go_home_together() -> None:
    placement = PlacementState(two_full_racks(_EC).snapshot(), PlanOptions())
    joint = moves_of(placement)
    steps = next(joint.candidates(0))
    assert joint.return_moves(steps[0][0], steps[0][1], placement.groups[0]) == ()
    for step in steps:
        placement.move(*step)
    home = joint.return_moves(steps[0][0], steps[0][2], placement.groups[0])
    assert sorted(home) == sorted((pg, target, source) for pg, source, target in steps)
    assert placement.is_legal_joint(home)
    assert not any(placement.is_legal(*step) for step in home)


@pytest.mark.parametrize("num_bytes", [0, 1000])
def test_a_joint_move_of_few_bytes_does_not_replace_one_that_relieves(num_bytes: int) -> None:
    """At a high price every joint move costs more than it gains, and that of few bytes least."""
    tree = {"root default": {f"rack r{rack}": {f"host r{rack}h{host}": [2 * rack + host]
                                               for host in range(2)} for rack in range(4)}}
    cluster = Cluster(tree, {0: _EC}).pool(1, size=4, k=2).pool(2, size=4, k=2)
    cluster.pg("1.0", [0, 1, 2, 3], num_bytes=8 * GIB)
    cluster.pg("2.0", [0, 1, 2, 3], num_bytes=num_bytes)
    placement = PlacementState(cluster.snapshot(), PlanOptions())
    joint, osds = moves_of(placement), tuple(range(len(placement.size_bytes)))
    relief = Relief(joint._costs, joint._targets, joint._shard_index, joint,
                    SearchConstraints(placement, (), 0.0), 1.0)
    found = relief.find(0, OverfullOsd(osds, 0.0, 1e6))
    assert found is not None
    assert [(placement.pgs[pg].pgid, source) for pg, source, _ in found.steps] == [
        ("1.0", 0), ("1.0", 1)]

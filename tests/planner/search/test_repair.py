"""How an OSD is relieved where single moves have ended."""
from __future__ import annotations

from typing import List, Optional, Sequence, Tuple

from tests.support.clusters.unit_cluster import single_copies
from tests.support.units import GIB

from equilibrium_mgr.plan.options import PlanOptions
from equilibrium_mgr.planner.objective import Weights
from equilibrium_mgr.planner.search.joint_moves import JointMoves
from equilibrium_mgr.planner.search.repair import OverfullOsd, Repair, RepairMove
from equilibrium_mgr.planner.state.constraints import SearchConstraints
from equilibrium_mgr.planner.state.cost_model import CostModel
from equilibrium_mgr.planner.state.placement_state import PlacementState
from equilibrium_mgr.planner.state.target_index import ShardIndex, TargetIndex

PRICE = 0.001


def placement_of(*gib_by_osd: Sequence[int]) -> PlacementState:
    return PlacementState(single_copies(*gib_by_osd).snapshot(), PlanOptions())


def repair_of(placement: PlacementState, most: float,
              price: float = PRICE) -> Tuple[Repair, SearchConstraints]:
    """No OSD may pass the utilization `most`; counts do not matter."""
    count = len(placement.size_bytes)
    costs = CostModel(
        placement, Weights(count_weight=0.0), [most] * count,
        [float(size) for size in placement.size_bytes], [0.0] * count)
    limits = SearchConstraints(placement, [])
    limits.set_max_utilization(range(count), most)
    targets, shard_index = TargetIndex(costs), ShardIndex(placement)
    joint_moves = JointMoves(costs, targets, shard_index)
    return Repair(costs, targets, shard_index, joint_moves, limits, price), limits


def too_full(placement: PlacementState, goal: float) -> OverfullOsd:
    return OverfullOsd(tuple(range(len(placement.size_bytes))), goal, 0.0)


def steps(placement: PlacementState, found: Optional[RepairMove]) -> List[Tuple[str, int, int]]:
    assert found is not None
    return [(placement.pgs[pg].pgid, a, b) for pg, a, b in found.steps]


def test_a_swap_where_no_move_fits() -> None:
    """30 + 20 against 25 + 15: only an exchange brings both to 45."""
    placement = placement_of([30, 20], [25, 15])
    repair, _ = repair_of(placement, 0.45)
    found = steps(placement, repair.find(0, too_full(placement, 0.45)))
    for pgid, source, target in found:
        placement.move([pg.pgid for pg in placement.pgs].index(pgid), source, target)
    assert len(found) == 2
    assert [used // GIB for used in placement.used_bytes] == [45, 45]


def test_a_chain_where_no_swap_fits() -> None:
    """40 has to go to where 10 goes on to the third OSD, which takes nothing larger."""
    placement = placement_of([40, 40], [10, 34], [35])
    repair, _ = repair_of(placement, 0.76)
    found = repair.find(0, too_full(placement, 0.76))
    assert found is not None
    for pg, source, target in found.steps:
        placement.move(pg, source, target)
    assert max(map(placement.utilization, range(3))) <= 0.76

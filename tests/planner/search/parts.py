"""The parts of a search on a placement: counts of shards do not matter."""
from __future__ import annotations

from typing import Sequence

from equilibrium_mgr.planner.objective import Weights
from equilibrium_mgr.planner.search.joint_moves import JointMoves
from equilibrium_mgr.planner.search.move_reduction import MoveReduction
from equilibrium_mgr.planner.search.relief import Relief
from equilibrium_mgr.planner.state.constraints import SearchConstraints
from equilibrium_mgr.planner.state.cost_model import CostModel
from equilibrium_mgr.planner.state.placement_state import PlacementState, ShardMove
from equilibrium_mgr.planner.state.target_index import ShardIndex, TargetIndex


class Parts:
    """OSDs that may all be filled up to `most` (a ratio)."""

    def __init__(self, placement: PlacementState, bound: float = 0.1, most: float = 0.9,
                 moves: Sequence[ShardMove] = ()) -> None:
        sizes = [float(size) for size in placement.size_bytes]
        self.osds = tuple(range(len(sizes)))
        self.costs = CostModel(placement, Weights(count_weight=0.0), [bound] * len(sizes), sizes,
                               [0.0] * len(sizes))
        for move in moves:
            placement.move(*move)
        self.limits = SearchConstraints(placement, ())
        self.limits.set_max_utilization(self.osds, most)
        self.targets, self.shards = TargetIndex(self.costs), ShardIndex(placement)
        self.joint = JointMoves(self.costs, self.targets, self.shards)

    def reduction(self, price: float) -> MoveReduction:
        return MoveReduction(self.costs, self.shards, self.joint, self.limits, price)

    def relief(self, price: float) -> Relief:
        return Relief(self.costs, self.targets, self.shards, self.joint, self.limits, price)

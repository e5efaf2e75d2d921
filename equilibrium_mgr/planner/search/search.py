"""The search for a better placement: a recipe of three steps over one board.

1. Single moves off the fullest OSDs, at falling prices per byte (descent).
2. OSDs that an operator's weights hold to a share give what they have beyond it; then what limits
   the pools is tightened as far as it pays (squeeze): the highest utilization of each
   OSD set, and each pool's room on the OSD that limits it most.
3. What was moved and turned out not to be needed is taken back (thrift), and what went through an
   OSD goes straight (detours).

A search that is told to end leaves a board that is better than it was, whenever that is.
"""
from __future__ import annotations

from typing import List, Optional

from ...plan.weight_shares import share_limits_within
from ...runtime.checkpoints import Checkpoint
from ..bound.lower_bound import UtilizationBounds
from ..objective import Weights, holds_data
from ..state.constraints import SearchConstraints
from ..state.cost_model import CostModel
from ..state.osd_sets import OsdSetState
from ..state.placement_state import PlacementState
from ..state.shard_index import ShardIndex
from ..state.target_index import TargetIndex
from .descent import Descent
from .detour_shortcuts import DetourShortcuts
from .joint_moves import JointMoves
from .move_reduction import revert_unneeded_moves
from .repair import Repair
from .single_moves import SingleMoves
from .tightening import Tightening

#: How near the bound is near enough is a part of a shard, but no finer or coarser than these, and
#: no step is smaller than that; all ratios of an OSD.
_LEAST_GOAL = 0.0005
_MOST_GOAL = 0.0018
_LEAST_STEP = 0.001

#: One that is shortened may lay open another; later passes find little, as measured.
_DETOUR_PASSES = 3

#: So many of the last prices are for what coarser ones have left.
_FINE = 2


class Search:
    """One run over a board; `moves` is how many it has made so far."""

    def __init__(self, placement: PlacementState, bounds: UtilizationBounds, weights: Weights,
                 checkpoint: Checkpoint) -> None:
        self._placement = placement
        self._weights = weights
        self._outer_checkpoint = checkpoint
        self._stopped = False
        self.sets = [OsdSetState(placement, osd_set, bounds) for osd_set in bounds.sets]
        placement.set_share_limits(share_limits_within(placement.snapshot, bounds.utilizations))
        levels = [bounds.utilizations[osd] for osd in placement.osd_ids]
        tops, typical = list(levels), [0.0] * len(levels)
        for members in self.sets:
            for i in members.osds:
                tops[i], typical[i] = members.bound, members.typical_shard_bytes
        full = placement.snapshot.full_ratio
        free = [max(0.0, (full - level) * size) for level, size in zip(levels, placement.size_bytes)]
        for i, most in placement.share_limit_bytes.items():
            tops[i] = most / placement.size_bytes[i]
            free[i] = max(0.0, full * placement.capacity_bytes[i] + placement.spared_bytes[i] - most)
        self._costs = CostModel(placement, weights, tops, free, typical, self._checkpoint)
        self.targets = TargetIndex(self._costs)
        self.shard_index = ShardIndex(placement)
        self._joint_moves = JointMoves(self._costs, self.targets, self.shard_index)
        self.data_groups = [group.index for group in placement.groups
                            if group.shard_count and holds_data(self._costs.pool_weights[group.index])]

    @property
    def moves(self) -> int:
        """Shard moves made so far, those that were taken back or passed on included."""
        return len(self._placement.change_log) // 2

    def run(self) -> bool:
        """Searches to the end; False where the checkpoint ended it before."""
        if self._checkpoint():
            self._descend()
        if not self._stopped:
            limits = self._tighten()
            if self._weights.return_value:
                self._reduce_moves(limits)
        return not self._stopped

    def repair(self, limits: SearchConstraints) -> Repair:
        """What finds operations within the limits."""
        return Repair(self._costs, self.targets, self.shard_index, self._joint_moves, limits,
                      self._weights.tightening_price)

    def _reduce_moves(self, limits: SearchConstraints) -> None:
        """Does with fewer moves what has been reached."""
        revert_unneeded_moves(self._costs, self.shard_index, self._joint_moves, limits, self._weights.return_value,
                  self._checkpoint)
        detours = DetourShortcuts(self._costs, self.shard_index, limits, self._weights.return_value)
        for _ in range(_DETOUR_PASSES):
            if not detours.shorten(self._checkpoint):
                break

    def _checkpoint(self, _moves: Optional[int] = None) -> bool:
        if not self._stopped and not self._outer_checkpoint(self.moves):
            self._stopped = True
        return not self._stopped

    def _descend(self) -> None:
        budgets = [members.excess_bytes * self._weights.count_move_budget for members in self.sets] + [0.0]
        budget_of = [len(self.sets)] * len(self._placement.size_bytes)
        for number, members in enumerate(self.sets):
            for i in members.osds:
                budget_of[i] = number
        moves = SingleMoves(self._costs, self.targets, self.shard_index)
        descent = Descent(self._costs, moves, self._joint_moves, budgets, budget_of)
        prices = self._weights.prices
        for number, price in enumerate(prices):
            # fine prices follow coarse ones: where those find nothing near the bound, it is at rest
            if (number >= len(prices) - _FINE and not self._placement.change_log
                    and all(members.is_near_bound(self._placement) for members in self.sets)):
                break
            if not descent.run(price, self._checkpoint):
                return
        for members in self.sets:
            members.update_needs_tightening(self._placement)

    def _tighten(self) -> SearchConstraints:
        """Tightens the limits in turn; returns them as they stand in the end."""
        limits = SearchConstraints(self._placement, self.data_groups, self._checkpoint)
        for members in self.sets:
            limits.set_max_utilization(members.osds, members.max_utilization(self._placement))
        price = self._weights.tightening_price
        tightening = Tightening(self._placement, self.repair(limits), limits, price, self._checkpoint)
        self._enforce_shares(tightening, limits)
        budgets = [members.excess_bytes * self._weights.pool_space_budget for members in self.sets]
        for what in self._weights.phases.split():
            if self._stopped:
                break
            if what == "room":
                self._lower_pressures(tightening, limits, budgets)
            else:
                limits.tighten_to_current(self._weights.pressure_slack)
                self._lower_max_utilizations(tightening)
        limits.tighten_to_current(0.0)
        return limits

    def _enforce_shares(self, tightening: Tightening, limits: SearchConstraints) -> None:
        """What is still beyond an OSD's share leaves it, whatever it costs: an operator wants it.
        Others may become as full for it as the bound demands."""
        for members in self.sets:
            held = [i for i in members.osds if i in self._placement.share_limit_bytes]
            if not held:
                continue
            top = members.max_utilization(self._placement)
            limits.set_max_utilization(members.osds, max(top, members.bound + members.typical_shard))
            for i in held:
                tightening.lower_osd_to(i, self._placement.share_limit_bytes[i], members.osds)
            limits.set_max_utilization(members.osds, max(top, members.max_utilization(self._placement)))

    def _lower_pressures(self, tightening: Tightening, limits: SearchConstraints, budgets: List[float]) -> None:
        """Every pool of an OSD set gets its part of the purse; what one leaves the next may use."""
        for number, members in enumerate(self.sets):
            if not members.needs_tightening:
                continue
            limits.set_max_utilization(members.osds, max(members.max_utilization(self._placement), members.bound + min(
                self._weights.max_rise, members.typical_shard / 2.0)))
            groups = [group for group in self.data_groups
                      if self._placement.groups[group].members & members.members]
            for left, group in zip(range(len(groups), 0, -1), groups):
                if not self._checkpoint():
                    return
                share = budgets[number] / left
                unspent = tightening.lower_pool_pressure(group, self._costs.min_pressure[group],
                                            self._weights.pool_space_value * self._costs.pool_weights[group],
                                            share)
                budgets[number] -= share - unspent

    def _lower_max_utilizations(self, tightening: Tightening) -> None:
        weights = self._weights
        for members in self.sets:
            if not self._checkpoint():
                return
            if not members.needs_tightening:
                continue
            goal = min(_MOST_GOAL, max(_LEAST_GOAL, weights.goal_shards * members.typical_shard))
            step = max(_LEAST_STEP, weights.step_shards * members.typical_shard)
            tightening.lower_max_utilization(
                members.osds, members.bound + goal,
                members.value_of_lowering(weights), step,
                weights.fixed_cost_steps * weights.tightening_price * step)

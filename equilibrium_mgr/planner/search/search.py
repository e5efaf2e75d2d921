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

from typing import Callable, List

from ...plan.weight_shares import limits_by_levels
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

    def __init__(self, placement: PlacementState, reachable: UtilizationBounds, weights: Weights,
                 checkpoint: Callable[[int], bool]) -> None:
        self._placement = placement
        self._weights = weights
        self._checkpoint = checkpoint
        self._stopped = False
        self.sets = [OsdSetState(placement, osd_set, reachable) for osd_set in reachable.sets]
        placement.hold(limits_by_levels(placement.snapshot, reachable.levels))
        levels = [reachable.levels[osd] for osd in placement.osd_ids]
        tops, typical = list(levels), [0.0] * len(levels)
        for members in self.sets:
            for i in members.osds:
                tops[i], typical[i] = members.bound, members.typical
        full = placement.snapshot.full_ratio
        free = [max(0.0, (full - level) * size) for level, size in zip(levels, placement.size)]
        for i, most in placement.held.items():
            tops[i] = most / placement.size[i]
            free[i] = max(0.0, full * placement.capacity[i] + placement.spared[i] - most)
        self._costs = CostModel(placement, weights, tops, free, typical, self._go_on)
        self.targets = TargetIndex(self._costs)
        self.shard_index = ShardIndex(placement)
        self._joint_moves = JointMoves(self._costs, self.targets, self.shard_index)
        self.data_groups = [group.index for group in placement.groups
                            if group.shards and holds_data(self._costs.worth[group.index])]

    @property
    def moves(self) -> int:
        """Shard moves made so far, those that were taken back or passed on included."""
        return len(self._placement.changed) // 2

    def run(self) -> bool:
        """Searches to the end; False where the checkpoint ended it before."""
        if self._go_on():
            self._descend()
        if not self._stopped:
            limits = self._tightening()
            if self._weights.thrift:
                self._spare(limits)
        return not self._stopped

    def repair(self, limits: SearchConstraints) -> Repair:
        """What finds operations within the limits."""
        return Repair(self._costs, self.targets, self.shard_index, self._joint_moves, limits,
                      self._weights.squeeze_price)

    def _spare(self, limits: SearchConstraints) -> None:
        """Does with fewer moves what has been reached."""
        revert_unneeded_moves(self._costs, self.shard_index, self._joint_moves, limits, self._weights.thrift,
                  self._go_on)
        detours = DetourShortcuts(self._costs, self.shard_index, limits, self._weights.thrift)
        for _ in range(_DETOUR_PASSES):
            if not detours.shorten(self._go_on):
                break

    def _go_on(self) -> bool:
        if not self._stopped and not self._checkpoint(self.moves):
            self._stopped = True
        return not self._stopped

    def _descend(self) -> None:
        budgets = [members.excess * self._weights.even_counts for members in self.sets] + [0.0]
        budget_of = [len(self.sets)] * len(self._placement.size)
        for number, members in enumerate(self.sets):
            for i in members.osds:
                budget_of[i] = number
        moves = SingleMoves(self._costs, self.targets, self.shard_index)
        descent = Descent(self._costs, moves, self._joint_moves, budgets, budget_of)
        prices = self._weights.prices
        for number, price in enumerate(prices):
            # fine prices follow coarse ones: where those find nothing near the bound, it is at rest
            if (number >= len(prices) - _FINE and not self._placement.changed
                    and all(members.near(self._placement) for members in self.sets)):
                break
            if not descent.run(price, self._go_on):
                return
        for members in self.sets:
            members.look_again(self._placement)

    def _tightening(self) -> SearchConstraints:
        """Tightens the limits in turn; returns them as they stand in the end."""
        limits = SearchConstraints(self._placement, self.data_groups, self._go_on)
        for members in self.sets:
            limits.set_water(members.osds, members.top(self._placement))
        price = self._weights.squeeze_price
        tightening = Tightening(self._placement, self.repair(limits), limits, price, self._go_on)
        self._lower_to_shares(tightening, limits)
        budgets = [members.excess * self._weights.room for members in self.sets]
        for what in self._weights.rounds.split():
            if self._stopped:
                break
            if what == "room":
                self._make_room(tightening, limits, budgets)
            else:
                limits.settle(self._weights.loosen)
                self._lower_maxima(tightening)
        limits.settle(0.0)
        return limits

    def _lower_to_shares(self, tightening: Tightening, limits: SearchConstraints) -> None:
        """What is still beyond an OSD's share leaves it, whatever it costs: an operator wants it.
        Others may become as full for it as the bound demands."""
        for members in self.sets:
            held = [i for i in members.osds if i in self._placement.held]
            if not held:
                continue
            top = members.top(self._placement)
            limits.set_water(members.osds, max(top, members.bound + members.shard))
            for i in held:
                tightening.lower_to(i, self._placement.held[i], members.osds)
            limits.set_water(members.osds, max(top, members.top(self._placement)))

    def _make_room(self, tightening: Tightening, limits: SearchConstraints, budgets: List[float]) -> None:
        """Every pool of an OSD set gets its part of the purse; what one leaves the next may use."""
        for number, members in enumerate(self.sets):
            if not members.restless:
                continue
            limits.set_water(members.osds, max(members.top(self._placement), members.bound + min(
                self._weights.lift, members.shard / 2.0)))
            groups = [group for group in self.data_groups
                      if self._placement.groups[group].members & members.known]
            for left, group in zip(range(len(groups), 0, -1), groups):
                if not self._go_on():
                    return
                share = budgets[number] / left
                unspent = tightening.make_room(group, self._costs.least_pressure[group],
                                            self._weights.room_worth * self._costs.worth[group],
                                            share)
                budgets[number] -= share - unspent

    def _lower_maxima(self, tightening: Tightening) -> None:
        weights = self._weights
        for members in self.sets:
            if not self._go_on():
                return
            if not members.restless:
                continue
            goal = min(_MOST_GOAL, max(_LEAST_GOAL, weights.goal * members.shard))
            step = max(_LEAST_STEP, weights.step * members.shard)
            tightening.lower_maximum(
                members.osds, members.bound + goal,
                members.worth(weights), step,
                weights.trouble * weights.squeeze_price * step)

"""One search for a better placement.

1. Evacuation: shards leave the OSDs that are being drained.
2. Descent: single moves off the fullest OSDs, at falling prices per byte.
3. Tightening: OSDs that an operator's weights hold to a share give what they have beyond it; then
   the highest utilization of each OSD set and the pressure of each data pool are lowered as far as
   it pays.
4. Reduction: moves that turned out not to be needed are reverted, and detours are shortened.

A search that is asked to end leaves a placement that is better than the initial one at any moment.
"""
from __future__ import annotations

from math import inf
from typing import Dict, List

from ...plan.usage import share_limits_within
from ...runtime.time_slice import give_way, piecewise, told_to_end
from ..bound.lower_bound import UtilizationBounds
from ..objective import PRESSURE, Weights, holds_data, keeps_space
from ..state.constraints import SearchConstraints, states_of
from ..state.cost_model import CostModel
from ..state.placement_state import PlacementState
from ..state.target_index import ShardIndex, TargetIndex
from .evacuation import drained_osds, evacuate
from .joint_moves import JointMoves
from .move_reduction import MoveReduction
from .relief import Relief
from .single_moves import Descent
from .tightening import Tightening

#: No step of tightening is smaller, whatever a shard's size: a ratio of an OSD.
_LEAST_STEP = 0.001

#: What returns may leave a place to others; later passes find little, as measured.
_REDUCTION_PASSES = 3

#: The last prices only refine; skipped if nothing has moved and all sets are near their bound.
_FINE_PRICES = 2


class Search:
    """One search over a placement, which it changes. `weights` are those of the objective."""

    def __init__(self, placement: PlacementState, bounds: UtilizationBounds,
                 weights: Weights) -> None:
        self._placement = placement
        self.weights = weights
        self.sets = [state for osd_set in piecewise(bounds.sets, 1)
                     for state in states_of(placement, osd_set, bounds, weights)]
        give_way()
        placement.set_share_limits(share_limits_within(placement.snapshot, bounds.utilizations))
        give_way()
        # the objective with each OSD's target and what is free there at its lowest utilization
        lowest = [bounds.utilizations[osd] for osd in placement.osd_ids]
        targets, typical = list(lowest), [0.0] * len(lowest)
        for osd_set in self.sets:
            for i in osd_set.osds:
                targets[i], typical[i] = osd_set.bound, osd_set.typical_shard_bytes
        full = placement.snapshot.full_ratio
        free = [max(0.0, (full - utilization) * size)
                for utilization, size in zip(lowest, placement.size_bytes)]
        for i, limit in placement.share_limit_bytes.items():
            targets[i] = limit / placement.size_bytes[i]
            free[i] = max(0.0, full * placement.capacity_bytes[i]
                          + placement.spared_bytes[i] - limit)
        self.costs = CostModel(placement, weights, targets, free, typical)
        self.targets = TargetIndex(self.costs)
        self.shard_index = ShardIndex(placement)
        self._joint_moves = JointMoves(self.costs, self.targets, self.shard_index)
        #: indices of the groups of pools whose free space matters
        self.data_groups = [
            group.index for group in placement.groups
            if group.shard_count and holds_data(self.costs.pool_weights[group.index])]
        # what operators' weights want to leave an OSD may cost pools space
        kept = [group.index for group in placement.groups if group.shard_count
                and keeps_space(self.costs.pool_weights[group.index])]
        levels = [0.0] * len(lowest)
        for osd_set in self.sets:
            level = osd_set.may_reach or osd_set.bound
            if level > osd_set.max_utilization(placement):   # shards are whole
                level += osd_set.typical_shard
            for i in osd_set.osds:
                levels[i] = level
        self.limits = SearchConstraints(placement, kept, 0.0 if any(
            placement.used_bytes[i] > limit for i, limit in placement.share_limit_bytes.items()
        ) else full / max([1e-9, *lowest]) - 1.0, levels)
        self.limits.tightened = frozenset(self.data_groups)

    def near_free_bytes(self) -> Dict[int, float]:
        """Data pool's id → the free space, in client bytes, below which it is far from what it can
        have."""
        near: Dict[int, float] = {}
        for index in self.data_groups:
            pool = self._placement.groups[index].pool
            free = pool.pg_num * pool.data_shards / self.costs.far_pressure[index]
            near[pool.id] = min(near.get(pool.id, free), free)
        return near

    def run(self, drain_only: bool = False) -> bool:
        """Searches to the end; False where it was told to end before. `drain_only`: nothing
        but the evacuation."""
        if drained_osds(self._placement):
            within = SearchConstraints(self._placement, (), 0.0)
            evacuate(self.costs, self.targets, self._joint_moves, self.relief(within), within)
            self.limits.tighten_to_current(inf)
        if drain_only:
            return not told_to_end()
        if give_way():
            self._descend()
        if not told_to_end():
            self._tighten(self.limits)
            self.reduce()
        return not told_to_end()

    def reduce(self) -> None:
        """Takes moves back as far as no maximum and no pool is the worse for it."""
        self.limits.tighten_to_current(0.0, of_pools=True)
        # each class as it is, with what nothing can leave: below that nothing is gained, but on
        # OSDs that alone may give, as an operator wants it
        is_source = self._placement.is_source
        for osd_set in self.sets:
            for may_give in (False, True):
                osds = [i for i in osd_set.osds if is_source[i] is may_give]
                self.limits.set_max_utilization(osds, max(
                    map(self._placement.utilization, osds), default=0.0))
        self.reduce_within_limits()

    def reduce_within_limits(self) -> None:
        """Takes moves back as far as the limits allow."""
        if self.weights.return_value:
            reduction = MoveReduction(self.costs, self.shard_index, self.limits,
                                      self.weights.return_value)
            for _ in range(_REDUCTION_PASSES):
                if not reduction.revert_unneeded() + reduction.shorten_detours():
                    break

    def relief(self, limits: SearchConstraints) -> Relief:
        """Builds what finds operations of relief within the limits."""
        return Relief(self.costs, self.targets, self.shard_index, self._joint_moves, limits,
                      self.weights.tightening_price)

    # -- descent -------------------------------------------------------------------------------

    def _descend(self) -> None:
        budgets = [osd_set.excess_bytes * self.weights.count_move_budget
                   for osd_set in self.sets] + [0.0]
        budget_of = [len(self.sets)] * len(self._placement.size_bytes)
        for number, osd_set in enumerate(self.sets):
            for i in osd_set.osds:
                budget_of[i] = number
        descent = Descent(self.costs, self.targets, self.shard_index, self._joint_moves,
                          self.limits, budgets, budget_of)
        prices = self.weights.prices
        for number, price in enumerate(prices):
            if (number >= len(prices) - _FINE_PRICES and not self._placement.change_log
                    and all(osd_set.is_near_bound(self._placement) for osd_set in self.sets)):
                break
            if not descent.run(price):
                return
        for osd_set in self.sets:
            osd_set.update_needs_tightening(self._placement)

    # -- tightening ----------------------------------------------------------------------------

    def _tighten(self, limits: SearchConstraints) -> None:
        """Tightens the limits in turn."""
        limits.tighten_to_current(0.0)
        for osd_set in self.sets:
            limits.set_max_utilization(
                osd_set.osds, max(osd_set.may_reach, osd_set.max_utilization(self._placement)))
        tightening = Tightening(self._placement, self.relief(limits), limits,
                                self.weights.tightening_price)
        self._enforce_shares(tightening, limits)
        budgets = [osd_set.excess_bytes * self.weights.pool_space_budget for osd_set in self.sets]
        for phase in self.weights.phases:
            if told_to_end():
                break
            if phase == PRESSURE:
                self._lower_pressures(tightening, limits, budgets)
            else:
                limits.tighten_to_current(self.weights.pressure_slack)
                for osd_set in self.sets:
                    if not give_way():
                        break
                    if osd_set.needs_tightening:
                        step = max(_LEAST_STEP, self.weights.step_shards * osd_set.typical_shard)
                        tightening.lower_max_utilization(
                            osd_set.osds, osd_set.helpers, osd_set.goal_above_bound(self.weights)
                            + min(osd_set.bound, osd_set.mean(self._placement)
                                  if osd_set.may_reach else osd_set.bound),
                            osd_set.value_of_lowering(self.weights), step,
                            self.weights.fixed_cost_steps * self.weights.tightening_price * step)

    def _enforce_shares(self, tightening: Tightening, limits: SearchConstraints) -> None:
        """Moves what is still beyond an OSD's share off it at any cost: an operator wants it.

        Other OSDs may become as full for it as the bound demands.
        """
        for osd_set in self.sets:
            held = [i for i in osd_set.osds if i in self._placement.share_limit_bytes]
            if not held:
                continue
            highest = osd_set.max_utilization(self._placement)
            limits.set_max_utilization(
                osd_set.osds, max(highest, osd_set.bound + osd_set.typical_shard))
            for i in held:
                tightening.lower_osd_to(i, self._placement.share_limit_bytes[i], osd_set.helpers)
            limits.set_max_utilization(
                osd_set.osds, max(highest, osd_set.max_utilization(self._placement)))

    def _lower_pressures(self, tightening: Tightening, limits: SearchConstraints,
                         budgets: List[float]) -> None:
        """Lowers each data pool's pressure: at any bytes while the pool is far from the space that
        it can have, then within an equal part of the set's budget of bytes; what one pool leaves
        the next ones may use."""
        costs, weights = self.costs, self.weights
        for number, osd_set in enumerate(self.sets):
            if not osd_set.needs_tightening:
                continue
            limits.set_max_utilization(osd_set.osds, max(
                osd_set.max_utilization(self._placement), osd_set.bound + min(
                    weights.max_rise, osd_set.typical_shard / 2.0)))
            groups = [group for group in self.data_groups
                      if not self._placement.groups[group].members.isdisjoint(osd_set.members)]
            for left, group in zip(range(len(groups), 0, -1), groups):
                if not give_way():
                    return
                weight, part = costs.pool_weights[group], budgets[number] / left
                pressures = limits.by_pressure(group)
                tightening.lower_pool_pressure(
                    group, pressures, costs.far_pressure[group], weights.far_space_value * weight,
                    float("inf"), left)
                unspent = tightening.lower_pool_pressure(
                    group, pressures, costs.min_pressure[group],
                    weights.pool_space_value * weight, part, left)
                budgets[number] -= part - unspent

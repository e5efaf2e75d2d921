"""One search for a better placement.

1. Evacuation: shards leave the OSDs that are being drained.
2. Descent: single moves off the fullest OSDs, at falling prices per byte.
3. Tightening: OSDs with lowered weights give the bytes above their share. Then the highest
   utilization of each OSD set and the pressure of each data pool are lowered as far as it pays.
4. Reduction: moves that turned out not to be needed are reverted, and detours are shortened.

A search can be told to end at any moment: the placement then has what it has gained so far.
"""
from __future__ import annotations

from math import inf
from typing import Callable, Dict, List

from ...plan.options import PlanOptions
from ...plan.usage import share_limits_within
from ...runtime.time_slice import give_way, piecewise, told_to_end
from ..bound.lower_bound import UtilizationBounds
from ..objective import (
    AIM_WEIGHTS, FAR_SPACE_VALUE, FIXED_COST_STEPS, POOL_SPACE_VALUE, PRESSURE, Weights, holds_data,
    keeps_space)
from ..state.constraints import OsdSetState, SearchConstraints, states_of
from ..state.cost_model import CostModel
from ..state.placement_state import PlacementState
from ..state.target_index import ShardIndex, TargetIndex
from .evacuation import drained_osds, evacuate
from .joint_moves import JointMoves
from .move_reduction import MoveReduction
from .relief import Relief
from .single_moves import Descent
from .tightening import Tightening

#: The first step of tightening a utilization is at least this ratio of an OSD, even if shards are
#: smaller.
_LEAST_STEP = 0.001

#: Passes over all displaced shards, because a return may make way for others. More passes would
#: find little, as measured.
_REDUCTION_PASSES = 3

#: So many prices at the end only refine. They are skipped if nothing has moved and all sets are
#: near their bounds.
_FINE_PRICES = 2


def first_search(placement: PlacementState, bounds: UtilizationBounds,
                 options: PlanOptions) -> Search:
    """Returns a search by the first weights of the aim."""
    return Search(placement, bounds, AIM_WEIGHTS[options.aim][0])


class Search:
    """One search over a placement, which it changes. `weights` are those of the objective."""

    def __init__(self, placement: PlacementState, bounds: UtilizationBounds,
                 weights: Weights) -> None:
        self._placement = placement
        self.weights = weights
        self.sets: List[OsdSetState] = []
        for osd_set in piecewise(bounds.sets, 1):
            self.sets += states_of(placement, osd_set, bounds, weights)
        placement.set_share_limits(share_limits_within(placement.snapshot, bounds.utilizations))
        give_way()
        lowest = [bounds.utilizations[osd] for osd in placement.osd_ids]
        self.costs = self._cost_model(lowest)
        self.targets = TargetIndex(self.costs)
        self.shard_index = ShardIndex(placement)
        self._joint_moves = JointMoves(self.costs, self.targets, self.shard_index)
        #: indices of the groups of pools whose free space matters
        self.data_groups = self._groups_by_weight(holds_data)
        #: the growth of all data with which everything still fits, a ratio
        self.room = placement.snapshot.full_ratio / max([1e-9, *lowest]) - 1.0
        room = 0.0 if self._has_to_relieve() else self.room
        self.limits = SearchConstraints(placement, self._groups_by_weight(keeps_space), room,
                                        self._levels())
        self.limits.tightened = frozenset(self.data_groups)

    def _cost_model(self, lowest: List[float]) -> CostModel:
        """Returns the objective, with the target and the free bytes of each OSD at its lowest
        utilization."""
        placement = self._placement
        targets = list(lowest)
        typical = [0.0] * len(lowest)
        for osd_set in self.sets:
            for i in osd_set.osds:
                targets[i], typical[i] = osd_set.bound, osd_set.typical_shard_bytes
        full = placement.snapshot.full_ratio
        free = [max(0.0, (full - utilization) * size)
                for utilization, size in zip(lowest, placement.size_bytes)]
        for i, limit in placement.share_limit_bytes.items():
            targets[i] = limit / placement.size_bytes[i]
            usable = full * placement.capacity_bytes[i] + placement.spared_bytes[i]
            free[i] = max(0.0, usable - limit)
        return CostModel(placement, self.weights, targets, free, typical)

    def _groups_by_weight(self, is_enough: Callable[[float], bool]) -> List[int]:
        """Returns the groups with shards whose pools have enough weight."""
        pool_weights = self.costs.pool_weights
        return [group.index for group in self._placement.groups
                if group.shard_count and is_enough(pool_weights[group.index])]

    def _has_to_relieve(self) -> bool:
        """Returns True if an OSD with a lowered weight has to give bytes: that may cost pools
        space."""
        placement = self._placement
        return any([placement.used_bytes[i] > limit
                    for i, limit in placement.share_limit_bytes.items()])

    def _levels(self) -> List[float]:
        """Returns the highest utilization to fill each OSD to."""
        levels = [0.0] * len(self._placement.size_bytes)
        for osd_set in self.sets:
            level = osd_set.may_reach or osd_set.bound
            if level > osd_set.max_utilization(self._placement):   # shards are whole
                level += osd_set.typical_shard
            for i in osd_set.osds:
                levels[i] = level
        return levels

    def near_free_bytes(self) -> Dict[int, float]:
        """Returns data pool's id → the free space, in client bytes, below which the pool is far
        from the space that it can have."""
        near: Dict[int, float] = {}
        for index in self.data_groups:
            pool = self._placement.groups[index].pool
            free = pool.chunks / self.costs.far_pressure[index]
            near[pool.id] = min(near.get(pool.id, free), free)
        return near

    def run(self, drain_only: bool = False) -> bool:
        """Searches; returns False if it was told to end before. `drain_only`: only evacuates."""
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
        """Reverts moves as far as no maximum rises and no pool loses space."""
        self.limits.tighten_to_current(0.0, of_pools=True)
        for osd_set in self.sets:
            self.limits.keep_highest(osd_set.osds)
        self.reduce_within_limits()

    def reduce_within_limits(self) -> None:
        """Reverts moves as far as the limits allow."""
        value = self.weights.return_value
        if value:
            reduction = MoveReduction(self.costs, self.shard_index, self._joint_moves,
                                      self.limits, value)
            for _ in range(_REDUCTION_PASSES):
                if not reduction.revert_unneeded() + reduction.shorten_detours():
                    break

    def relief(self, limits: SearchConstraints) -> Relief:
        """Returns a finder of relief operations within the limits."""
        return Relief(self.costs, self.targets, self.shard_index, self._joint_moves, limits,
                      self.weights.tightening_price)

    # -- descent -------------------------------------------------------------------------------

    def _descend(self) -> None:
        """Makes single and joint moves at falling prices."""
        set_of: Dict[int, OsdSetState] = {}
        for osd_set in self.sets:
            set_of.update(dict.fromkeys(osd_set.osds, osd_set))
        descent = Descent(self.costs, self.targets, self.shard_index, self._joint_moves,
                          self.limits, set_of)
        prices = self.weights.prices
        fine = prices[-_FINE_PRICES:]
        for price in prices:
            if price in fine and self._is_at_rest():
                break
            if not descent.run(price):
                return
        for osd_set in self.sets:
            osd_set.update_needs_tightening(self._placement)

    def _is_at_rest(self) -> bool:
        """Returns True if nothing has moved and all sets are near their bounds."""
        if self._placement.change_log:
            return False
        return all([osd_set.is_near_bound(self._placement) for osd_set in self.sets])

    # -- tightening ----------------------------------------------------------------------------

    def _tighten(self, limits: SearchConstraints) -> None:
        """Tightens the limits, one phase after the other."""
        weights = self.weights
        limits.tighten_to_current(0.0)
        for osd_set in self.sets:
            limits.set_max_utilization(
                osd_set.osds, max(osd_set.may_reach, osd_set.max_utilization(self._placement)))
        tightening = Tightening(self._placement, self.relief(limits), limits,
                                weights.tightening_price)
        self._enforce_shares(tightening, limits)
        for phase in weights.phases:
            if told_to_end():
                break
            if phase == PRESSURE:
                self._lower_pressures(tightening, limits)
            else:
                limits.tighten_to_current(weights.pressure_slack)
                self._lower_utilizations(tightening)

    def _lower_utilizations(self, tightening: Tightening) -> None:
        """Lowers the highest utilization of each set."""
        weights = self.weights
        for osd_set in self.sets:
            if not give_way():
                return
            if not osd_set.needs_tightening:
                continue
            step = max(_LEAST_STEP, weights.step_shards * osd_set.typical_shard)
            lowest = osd_set.bound
            if osd_set.may_reach:
                lowest = min(lowest, osd_set.mean(self._placement))
            tightening.lower_max_utilization(
                osd_set.osds, osd_set.helpers, osd_set.goal_above_bound(weights) + lowest,
                osd_set.value_of_lowering(weights), step,
                FIXED_COST_STEPS * weights.tightening_price * step)

    def _enforce_shares(self, tightening: Tightening, limits: SearchConstraints) -> None:
        """Moves the bytes above an OSD's share off it at any cost, because an operator wants it.

        For this, other OSDs of its class may rise to a typical shard above the bound.
        """
        placement = self._placement
        share_limits = placement.share_limit_bytes
        for osd_set in self.sets:
            osds = osd_set.osds
            held = [i for i in osds if i in share_limits]
            if not held:
                continue
            highest = osd_set.max_utilization(placement)
            limits.set_max_utilization(osds, max(highest, osd_set.bound + osd_set.typical_shard))
            for i in held:
                tightening.lower_osd_to(i, share_limits[i], osd_set.helpers)
            limits.set_max_utilization(osds, max(highest, osd_set.max_utilization(placement)))

    def _lower_pressures(self, tightening: Tightening, limits: SearchConstraints) -> None:
        """Lowers the pressure of each data pool.

        Bytes do not matter while the pool is far from the space that it can have. Then each pool
        may use an equal part of the set's budget of bytes; the rest is for the next pools.
        """
        costs = self.costs
        for osd_set in self.sets:
            if not osd_set.needs_tightening:
                continue
            rise = min(self.weights.max_rise, osd_set.typical_shard / 2.0)
            limits.set_max_utilization(osd_set.osds, max(
                osd_set.max_utilization(self._placement), osd_set.bound + rise))
            groups = [group for group in self.data_groups
                      if not self._placement.groups[group].members.isdisjoint(osd_set.members)]
            for left, group in zip(range(len(groups), 0, -1), groups):
                if not give_way():
                    return
                weight = costs.pool_weights[group]
                part = osd_set.space_budget / left
                pressures = limits.by_pressure(group)
                tightening.lower_pool_pressure(
                    group, pressures, costs.far_pressure[group], FAR_SPACE_VALUE * weight,
                    inf, left)
                unspent = tightening.lower_pool_pressure(
                    group, pressures, costs.min_pressure[group], POOL_SPACE_VALUE * weight,
                    part, left)
                osd_set.space_budget -= part - unspent

"""Reverts moves that turned out not to be needed, after the limits are as tight as they get.

A move is reverted if all limits hold without it. An exchange shortens a detour: a shard left an
OSD, and another shard of about its size came there. Then the first shard returns, and the newcomer
goes to the OSD that the first shard had gone to. Both OSDs stay about as full, and keep their
number of shards of the pool, with one move instead of two.
"""
from __future__ import annotations

from bisect import bisect_left
from typing import Sequence

from ...runtime.time_slice import give_way
from ..state.constraints import SearchConstraints
from ..state.cost_model import NOISE, CostModel
from ..state.placement_state import ShardMove
from ..state.target_index import ShardIndex

#: So many shards that are a little smaller, and so many that are a little larger, are tried.
_NEAR = 4


class MoveReduction:
    """Reverts moves within the limits.

    `price`: of a displaced byte (utilization). A byte that returns may cost as much.
    """

    def __init__(self, costs: CostModel, shard_index: ShardIndex, limits: SearchConstraints,
                 price: float) -> None:
        self._costs = costs
        self._placement = costs.placement
        self._shard_index = shard_index
        self._limits = limits
        self._price = price

    def revert_unneeded(self) -> int:
        """Returns displaced shards to their initial OSDs if all limits hold, and their number."""
        placement = self._placement
        returned = 0
        for negative, pg, source, group in self._shard_index.all_displaced():
            if not give_way():
                break
            for initial in placement.initial_osds(pg, source, group):
                if not self._return_pays(source, initial, -negative, group):
                    continue
                if placement.is_legal(pg, source, initial):
                    placement.move(pg, source, initial)
                    returned += 1
                    break
        return returned

    def _return_pays(self, source: int, initial: int, size: int, group: int) -> bool:
        """Returns True if a shard may return within the limits, and that costs less than it
        saves."""
        if not self._limits.fits(initial, size, group, -1):
            return False
        costs = self._costs
        gain = costs.utilization_gain(source, initial, size)
        gain += costs.count_gain_on_leave(group, source)
        gain -= costs.count_loss_on_enter(group, initial)
        gain += self._price * size
        gain += costs.move_cost[initial]
        return gain > 0.0

    def shorten_detours(self) -> int:
        """Tries each displaced shard once, the largest first; returns how many have returned."""
        placement = self._placement
        returned = 0
        for _, pg, osd, group in self._shard_index.all_displaced():
            if not give_way():
                break
            if osd in placement.up[pg]:   # else an exchange has moved it already
                returned += self._exchange(pg, osd, group)
        return returned

    def _exchange(self, pg: int, osd: int, group: int) -> bool:
        """Returns a displaced shard by the best exchange; False if no exchange gains."""
        placement = self._placement
        limits = self._limits
        size = placement.size_on(pg, osd)
        best: Sequence[ShardMove] = ()
        least = NOISE
        for initial in placement.initial_osds(pg, osd, group):
            newcomers = self._newcomers(initial, group, size)
            if not newcomers or not placement.is_legal(pg, osd, initial):
                continue
            refund = self._refund(pg, osd, initial)
            for other in newcomers:
                placement.candidates_examined += 1
                more = size - placement.size_on(other, initial)
                # counts stay, and no group's pressure may rise
                if not limits.fits(initial, more, -1, -1) or not limits.fits(osd, -more, -1, -1):
                    continue
                saved = refund + self._refund(other, initial, osd)
                gain = self._costs.utilization_gain(osd, initial, more) + saved
                if gain <= least or not placement.is_legal(other, initial, osd):
                    continue
                steps = (pg, osd, initial), (other, initial, osd)
                if placement.has_upmap_pairs(steps):
                    best = steps
                    least = gain
        for step in best:
            placement.move(*step)
        return bool(best)

    def _newcomers(self, initial: int, group: int, size: int) -> Sequence[int]:
        """Returns the PGs whose displaced shards of the group on the OSD have about the size."""
        _, displaced = self._shard_index.by_group(initial).get(group, ((), ()))
        at = bisect_left(displaced, (size, -1))
        return [other for _, other in displaced[max(0, at - _NEAR):at + _NEAR]]

    def _refund(self, pg: int, source: int, target: int) -> float:
        """Returns the price of displacing a shard if it returns by the move, else 0."""
        if target not in self._placement.initial_up[pg]:
            return 0.0
        return self._price * self._placement.size_on(pg, source) + self._costs.move_cost[target]

"""Reverts moves that turned out not to be needed, after the limits are as tight as they get.

A move is reverted if all limits hold without it. An exchange shortens a detour: a shard left an
OSD, and another shard of about its size came there. Then the first shard returns, and the newcomer
goes to the OSD that the first shard had gone to. Both OSDs stay about as full, and keep their
number of shards of the pool, with one move instead of two.
"""
from __future__ import annotations

from bisect import bisect_left
from typing import Callable, Sequence, Tuple

from ...runtime.time_slice import give_way
from ..state.constraints import SearchConstraints
from ..state.cost_model import NOISE, CostModel
from ..state.placement_state import ShardMove
from ..state.target_index import ShardIndex
from .joint_moves import JointMoves

#: So many shards that are a little smaller, and so many that are a little larger, are tried.
_NEAR = 4


class MoveReduction:
    """Reverts moves within the limits.

    `price`: of a displaced byte (utilization). A byte that returns may cost as much.
    """

    def __init__(self, costs: CostModel, shard_index: ShardIndex, joint_moves: JointMoves,
                 limits: SearchConstraints, price: float) -> None:
        self._costs = costs
        self._placement = costs.placement
        self._shard_index = shard_index
        self._joint_moves = joint_moves
        self._limits = limits
        self._price = price

    def revert_unneeded(self) -> int:
        """Moves displaced shards back to their initial OSDs within the limits, if that costs less
        than it saves; returns how many."""
        return self._over_displaced(self._revert)

    def shorten_detours(self) -> int:
        """Tries exchanges of each displaced shard; returns how many shards are back."""
        return self._over_displaced(self._exchange)

    def _over_displaced(self, returns: Callable[[int, int, int], int]) -> int:
        """Calls a function of PG, OSD and group once for each displaced shard, the largest first;
        returns the sum of its results: how many shards have returned."""
        returned = 0
        for _, pg, osd, group in self._shard_index.all_displaced():
            if not give_way():
                break
            if osd in self._placement.up[pg]:   # else it has moved with another shard
                returned += returns(pg, osd, group)
        return returned

    def _revert(self, pg: int, source: int, group: int) -> int:
        """Moves a displaced shard, or else all shards of its PG in its bucket together, back to the
        initial OSDs; returns how many."""
        placement = self._placement
        for initial in placement.initial_osds(pg, source, group):
            if self._pays(((pg, source, initial),)) and placement.is_legal(pg, source, initial):
                placement.move(pg, source, initial)
                return 1
        together = self._joint_moves.return_moves(pg, source, placement.groups[group])
        if not together or not self._pays(together) or not placement.is_legal_joint(together):
            return 0
        for step in together:
            placement.move(*step)
        return len(together)

    def _pays(self, steps: Tuple[ShardMove, ...]) -> bool:
        """Returns True if shards may return within the limits, and that costs less than it
        saves."""
        fits = self._joint_moves.fits(steps, self._limits)
        return fits and self._costs.gain(steps, self._price) > 0.0

    def _exchange(self, pg: int, osd: int, group: int) -> bool:
        """Moves a displaced shard back by the best exchange; returns False if no exchange gains."""
        placement = self._placement
        limits = self._limits
        costs = self._costs
        price = self._price
        size = placement.size_on(pg, osd)
        best: Sequence[ShardMove] = ()
        least = NOISE
        for initial in placement.initial_osds(pg, osd, group):
            newcomers = self._newcomers(initial, group, size)
            if not newcomers or not placement.is_legal(pg, osd, initial):
                continue
            cost = costs.displacement_cost(pg, osd, initial, size, price)
            for other in newcomers:
                placement.candidates_examined += 1
                size_of_other = placement.size_on(other, initial)
                more = size - size_of_other
                # counts stay, and no group's pressure may rise
                if not limits.fits(initial, more, -1, -1) or not limits.fits(osd, -more, -1, -1):
                    continue
                both = cost + costs.displacement_cost(other, initial, osd, size_of_other, price)
                gain = costs.utilization_gain(osd, initial, more) - both
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
        """Returns the PGs that have displaced shards of the group, of about `size` bytes, on the
        OSD `initial`."""
        _, displaced = self._shard_index.by_group(initial).get(group, ((), ()))
        at = bisect_left(displaced, (size, -1))
        return [other for _, other in displaced[max(0, at - _NEAR):at + _NEAR]]

"""Takes back what turned out not to be needed, once limits are as tight as they get.

Moves are reverted where all limits hold without them. Exchanges let a displaced shard return and
another one go in its place, so that both OSDs are about as full as before: a detour, where a shard
left an OSD and another of about its size came to it, is shortened, and the newcomer goes on to
where the first one went. One move instead of two, and the same number of shards of the pool on each
OSD.
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


#: Shards that are tried, of those that are a little smaller and of those a little larger.
_NEAR = 4


class MoveReduction:
    """Takes moves back within the limits. `price` is that of a displaced byte (utilization): a byte
    that returns may cost as much."""

    def __init__(self, costs: CostModel, shard_index: ShardIndex, joint_moves: JointMoves,
                 limits: SearchConstraints, price: float) -> None:
        self._costs = costs
        self._placement = costs.placement
        self._shard_index = shard_index
        self._joint_moves = joint_moves
        self._limits = limits
        self._price = price

    def revert_unneeded(self) -> int:
        """Returns displaced shards to where they were where all limits hold; how many have."""
        placement = self._placement
        returned = 0
        for negative, pg, source, group in self._shard_index.all_displaced():
            if not give_way():
                break
            if source not in placement.up[pg]:
                continue  # it has returned in a joint move
            for initial in placement.initial_osds(pg, source, group):
                step = pg, source, initial
                if self._pays((step,), -negative, group) and placement.is_legal(*step):
                    placement.move(*step)
                    returned += 1
                    break
            else:
                together = self._joint_moves.return_moves(pg, source, placement.groups[group])
                if together and self._pays(together, -negative, group) and (
                        placement.is_legal_joint(together)):
                    for step in together:
                        placement.move(*step)
                        returned += 1
        return returned

    def _pays(self, steps: Tuple[ShardMove, ...], size: int, group: int) -> bool:
        return (all([self._limits.fits(initial, size, group, -1) for _, _, initial in steps])
                and self._joint_moves.gain(steps, self._price) > 0.0)

    def shorten_detours(self) -> int:
        """Tries each displaced shard once, the largest first; returns how many have returned."""
        placement = self._placement
        returned = 0
        for _, pg, osd, group in self._shard_index.all_displaced():
            if not give_way():
                break
            if osd in placement.up[pg]:
                size = placement.size_on(pg, osd)

                def newcomers(initial: int) -> Sequence[int]:
                    """Displaced shards of the group there, of about the size."""
                    _, displaced = self._shard_index.by_group(initial).get(group, ((), ()))
                    at = bisect_left(displaced, (size, -1))
                    return [other for _, other in displaced[max(0, at - _NEAR):at + _NEAR]]

                def worth(initial: int, other: int) -> Tuple[int, float]:
                    return size - placement.size_on(other, initial), (
                        self._refund(pg, osd, initial) + self._refund(other, initial, osd))
                returned += self._exchange(pg, osd, group, newcomers, worth, NOISE)
        return returned

    def _refund(self, pg: int, source: int, target: int) -> float:
        """The price of displacing a shard, where it returns by the move; 0 where it does not."""
        if target not in self._placement.initial_up[pg]:
            return 0.0
        return self._price * self._placement.size_on(pg, source) + self._costs.move_cost[target]

    def _exchange(self, pg: int, osd: int, group: int, others_on: Callable[[int], Sequence[int]],
                  worth: Callable[[int, int], Tuple[int, float]], least: float) -> bool:
        """Makes the exchange by which a displaced shard returns that gains most, and more than
        `least`; False where there is none.

        `others_on` tells the PGs whose shard on an initial OSD may go in its place, `worth` the
        bytes that come to the initial OSD by it, and the price that is saved.
        """
        placement, limits = self._placement, self._limits
        best: Sequence[ShardMove] = ()
        for initial in placement.initial_osds(pg, osd, group):
            others = others_on(initial)
            if not others or not placement.is_legal(pg, osd, initial):
                continue
            for other in others:
                placement.candidates_examined += 1
                more, saved = worth(initial, other)
                # counts stay, and no group's pressure may rise
                if limits.fits(initial, more, -1, -1) and limits.fits(osd, -more, -1, -1):
                    gain = self._costs.utilization_gain(osd, initial, more) + saved
                    steps = (pg, osd, initial), (other, initial, osd)
                    if gain > least and placement.is_legal(other, initial, osd) and (
                            placement.has_upmap_pairs(steps)):
                        best, least = steps, gain
        for step in best:
            placement.move(*step)
        return bool(best)

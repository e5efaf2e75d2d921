"""Shortens detours: a shard that left an OSD, and another of about its size that came to it.

Both are displaced and the OSD is as full as before. If the newcomer goes on to where the first
shard went, the first one can return: one move instead of two, nearly the same utilizations, and the
same number of shards of the pool on each OSD.
"""
from __future__ import annotations

from bisect import bisect_left
from typing import AbstractSet, Optional, Sequence, Tuple

from ...runtime.time_slice import give_way
from ..state.constraints import SearchConstraints
from ..state.cost_model import NOISE, CostModel
from ..state.placement_state import ShardMove
from ..state.shard_index import ShardIndex

#: Shards that are tried, of those that are a little smaller and of those a little larger.
_NEAR = 4


class DetourShortcuts:
    """Finds and shortens detours within the limits. `price` is that of a displaced byte."""

    def __init__(self, costs: CostModel, shard_index: ShardIndex, limits: SearchConstraints,
                 price: float) -> None:
        self._costs = costs
        self._placement = costs.placement
        self._shard_index = shard_index
        self._limits = limits
        self._price = price

    def shorten(self, pgs: Optional[AbstractSet[int]] = None) -> int:
        """Tries each displaced shard once, or those of some PGs, the largest first; returns how
        many have returned."""
        placement = self._placement
        returned = 0
        for _, pg, osd, group in self._shard_index.all_displaced(pgs):
            if not give_way():
                break
            if osd in placement.up[pg]:
                steps = self._best(pg, osd, group)
                for step in steps or ():
                    placement.move(*step)
                returned += steps is not None
        return returned

    def _best(self, pg: int, osd: int, group: int) -> Optional[Tuple[ShardMove, ...]]:
        """The exchange by which a displaced shard returns at the least loss, or None."""
        placement = self._placement
        best: Optional[Tuple[ShardMove, ...]] = None
        best_gain = NOISE
        for initial in placement.initial_osds(pg, osd, group):
            newcomers = self._newcomers(initial, group, placement.size_on(pg, osd))
            if not newcomers or not placement.is_legal(pg, osd, initial):
                continue
            for size, other in newcomers:
                placement.candidates_examined += 1
                more = placement.size_on(pg, osd) - size
                if other == pg or not (self._limits.fits(initial, more, group, group)
                                       and self._limits.fits(osd, -more, group, group)):
                    continue
                gain = (self._costs.utilization_gain(osd, initial, more)
                        + self._refund(pg, osd, initial) + self._refund(other, initial, osd))
                if gain > best_gain and placement.is_legal(other, initial, osd):
                    best, best_gain = ((pg, osd, initial), (other, initial, osd)), gain
        return best

    def _refund(self, pg: int, source: int, target: int) -> float:
        """The price of displacing a shard, where it returns by the move; 0 where it does not."""
        if target not in self._placement.initial_up[pg]:
            return 0.0
        return self._price * self._placement.size_on(pg, source) + self._costs.move_cost[source]

    def _newcomers(self, osd: int, group: int, size: int) -> Sequence[Tuple[int, int]]:
        """(bytes, PG) of displaced shards of a group on an OSD, of about `size` bytes."""
        _, displaced = self._shard_index.by_group(osd).get(group, ((), ()))
        at = bisect_left(displaced, (size, -1))
        return displaced[max(0, at - _NEAR):at + _NEAR]

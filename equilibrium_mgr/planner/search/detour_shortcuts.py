"""Going straight: where a shard left an OSD and another of about its size came in its place.

Both moved, and the OSD is as full as before. If the newcomer goes on to where the first one went,
the first one may come back: one move instead of two, nearly the same levels, and the same number
of shards of the pool on each OSD. It is also what keeps OSDs at their level from taking and giving.
"""
from __future__ import annotations

from bisect import bisect_left
from typing import Optional, Sequence, Tuple

from ...runtime.checkpoints import Checkpoint
from ..state.constraints import SearchConstraints
from ..state.cost_model import NOISE, CostModel
from ..state.placement_state import ShardMove
from ..state.shard_index import ShardIndex

#: Shards that are tried, of those that are a little smaller and of those a little larger.
_NEAR = 4


class DetourShortcuts:
    """Finds and shortens them, within the limits. `price` is what a displaced byte costs."""

    def __init__(self, costs: CostModel, shard_index: ShardIndex, limits: SearchConstraints, price: float) -> None:
        self._costs = costs
        self._placement = costs.placement
        self._shard_index = shard_index
        self._limits = limits
        self._price = price

    def shorten(self, checkpoint: Checkpoint) -> int:
        """Passes once over all displaced shards, the largest first; how many came home."""
        placement = self._placement
        displaced = sorted((-size, pg, osd, group) for osd in range(len(placement.used_bytes))
                           for size, pg, group in self._shard_index.displaced(osd))
        came_home = 0
        for _, pg, osd, group in displaced:
            if not checkpoint():
                break
            if osd in placement.up[pg]:
                steps = self._best(pg, osd, group)
                for step in steps or ():
                    placement.move(*step)
                came_home += steps is not None
        return came_home

    def _best(self, pg: int, osd: int, group: int) -> Optional[Tuple[ShardMove, ...]]:
        """The exchange by which a displaced shard comes home at the least loss, or None."""
        placement = self._placement
        best: Optional[Tuple[ShardMove, ...]] = None
        most = NOISE
        for home in placement.initial_osds(pg, osd, group):
            newcomers = self._newcomers(home, group, placement.pg_bytes[pg])
            if not newcomers or not placement.is_legal(pg, osd, home):
                continue
            for size, other in newcomers:
                placement.candidates_examined += 1
                more = placement.pg_bytes[pg] - size
                if other == pg or not (self._limits.fits(home, more, group, group)
                                       and self._limits.fits(osd, -more, group, group)):
                    continue
                gain = (self._costs.utilization_gain(osd, home, more) + self._refund(pg, osd, home)
                        + self._refund(other, home, osd))
                if gain > most and placement.is_legal(other, home, osd):
                    best, most = ((pg, osd, home), (other, home, osd)), gain
        return best

    def _refund(self, pg: int, source: int, target: int) -> float:
        """What displacing a shard has cost, where it comes home; 0 for one that goes on."""
        if target not in self._placement.initial_up[pg]:
            return 0.0
        return self._price * self._placement.pg_bytes[pg] + self._costs.move_cost[source]

    def _newcomers(self, osd: int, group: int, size: int) -> Sequence[Tuple[int, int]]:
        """(bytes, PG) of displaced shards of a group on an OSD, about as large as wanted."""
        _, displaced = self._shard_index.by_group(osd).get(group, ((), ()))
        at = bisect_left(displaced, (size, -1))
        return displaced[max(0, at - _NEAR):at + _NEAR]

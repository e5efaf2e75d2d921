"""Exchanges moves for others that drop upmap items: the same OSDs, about the same bytes.

A shard has come to an OSD, and another one of its pool, on the OSD that it left, is held there by
upmap items and wanted by CRUSH where the first has gone. If the first returns and the other goes,
both OSDs are as full as before, with fewer items.
"""
from __future__ import annotations

from typing import Dict, List, Optional, Tuple

from ...runtime.time_slice import give_way
from ..state.constraints import SearchConstraints
from ..state.cost_model import CostModel
from ..state.placement_state import ShardMove
from ..state.shard_index import ShardIndex

#: What dropping items may cost: of the price of the moved bytes.
_WORTH = 0.05


class PinExchanges:
    """Finds exchanges within the limits. `price` is that of a displaced byte (utilization)."""

    def __init__(self, costs: CostModel, shard_index: ShardIndex, limits: SearchConstraints,
                 price: float) -> None:
        self._costs = costs
        self._placement = costs.placement
        self._shard_index = shard_index
        self._limits = limits
        self._price = price
        #: (OSD, OSD that CRUSH wants) → PGs with a shard held there
        self._held: Dict[Tuple[int, int], List[int]] = {}
        for osd, pinned in self._placement.pinned.items():
            for pg, target in pinned:
                self._held.setdefault((osd, target), []).append(pg)

    def run(self) -> int:
        """Tries each displaced shard once, the largest first; returns how many have returned."""
        placement = self._placement
        returned = 0
        for _, pg, osd, group in self._shard_index.all_displaced():
            if not give_way():
                break
            if osd in placement.up[pg] and osd not in placement.raw_up[pg]:
                steps = self._best(pg, osd, group)
                for step in steps or ():
                    placement.move(*step)
                returned += steps is not None
        return returned

    def _best(self, pg: int, osd: int, group: int) -> Optional[Tuple[ShardMove, ...]]:
        """The exchange by which a displaced shard returns at the least loss, or None."""
        placement, size = self._placement, self._placement.pg_bytes[pg]
        best: Optional[Tuple[ShardMove, ...]] = None
        least = -_WORTH * self._price * size
        for initial in placement.initial_osds(pg, osd, group):
            held = self._held.get((initial, osd), ())
            if not held or not placement.is_legal(pg, osd, initial):
                continue
            for other in held:
                if other == pg or not self._can_go(other, initial, osd, group):
                    continue
                placement.candidates_examined += 1
                more = size - placement.pg_bytes[other]
                if not (self._limits.fits(initial, more, group, group)
                        and self._limits.fits(osd, -more, group, group)):
                    continue
                gain = (self._costs.utilization_gain(osd, initial, more) + self._price * more)
                if gain > least and placement.is_legal(other, initial, osd):
                    best, least = ((pg, osd, initial), (other, initial, osd)), gain
        return best

    def _can_go(self, pg: int, source: int, target: int, group: int) -> bool:
        """True where a held shard is still there, and of the same group."""
        up = self._placement.up[pg]
        return (source in up and target not in up
                and self._placement.group_of(pg, source) == group)

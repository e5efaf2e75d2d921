"""The groups on a source by what their counts gain, kept from one question to the next.

With a hundred pools on an OSD it takes longer to sort their groups than to use them, and a move
changes one group on two OSDs.
"""
from __future__ import annotations

from bisect import bisect_left, insort
from typing import Dict, List, Tuple

from ...runtime.time_slice import piecewise
from ..state.cost_model import CostModel
from ..state.shard_index import ShardIndex
from ..state.target_index import TargetIndex

RankedGroup = Tuple[float, int]   # (-gain of its count when a shard leaves, group), best first

_SOURCES_A_PIECE = 200   # freed before it gives way again: a few milliseconds


class SharingGroups:
    """Groups on a source that share a list of targets, and the sizes of their shards there."""

    __slots__ = ("ranked", "displaced", "least", "largest")

    def __init__(self) -> None:
        self.ranked: List[RankedGroup] = []
        self.displaced: List[RankedGroup] = []   # those of them with displaced shards
        self.least = 0                           # bytes; 0, 0 where they are to be read again
        self.largest = 0


class SourceGroups:
    """Groups by source, for sources that were asked for."""

    def __init__(self, costs: CostModel, targets: TargetIndex, shard_index: ShardIndex) -> None:
        self._costs = costs
        self._placement = costs.placement
        self._targets = targets
        self._shard_index = shard_index
        self._known: Dict[int, Dict[int, SharingGroups]] = {}   # source → list's id → groups
        self._placement.observers.append(self._on_move)

    def forget(self) -> None:
        """Frees what is kept, in pieces, and follows no more moves."""
        self._placement.observers.remove(self._on_move)
        for source in piecewise(list(self._known), _SOURCES_A_PIECE):
            del self._known[source]

    def of(self, source: int) -> List[SharingGroups]:
        """The groups on a source, those first whose best one is best."""
        known = self._known.get(source)
        if known is None:
            known = self._known[source] = self._read(source)
        for sharing in known.values():
            if not sharing.largest:
                self._measure(source, sharing)
        if len(known) == 1:
            return list(known.values())
        return sorted(known.values(), key=lambda sharing: sharing.ranked[0])

    def _read(self, source: int) -> Dict[int, SharingGroups]:
        found: Dict[int, SharingGroups] = {}
        for group, lists in self._shard_index.by_group(source).items():
            entry = self._ranked(source, group, self._placement.groups[group].counts[source])
            sharing = found.setdefault(self._targets.list_id(group, source), SharingGroups())
            sharing.ranked.append(entry)
            if lists[1]:
                sharing.displaced.append(entry)
        for sharing in found.values():
            sharing.ranked.sort()
            sharing.displaced.sort()
        return found

    def _ranked(self, source: int, group: int, count: int) -> RankedGroup:
        """For a source that holds `count` shards of the group."""
        return -self._costs.last_shard_cost(group, source, count), group

    def _measure(self, source: int, sharing: SharingGroups) -> None:
        grouped = self._shard_index.by_group(source)
        lists = [shards for _, group in sharing.ranked for shards in grouped[group] if shards]
        sharing.least = min([shards[0][0] for shards in lists])
        sharing.largest = max([shards[-1][0] for shards in lists])

    def _on_move(self, pg: int, source: int, target: int, group: int) -> None:
        for osd in (source, target):
            known = self._known.get(osd)
            if known is not None:
                self._update(known, osd, group, self._placement.bytes_of[group][pg],
                             osd == target)

    def _update(self, known: Dict[int, SharingGroups], osd: int, group: int, size: int,
                present: bool) -> None:
        """After a shard of the group has left, or come where it is present now."""
        name = self._targets.list_id(group, osd)
        sharing = known.setdefault(name, SharingGroups())
        count = self._placement.groups[group].counts[osd]
        old = self._ranked(osd, group, count - 1 if present else count + 1)
        lists = self._shard_index.by_group(osd).get(group)
        for ranked, stays in ((sharing.ranked, lists is not None),
                              (sharing.displaced, lists is not None and bool(lists[1]))):
            at = bisect_left(ranked, old)
            if at < len(ranked) and ranked[at] == old:
                del ranked[at]
            if stays:
                insort(ranked, self._ranked(osd, group, count))
        if not sharing.ranked:
            del known[name]
        elif not present and size in (sharing.least, sharing.largest):
            sharing.least = sharing.largest = 0
        elif present and sharing.largest:
            sharing.least, sharing.largest = min(sharing.least, size), max(sharing.largest, size)

"""The movable shards of each OSD, by group and by size; follows the moves of the placement."""
from __future__ import annotations

from bisect import bisect_left
from typing import Dict, Iterator, List, Optional, Tuple

from ...runtime.time_slice import piecewise, sorted_piecewise
from .placement_state import PlacementState

Shards = Tuple[Tuple[int, int], ...]        # (bytes, PG), sorted
SizedShards = List[Tuple[int, int, int]]    # (bytes, PG, group), sorted
#: group → (shards on their initial OSD, displaced shards). Tuples, which the garbage collector does
#: not search: an OSD has one entry for each of its pools.
ShardsByGroup = Dict[int, Tuple[Shards, Shards]]

#: Before it gives way again, a few milliseconds: OSDs whose shards are gone over, PGs, shards
#: sorted.
_OSDS_A_PIECE = 30
_PGS_A_PIECE = 1000
_SORTED_AT_ONCE = 2000


class ShardIndex:
    """Sorted views of the movable shards of each OSD, made when they are first asked for."""

    def __init__(self, placement: PlacementState) -> None:
        self._placement = placement
        count = len(placement.used_bytes)
        self._grouped: List[Optional[ShardsByGroup]] = [None] * count
        #: (change count of the OSD, shards, displaced ones); rebuilt when the count differs
        self._sorted: List[Tuple[int, SizedShards, SizedShards]] = [(-1, [], [])] * count
        placement.observers.append(self._on_move)

    def by_group(self, osd: int) -> ShardsByGroup:
        """Group → its shards on the OSD: those that are not displaced, and those that are."""
        known = self._grouped[osd]
        if known is not None:
            return known
        placement = self._placement
        found: Dict[int, Tuple[List[Tuple[int, int]], List[Tuple[int, int]]]] = {}
        bytes_of, initial_up = placement.bytes_of, placement.initial_up
        groups_of_pool = placement.groups_of_pool
        for pg in placement.shards[osd]:
            groups = groups_of_pool[placement.pool_of_pg[pg]]
            group = groups[0] if len(groups) == 1 else groups[placement.up[pg].index(osd)]
            pair = found.get(group)
            if pair is None:
                pair = found[group] = ([], [])
            # A shard never takes an OSD that another shard of its PG left, so a shard on an initial
            # OSD has not moved.
            pair[0 if osd in initial_up[pg] else 1].append((bytes_of[group][pg], pg))
        grouped = {group: (tuple(sorted(pair[0])), tuple(sorted(pair[1])))
                   for group, pair in found.items()}
        self._grouped[osd] = grouped
        return grouped

    def by_size(self, osd: int, displaced: bool = False) -> SizedShards:
        """Every movable shard on an OSD, or the displaced ones alone, as (bytes, PG, group),
        sorted."""
        known, changes = self._sorted[osd], self._placement.change_counts[osd]
        if known[0] != changes:
            grouped = self.by_group(osd)
            known = self._sorted[osd] = (
                changes,
                sorted((s, pg, g) for g, pair in grouped.items() for s, pg in pair[0] + pair[1]),
                sorted((s, pg, g) for g, pair in grouped.items() for s, pg in pair[1]))
        return known[2] if displaced else known[1]

    def all_displaced(self) -> Iterator[Tuple[int, int, int, int]]:
        """(-bytes, PG, OSD, group) of the displaced shards that there are now, the largest first,
        whatever moves while they are gone over."""
        placement = self._placement
        return sorted_piecewise((
            (-placement.size_on(pg, osd), pg, osd, placement.group_of(pg, osd))
            for pg in piecewise(placement.moved_pgs, _PGS_A_PIECE)
            for osd in placement.up[pg] if osd not in placement.initial_up[pg]),
            _SORTED_AT_ONCE)

    def release(self) -> None:
        """Frees what is kept, in pieces: all of it at once takes long."""
        for osd in piecewise(range(len(self._grouped)), _OSDS_A_PIECE):
            self._grouped[osd] = None
            self._sorted[osd] = (-1, [], [])

    def _on_move(self, pg: int, source: int, target: int, group: int) -> None:
        entry = (self._placement.bytes_of[group][pg], pg)
        initial = self._placement.initial_up[pg]
        there = self._grouped[source]
        if there is not None:
            pair = _updated(there[group], source not in initial, entry, present=False)
            if pair[0] or pair[1]:
                there[group] = pair
            else:
                del there[group]
        there = self._grouped[target]
        if there is not None:
            there[group] = _updated(there.get(group, ((), ())), target not in initial, entry,
                                    present=True)


def _updated(pair: Tuple[Shards, Shards], displaced: bool, entry: Tuple[int, int],
             present: bool) -> Tuple[Shards, Shards]:
    """The pair with the entry added, or removed where it shall not be present."""
    shards = pair[displaced]
    at = bisect_left(shards, entry)
    shards = shards[:at] + (entry,) + shards[at:] if present else shards[:at] + shards[at + 1:]
    return (pair[0], shards) if displaced else (shards, pair[1])

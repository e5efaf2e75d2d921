"""What stands on an OSD, by group and by size: read once, then kept in step with the board."""
from __future__ import annotations

from bisect import bisect_left, insort
from typing import Dict, List, Optional, Tuple

from .board import Board

Shards = List[Tuple[int, int]]           # (bytes, PG), sorted
Grouped = Dict[int, Tuple[Shards, Shards]]  # group → (at their start, displaced)


class Shelves:
    """Sorted views of the movable shards of each OSD."""

    def __init__(self, board: Board) -> None:
        self._board = board
        count = len(board.used)
        self._grouped: List[Optional[Grouped]] = [None] * count
        self._by_size: List[Tuple[int, List[Tuple[int, int, int]]]] = [(-1, [])] * count
        self._displaced: List[Tuple[int, List[Tuple[int, int, int]]]] = [(-1, [])] * count
        board.watchers.append(self._follow)

    def of(self, osd: int) -> Grouped:
        """Group → its shards on the OSD: those that are at their start, and displaced ones."""
        known = self._grouped[osd]
        if known is not None:
            return known
        board = self._board
        grouped: Grouped = {}
        sizes, start, pgs, group_at = board.pg_bytes, board.start, board.pgs, board.group_at
        for pg in board.shards[osd]:
            at = group_at[pgs[pg].pool]
            group = at[0] if len(at) == 1 else at[board.up[pg].index(osd)]
            pair = grouped.get(group)
            if pair is None:
                pair = grouped[group] = ([], [])
            # one shard never follows another of its PG: an OSD of the start is the shard's own
            pair[0 if osd in start[pg] else 1].append((sizes[pg], pg))
        for pair in grouped.values():
            pair[0].sort()
            pair[1].sort()
        self._grouped[osd] = grouped
        return grouped

    def by_size(self, osd: int) -> List[Tuple[int, int, int]]:
        """Every movable shard on an OSD as (bytes, PG, group), sorted."""
        version, shards = self._by_size[osd]
        if version != self._board.version[osd]:
            shards = sorted((s, pg, group) for group, pair in self.of(osd).items()
                            for some in pair for s, pg in some)
            self._by_size[osd] = (self._board.version[osd], shards)
        return shards

    def displaced(self, osd: int) -> List[Tuple[int, int, int]]:
        """The displaced ones among them."""
        version, shards = self._displaced[osd]
        if version != self._board.version[osd]:
            shards = sorted((s, pg, group) for group, pair in self.of(osd).items()
                            for s, pg in pair[1])
            self._displaced[osd] = (self._board.version[osd], shards)
        return shards

    def _follow(self, pg: int, source: int, target: int, group: int) -> None:
        entry = (self._board.pg_bytes[pg], pg)
        start = self._board.start[pg]
        there = self._grouped[source]
        if there is not None:
            pair = there[group]
            shards = pair[0 if source in start else 1]
            del shards[bisect_left(shards, entry)]
            if not (pair[0] or pair[1]):
                del there[group]
        there = self._grouped[target]
        if there is not None:
            insort(there.setdefault(group, ([], []))[0 if target in start else 1], entry)

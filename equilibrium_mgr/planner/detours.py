"""Going straight: where a shard left an OSD and another of about its size came in its place.

Both moved, and the OSD is as full as before. If the newcomer goes on to where the first one went,
the first one may come back: one move instead of two, nearly the same levels, and the same number
of shards of the pool on each OSD. It is also what keeps OSDs at their level from taking and giving.
"""
from __future__ import annotations

from bisect import bisect_left
from typing import Callable, Optional, Sequence, Tuple

from .board import Step
from .limits import Limits
from .shelves import Shelves
from .terms import NOISE, Terms

#: Shards that are tried, of those that are a little smaller and of those a little larger.
_NEAR = 4


class Detours:
    """Finds and shortens them, within the limits. `price` is what a displaced byte costs."""

    def __init__(self, terms: Terms, shelves: Shelves, limits: Limits, price: float) -> None:
        self._terms = terms
        self._board = terms.board
        self._shelves = shelves
        self._limits = limits
        self._price = price

    def shorten(self, go_on: Callable[[], bool]) -> int:
        """Passes once over all displaced shards, the largest first; how many came home."""
        board = self._board
        displaced = sorted((-size, pg, osd, group) for osd in range(len(board.used))
                           for size, pg, group in self._shelves.displaced(osd))
        came_home = 0
        for _, pg, osd, group in displaced:
            if not go_on():
                break
            if osd in board.up[pg]:
                steps = self._best(pg, osd, group)
                for step in steps or ():
                    board.move(*step)
                came_home += steps is not None
        return came_home

    def _best(self, pg: int, osd: int, group: int) -> Optional[Tuple[Step, ...]]:
        """The exchange by which a displaced shard comes home at the least loss, or None."""
        board = self._board
        best: Optional[Tuple[Step, ...]] = None
        most = NOISE
        for home in board.homes(pg, osd, group):
            newcomers = self._newcomers(home, group, board.pg_bytes[pg])
            if not newcomers or not board.legal(pg, osd, home):
                continue
            for size, other in newcomers:
                board.examined += 1
                more = board.pg_bytes[pg] - size
                if other == pg or not (self._limits.fits(home, more, group, group)
                                       and self._limits.fits(osd, -more, group, group)):
                    continue
                gain = (self._terms.shift(osd, home, more) + self._refund(pg, osd, home)
                        + self._refund(other, home, osd))
                if gain > most and board.legal(other, home, osd):
                    best, most = ((pg, osd, home), (other, home, osd)), gain
        return best

    def _refund(self, pg: int, source: int, target: int) -> float:
        """What displacing a shard has cost, where it comes home; 0 for one that goes on."""
        if target not in self._board.start[pg]:
            return 0.0
        return self._price * self._board.pg_bytes[pg] + self._terms.per_move[source]

    def _newcomers(self, osd: int, group: int, size: int) -> Sequence[Tuple[int, int]]:
        """(bytes, PG) of displaced shards of a group on an OSD, about as large as wanted."""
        _, displaced = self._shelves.of(osd).get(group, ((), ()))
        at = bisect_left(displaced, (size, -1))
        return displaced[max(0, at - _NEAR):at + _NEAR]

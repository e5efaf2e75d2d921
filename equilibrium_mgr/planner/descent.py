"""Single moves off the fullest OSDs, at falling prices per byte.

The annealed price is what makes plans cheap: first only moves across a wide gap are worth their
bytes, and what they leave is evened out by ever smaller ones.
"""
from __future__ import annotations

import heapq
from typing import Callable, List, Sequence

from .joint_moves import JointMoves
from .single_moves import SingleMoves
from .terms import Terms


class Descent:
    """Takes single moves while they lower the objective.

    `purse_of` names for every OSD the purse in `purses` that pays for moves which bring nothing
    but better counts; where it is empty such moves are left alone.
    """

    def __init__(self, terms: Terms, moves: SingleMoves, joint_moves: JointMoves,
                 purses: List[float], purse_of: Sequence[int]) -> None:
        self._terms = terms
        self._board = terms.board
        self._moves = moves
        self._joint_moves = joint_moves
        self._purses = purses
        self._purse_of = purse_of

    def run(self, price: float, go_on: Callable[[], bool]) -> bool:
        """Moves at this price until no OSD gives one; False where it was told to end."""
        board, level = self._board, self._terms.level
        heap = [(level[i] - board.used[i] / board.size[i], i) for i in range(len(board.used))
                if board.shards[i] and board.gives[i]]
        heapq.heapify(heap)
        waiting = [False] * len(board.used)
        for _, i in heap:
            waiting[i] = True
        while heap:
            if not go_on():
                return False
            key, source = heapq.heappop(heap)
            now = level[source] - board.used[source] / board.size[source]
            if now > key + 1e-12:  # it became emptier since: others come first
                heapq.heappush(heap, (now, source))
                continue
            touched = self._take_best(source, price)
            if not touched:
                waiting[source] = False
            for osd in touched:
                if osd == source or (not waiting[osd] and board.gives[osd]):
                    waiting[osd] = True
                    heapq.heappush(heap, (level[osd] - board.used[osd] / board.size[osd], osd))
        return True

    def _take_best(self, source: int, price: float) -> List[int]:
        """Makes the move that gains most per shard; returns the OSDs it touched, none if none."""
        purse = self._purse_of[source]
        single = self._moves.best(source, price, self._purses[purse] <= 0.0)
        joint = self._joint_moves.best(source, price)
        if joint is not None and (single is None
                                  or joint.gain > len(joint.steps) * single.gain):
            for step in joint.steps:
                self._board.move(*step)
            return [osd for _, a, b in joint.steps for osd in (a, b)]
        if single is None:
            return []
        if single.evens <= 0.0 and source in self._board.start[single.pg]:
            self._purses[purse] -= self._board.pg_bytes[single.pg]
        self._board.move(single.pg, source, single.target)
        return [source, single.target]

"""Several searches with other weights, where they are cheap, and the best of what they found.

A search ends in one of many placements that are nearly equally good. On a small cluster, where a
single shard is a point of utilisation, it matters which; and there a second search costs little.
"""
from __future__ import annotations

from typing import Callable, Optional, Tuple

from ..snapshot.model import Snapshot
from .appraisal import free_room, value
from .board import Board
from .bound import Reachable
from .objective import AIM_APPRAISED, AIM_WEIGHTS
from .options import PlanOptions
from .search import Search

#: Candidates examined, all searches together: one more is begun while it may well stay within
#: this. A count and not a time, so that the same snapshot gives the same plan.
_EXAMINED = 600_000


def best_attempt(snapshot: Snapshot, options: PlanOptions, reachable: Reachable,
                 checkpoint: Callable[[int], bool]) -> Tuple[Board, bool]:
    """The best placement found, and whether no search was ended by the checkpoint.

    `checkpoint` is called with the moves found so far, and ends the search by False.
    """
    best: Optional[Tuple[float, Board]] = None
    examined = most_moves = 0

    def moved(moves: int) -> bool:
        nonlocal most_moves
        most_moves = max(most_moves, moves)
        return checkpoint(most_moves)
    variants = AIM_WEIGHTS[options.aim]
    for number, weights in enumerate(variants, start=1):
        board = Board(snapshot, options, lambda: checkpoint(most_moves))
        search = Search(board, reachable, weights, moved)
        room = free_room(board, search.data_groups)
        finished = search.run()
        board.watchers.clear()    # the search is over, and a circle would keep the board in memory
        found = value(board, search.sets, search.data_groups, room, variants[0],
                      AIM_APPRAISED[options.aim])
        if best is None or (finished and found > best[0]):
            best = found, board
        examined += board.examined
        if not finished:
            return best[1], False
        if not board.moved or examined * (number + 1) > number * _EXAMINED:
            break
    assert best is not None
    return best[1], True

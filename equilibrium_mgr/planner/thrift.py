"""Taking back what was moved and turned out not to be needed."""
from __future__ import annotations

from typing import Callable, List, Tuple

from .limits import Limits
from .terms import Terms
from .shelves import Shelves


def take_back(terms: Terms, shelves: Shelves, limits: Limits, price: float,
              checkpoint: Callable[[], bool]) -> int:
    """Returns displaced shards to where they started while all limits hold and little is lost.

    `price` is what a byte that need not be moved is worth, in utilisation.
    """
    board = terms.board
    returned = 0
    waiting: List[Tuple[int, int, int, int]] = sorted(
        ((-size, pg, osd, group) for osd in range(len(board.used))
         for size, pg, group in shelves.displaced(osd)))
    for negative, pg, source, group in waiting:
        if not checkpoint():
            break
        size = -negative
        for home in board.homes(pg, source, group):
            gain = (terms.shift(source, home, size) + terms.leave_count(group, source)
                    - terms.enter_count(group, home) + price * size + terms.per_move[source])
            if gain > 0.0 and limits.fits(home, size, group, -1) and board.legal(pg, source, home):
                board.move(pg, source, home)
                returned += 1
                break
    return returned

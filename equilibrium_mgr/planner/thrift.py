"""Taking back what was moved and turned out not to be needed."""
from __future__ import annotations

from typing import Callable, List, Tuple

from .board import Step
from .joint_moves import JointMoves
from .limits import Limits
from .shelves import Shelves
from .terms import Terms


def take_back(terms: Terms, shelves: Shelves, joint_moves: JointMoves, limits: Limits,
              price: float, go_on: Callable[[], bool]) -> None:
    """Returns displaced shards to where they started while all limits hold and little is lost.

    `price` is what a byte that need not be moved is worth, in utilisation.
    """
    board = terms.board
    waiting: List[Tuple[int, int, int, int]] = sorted(
        ((-size, pg, osd, group) for osd in range(len(board.used))
         for size, pg, group in shelves.displaced(osd)))

    def pays(steps: Tuple[Step, ...], size: int, group: int) -> bool:
        return (joint_moves.gain(steps, price) > 0.0
                and all(limits.fits(home, size, group, -1) for _, _, home in steps))
    for negative, pg, source, group in waiting:
        if not go_on():
            break
        if source not in board.up[pg]:
            continue  # it went with another one
        for home in board.homes(pg, source, group):
            steps = ((pg, source, home),)
            if pays(steps, -negative, group) and board.legal(pg, source, home):
                board.move(*steps[0])
                break
        else:
            together = joint_moves.home(pg, source, board.groups[group])
            if together and pays(together, -negative, group) and board.legal_together(together):
                for step in together:
                    board.move(*step)

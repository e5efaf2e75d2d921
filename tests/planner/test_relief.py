"""How an OSD is relieved where single moves have ended."""
from __future__ import annotations

from typing import Callable, List, Sequence, Tuple

from builders import GIB, single_copies

from equilibrium_mgr.planner.board import Board
from equilibrium_mgr.planner.joint_moves import JointMoves
from equilibrium_mgr.planner.limits import Limits
from equilibrium_mgr.planner.objective import Weights
from equilibrium_mgr.planner.options import PlanOptions
from equilibrium_mgr.planner.relief import Complaint, Relief
from equilibrium_mgr.planner.shelves import Shelves
from equilibrium_mgr.planner.squeeze import Squeeze
from equilibrium_mgr.planner.targets import Targets
from equilibrium_mgr.planner.terms import Terms

PRICE = 0.001


def no_pause() -> bool:
    return True


def board_of(*gib_by_osd: Sequence[int]) -> Board:
    return Board(single_copies(*gib_by_osd).snapshot(), PlanOptions())


def relief_of(board: Board, water: float, price: float = PRICE) -> Tuple[Relief, Limits]:
    """Nobody may pass the water level; counts do not matter."""
    count = len(board.size)
    terms = Terms(board, Weights(counts=0.0), [water] * count, [float(s) for s in board.size],
                  [0.0] * count, no_pause)
    limits = Limits(board, [], no_pause)
    limits.set_water(range(count), water)
    targets, shelves = Targets(terms), Shelves(board)
    joint_moves = JointMoves(terms, targets, shelves)
    return Relief(terms, targets, shelves, joint_moves, limits, price), limits


def worth(per_point: float) -> Callable[[float, float], float]:
    """Bytes that it is worth to sink the highest utilisation, so many per 1.0 of it."""
    return lambda high, low: per_point * (high - low)


def too_full(board: Board, goal: float) -> Complaint:
    return Complaint(tuple(range(len(board.size))), -1, 0.0, goal, 0.0, 0.0)


def steps(board: Board, found: object) -> List[Tuple[str, int, int]]:
    return [(board.pgs[pg].pgid, a, b) for pg, a, b in found.steps]  # type: ignore[attr-defined]


def test_one_move_where_one_will_do() -> None:
    board = board_of([30, 20], [10])
    relief, _ = relief_of(board, 0.4)
    assert steps(board, relief.find(0, too_full(board, 0.4))) == [("1.1", 0, 1)]


def test_a_swap_where_no_move_fits() -> None:
    """30 + 20 against 25 + 15: only an exchange brings both to 45."""
    board = board_of([30, 20], [25, 15])
    relief, _ = relief_of(board, 0.45)
    found = steps(board, relief.find(0, too_full(board, 0.45)))
    for pgid, source, target in found:
        board.move([pg.pgid for pg in board.pgs].index(pgid), source, target)
    assert len(found) == 2 and [used // GIB for used in board.used] == [45, 45]


def test_a_chain_where_nobody_takes_a_swap() -> None:
    """40 has to go to where 10 makes room by going on to the third, which takes nothing larger."""
    board = board_of([40, 40], [10, 34], [35])
    relief, _ = relief_of(board, 0.76)
    found = relief.find(0, too_full(board, 0.76))
    assert found is not None
    for pg, source, target in found.steps:
        board.move(pg, source, target)
    assert max(used / size for used, size in zip(board.used, board.size)) <= 0.76


def test_none_where_nothing_helps() -> None:
    board = board_of([30], [30])
    relief, _ = relief_of(board, 0.29)
    assert relief.find(0, too_full(board, 0.29)) is None


def test_a_squeeze_that_does_not_pay_changes_nothing() -> None:
    board = board_of([30, 20], [25, 15])
    before = list(board.up)
    relief, limits = relief_of(board, 0.45, 1.0)
    squeeze = Squeeze(board, relief, limits, 1.0, no_pause)
    squeeze.lower_maximum((0, 1), 0.45, worth(1.0), 0.05, 0.0)
    assert board.up == before
    relief, limits = relief_of(board, 0.45)
    squeeze = Squeeze(board, relief, limits, PRICE, no_pause)
    squeeze.lower_maximum((0, 1), 0.45, worth(1e15), 0.05, 0.0)
    assert [used // GIB for used in board.used] == [45, 45]

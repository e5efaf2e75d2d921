"""The planner's objective summed up over a whole cluster, by the formulas of its docstring.

The planner itself only ever looks at the two OSDs of a move. Levels, caps and prices are taken
from where it takes them; sums and differences are made here.
"""
from __future__ import annotations

from equilibrium_mgr.planner.appraisal import free_room, value
from equilibrium_mgr.planner.board import Board
from equilibrium_mgr.planner.bound import reachable
from equilibrium_mgr.planner.objective import AIM_APPRAISED, AIM_WEIGHTS
from equilibrium_mgr.planner.options import PlanOptions
from equilibrium_mgr.planner.plan import Plan
from equilibrium_mgr.planner.search import Search
from equilibrium_mgr.planner.terms import Terms
from equilibrium_mgr.snapshot.model import Snapshot


def go_on(_moves: int) -> bool:
    return True


def objective(terms: Terms, price: float) -> float:
    """In bytes × utilisation²: the first four lines of planner/objective.py."""
    board, weights = terms.board, terms.weights
    total = 0.0
    for osd, size in enumerate(board.size):
        over = board.used[osd] / size - terms.level[osd]
        total += size * over ** 2 * (1.0 if over > 0.0 else weights.below)
    for group in board.groups:
        for osd in group.osds:
            over = max(0.0, group.counts[osd] / terms.caps[group.index][osd] - 1.0)
            total += weights.counts * terms.worth[group.index] * board.size[osd] * over ** 2
    for pg, up in enumerate(board.up):
        for osd in up:
            if osd not in board.start[pg]:
                total += price * board.pg_bytes[pg] + terms.per_move[osd]
    return total


def worth_rises(snapshot: Snapshot, options: PlanOptions, plan: Plan) -> bool:
    """Whether the plan is worth its bytes, by what finished placements are compared by."""
    fixed = (frozenset() if options.pool_ids is None
             else frozenset(snapshot.pools) - options.pool_ids)
    weights = AIM_WEIGHTS[options.aim][0]
    board = Board(snapshot, options)
    search = Search(board, reachable(snapshot, fixed), weights, go_on)
    room = free_room(board, search.data_groups)

    def worth() -> float:
        return value(board, search.sets, search.data_groups, room, weights,
                     AIM_APPRAISED[options.aim])
    before = worth()
    number = {pg.pgid: index for index, pg in enumerate(board.pgs)}
    for move in plan.moves:
        board.move(number[move.pgid], board.index_of[move.source], board.index_of[move.target])
    return worth() > before

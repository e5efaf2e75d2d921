"""The planner's objective summed up over a whole cluster, by the formulas of its docstring.

The planner itself only ever looks at the two OSDs of a move. Levels, caps and prices are taken
from where it takes them; sums and differences are made here.
"""
from __future__ import annotations

from equilibrium_mgr.plan.model import Plan
from equilibrium_mgr.plan.options import PlanOptions
from equilibrium_mgr.planner.bound.lower_bound import utilization_bounds
from equilibrium_mgr.planner.objective import AIM_SCORE_WEIGHTS, AIM_WEIGHTS
from equilibrium_mgr.planner.placement_score import pool_free_bytes, score_placement
from equilibrium_mgr.planner.search.search import Search
from equilibrium_mgr.planner.state.cost_model import CostModel
from equilibrium_mgr.planner.state.placement_state import PlacementState
from equilibrium_mgr.snapshot.model import Snapshot


def objective(costs: CostModel, price: float) -> float:
    """In bytes × utilization²: the first four lines of planner/objective.py."""
    placement, weights = costs.placement, costs.weights
    total = 0.0
    for osd, size in enumerate(placement.size_bytes):
        over = placement.used_bytes[osd] / size - costs.bound_utilization[osd]
        total += size * over ** 2 * (1.0 if over > 0.0 else weights.underfull_weight)
    for group in placement.groups:
        for osd in group.osds:
            cap = max(1.0, costs.cap_pressure[group.index] * costs.free[osd])
            over = max(0.0, group.counts[osd] / cap - 1.0)
            weight = weights.count_weight * costs.pool_weights[group.index]
            total += weight * placement.size_bytes[osd] * over ** 2
    for pg, up in enumerate(placement.up):
        for osd in up:
            if osd not in placement.initial_up[pg]:
                total += price * placement.pg_bytes[pg] + costs.move_cost[osd]
    return total


def score_rises(snapshot: Snapshot, options: PlanOptions, plan: Plan) -> bool:
    """True if the placement that the plan leads to has a higher score than the present one."""
    fixed = (frozenset() if options.pool_ids is None
             else frozenset(snapshot.pools) - options.pool_ids)
    weights = AIM_WEIGHTS[options.aim][0]
    placement = PlacementState(snapshot, options)
    search = Search(placement, utilization_bounds(snapshot, fixed), weights)
    free = pool_free_bytes(placement, search.data_groups)

    def score() -> float:
        return score_placement(placement, search.sets, search.data_groups, free,
                               search.near_free_bytes(), weights,
                               AIM_SCORE_WEIGHTS[options.aim])
    before = score()
    number = {pg.pgid: index for index, pg in enumerate(placement.pgs)}
    for move in plan.moves:
        placement.move(number[move.pgid], placement.index_of[move.source],
                       placement.index_of[move.target])
    return score() > before

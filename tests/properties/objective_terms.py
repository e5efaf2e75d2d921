"""The planner's objective summed up over a whole cluster, by the formulas of its docstring.

The planner itself only ever looks at the two OSDs of a move. Levels, caps and prices are taken
from where it takes them; sums and differences are made here.
"""
from __future__ import annotations

from equilibrium_mgr.planner.state.cost_model import CostModel


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

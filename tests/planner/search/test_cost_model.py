"""What a shard adds to the count term is a difference of the term as its formula has it."""
from __future__ import annotations

import random
from typing import Tuple

import pytest
from tests.support.clusters.unit_cluster import single_copies

from equilibrium_mgr.plan.options import PlanOptions
from equilibrium_mgr.planner.objective import Weights
from equilibrium_mgr.planner.state.cost_model import CostModel
from equilibrium_mgr.planner.state.placement_state import PlacementState

OSDS = 40
SEEDS = range(5)
def made(seed: int) -> Tuple[PlacementState, CostModel]:
    """OSDs with 1 to 8 shards of one pool, of which many are above their cap and some below."""
    rng = random.Random(seed)
    placement = PlacementState(
        single_copies(*[[rng.randint(1, 9) for _ in range(rng.randint(1, 8))]
                        for _ in range(OSDS)]).snapshot(), PlanOptions())
    free = [rng.uniform(0.0, 1.0) * size for size in placement.size_bytes]
    wanted = [rng.uniform(0.05, 0.5) for _ in range(OSDS)]
    return placement, CostModel(placement, Weights(), wanted, free, [0.0] * OSDS)


def count_cost(costs: CostModel, group: int, osd: int, count: int) -> float:
    """The count term of an OSD that holds so many shards of a group."""
    over = max(0.0, count / max(1.0, costs.cap_pressure[group] * costs.free[osd]) - 1.0)
    return (costs.weights.count_weight * costs.pool_weights[group]
            * costs.placement.size_bytes[osd] * over ** 2)


@pytest.mark.parametrize("seed", SEEDS)
def test_counts_that_leave_and_enter(seed: int) -> None:
    placement, costs = made(seed)
    above = 0
    for group in placement.groups:
        for osd in range(OSDS):
            count = group.counts[osd]
            now = count_cost(costs, group.index, osd, count)
            above += now > 0.0
            more = count_cost(costs, group.index, osd, count + 1) - now
            less = now - count_cost(costs, group.index, osd, count - 1)
            assert costs.count_loss_on_enter(group.index, osd) == pytest.approx(more, abs=1e-3)
            assert costs.count_gain_on_leave(group.index, osd) == pytest.approx(less, abs=1e-3)
    assert OSDS // 5 < above < OSDS

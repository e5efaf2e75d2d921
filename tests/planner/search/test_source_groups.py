"""What is kept of an OSD's groups from move to move is what a new look at the OSD gives."""
from __future__ import annotations

import random
from typing import List, Tuple

from tests.support.clusters.random_clusters import random_cluster

from equilibrium_mgr.plan.options import PlanOptions
from equilibrium_mgr.planner.objective import Weights
from equilibrium_mgr.planner.search.joint_moves import SourceGroups
from equilibrium_mgr.planner.state.cost_model import CostModel
from equilibrium_mgr.planner.state.placement_state import PlacementState
from equilibrium_mgr.planner.state.target_index import ShardIndex, TargetIndex


def shown(groups: SourceGroups, source: int) -> List[Tuple[object, ...]]:
    return [(sharing.ranked, sharing.displaced, sharing.least, sharing.largest)
            for sharing in groups.of(source)]


def test_follows_moves() -> None:
    rng = random.Random(5)
    placement = PlacementState(random_cluster(3).snapshot(), PlanOptions())
    count = len(placement.size_bytes)
    costs = CostModel(placement, Weights(), [0.4] * count,
                      [0.4 * size for size in placement.size_bytes], [0.0] * count)
    targets, index = TargetIndex(costs), ShardIndex(placement)
    kept = SourceGroups(costs, targets, index)
    for _ in range(200):
        pg = rng.randrange(len(placement.pgs))
        source, target = rng.choice(placement.up[pg]), rng.randrange(count)
        if placement.is_legal(pg, source, target):
            placement.move(pg, source, target)
        osd = rng.randrange(count)
        fresh = SourceGroups(costs, targets, index)
        assert shown(kept, osd) == shown(fresh, osd)
        fresh.forget()

"""A shard that left an OSD comes home where a newcomer of its size goes on in its place."""
from __future__ import annotations

from typing import List, Tuple

from tests.support.clusters.unit_cluster import Cluster, hosts, single_copies
from tests.support.rules import HOST_RULE
from tests.support.units import GIB

from equilibrium_mgr.plan.options import PlanOptions
from equilibrium_mgr.planner.objective import Weights
from equilibrium_mgr.planner.search.joint_moves import JointMoves
from equilibrium_mgr.planner.search.move_reduction import MoveReduction
from equilibrium_mgr.planner.state.constraints import SearchConstraints
from equilibrium_mgr.planner.state.cost_model import CostModel
from equilibrium_mgr.planner.state.placement_state import PlacementState
from equilibrium_mgr.planner.state.target_index import ShardIndex, TargetIndex


def cost_model(placement: PlacementState, weights: Weights) -> CostModel:
    count = len(placement.size_bytes)
    return CostModel(placement, weights, [0.1] * count,
                     [float(size) for size in placement.size_bytes], [0.0] * count)


def reduction(costs: CostModel, limits: SearchConstraints, price: float) -> MoveReduction:
    shards = ShardIndex(costs.placement)
    return MoveReduction(costs, shards, JointMoves(costs, TargetIndex(costs), shards), limits,
                         price)


def shortened(cluster: Cluster, moves: List[Tuple[str, int, int]], most: float = 0.9,
              price: float = 0.02) -> Tuple[int, PlacementState]:
    """(how many shards returned, placement) after the moves and one pass."""
    placement = PlacementState(cluster.snapshot(), PlanOptions())
    costs = cost_model(placement, Weights(count_weight=0.0))
    number = {pg.pgid: i for i, pg in enumerate(placement.pgs)}
    for pgid, source, target in moves:
        placement.move(number[pgid], source, target)
    limits = SearchConstraints(placement, [])
    limits.set_max_utilization(range(len(placement.size_bytes)), most)
    return reduction(costs, limits, price).shorten_detours(), placement


def displaced(placement: PlacementState) -> List[str]:
    return [pg.pgid for pg, up, start in zip(placement.pgs, placement.up, placement.initial_up)
            if tuple(up) != start]


#: 1.0 is on osd.0 and 1.1 on osd.1, both of 10 GiB; osd.2 is empty
THREE: Tuple[List[int], ...] = ([10], [10], [])
DETOUR = [("1.1", 1, 2), ("1.0", 0, 1)]


def test_one_move_takes_the_place_of_two() -> None:
    returned, placement = shortened(single_copies(*THREE), DETOUR)
    assert returned == 1
    assert displaced(placement) == ["1.0"]
    assert placement.up == [(2,), (1,)]
    assert placement.used_bytes == [0, 10 * GIB, 10 * GIB]


def test_nothing_passes_a_limit_for_it() -> None:
    cluster = single_copies([10], [12], [])
    # 1.1 returning, 2 GiB larger than 1.0, would fill osd.1 to 12 %
    assert shortened(cluster, DETOUR, most=0.119)[0] == 0
    assert shortened(cluster, DETOUR, most=0.121)[0] == 1


def test_the_failure_domain_holds() -> None:
    cluster = Cluster(hosts(4), {0: HOST_RULE}).pool(1, size=2)
    cluster.pg("1.0", [0, 2], 10 * GIB).pg("1.1", [1, 3], 10 * GIB)
    # 1.0 cannot go straight to osd.2: its other copy is there
    returned, placement = shortened(cluster, DETOUR)
    assert returned == 0
    assert len(displaced(placement)) == 2

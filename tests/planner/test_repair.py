"""How an OSD is relieved where single moves have ended."""
from __future__ import annotations

from typing import Callable, List, Sequence, Tuple

from tests.support.unit_cluster import single_copies
from tests.support.units import GIB

from equilibrium_mgr.plan.options import PlanOptions
from equilibrium_mgr.planner.objective import Weights
from equilibrium_mgr.planner.search.joint_moves import JointMoves
from equilibrium_mgr.planner.search.repair import OverfullOsd, Repair
from equilibrium_mgr.planner.search.tightening import Tightening
from equilibrium_mgr.planner.state.constraints import SearchConstraints
from equilibrium_mgr.planner.state.cost_model import CostModel
from equilibrium_mgr.planner.state.placement_state import PlacementState
from equilibrium_mgr.planner.state.shard_index import ShardIndex
from equilibrium_mgr.planner.state.target_index import TargetIndex
from equilibrium_mgr.runtime.checkpoints import no_checkpoint

PRICE = 0.001


def board_of(*gib_by_osd: Sequence[int]) -> PlacementState:
    return PlacementState(single_copies(*gib_by_osd).snapshot(), PlanOptions())


def relief_of(placement: PlacementState, water: float, price: float = PRICE) -> Tuple[Repair, SearchConstraints]:
    """Nobody may pass the water level; counts do not matter."""
    count = len(placement.size_bytes)
    costs = CostModel(placement, Weights(count_weight=0.0), [water] * count, [float(s) for s in placement.size_bytes],
                  [0.0] * count, no_checkpoint)
    limits = SearchConstraints(placement, [], no_checkpoint)
    limits.set_max_utilization(range(count), water)
    targets, shard_index = TargetIndex(costs), ShardIndex(placement)
    joint_moves = JointMoves(costs, targets, shard_index)
    return Repair(costs, targets, shard_index, joint_moves, limits, price), limits


def worth(per_point: float) -> Callable[[float, float], float]:
    """Bytes that it is worth to sink the highest utilization, so many per 1.0 of it."""
    return lambda high, low: per_point * (high - low)


def too_full(placement: PlacementState, goal: float) -> OverfullOsd:
    return OverfullOsd(tuple(range(len(placement.size_bytes))), goal, 0.0)


def steps(placement: PlacementState, found: object) -> List[Tuple[str, int, int]]:
    return [(placement.pgs[pg].pgid, a, b) for pg, a, b in found.steps]  # type: ignore[attr-defined]


def test_one_move_where_one_will_do() -> None:
    placement = board_of([30, 20], [10])
    repair, _ = relief_of(placement, 0.4)
    assert steps(placement, repair.find(0, too_full(placement, 0.4))) == [("1.1", 0, 1)]


def test_a_swap_where_no_move_fits() -> None:
    """30 + 20 against 25 + 15: only an exchange brings both to 45."""
    placement = board_of([30, 20], [25, 15])
    repair, _ = relief_of(placement, 0.45)
    found = steps(placement, repair.find(0, too_full(placement, 0.45)))
    for pgid, source, target in found:
        placement.move([pg.pgid for pg in placement.pgs].index(pgid), source, target)
    assert len(found) == 2 and [used // GIB for used in placement.used_bytes] == [45, 45]


def test_a_chain_where_nobody_takes_a_swap() -> None:
    """40 has to go to where 10 makes room by going on to the third, which takes nothing larger."""
    placement = board_of([40, 40], [10, 34], [35])
    repair, _ = relief_of(placement, 0.76)
    found = repair.find(0, too_full(placement, 0.76))
    assert found is not None
    for pg, source, target in found.steps:
        placement.move(pg, source, target)
    assert max(used / size for used, size in zip(placement.used_bytes, placement.size_bytes)) <= 0.76


def test_none_where_nothing_helps() -> None:
    placement = board_of([30], [30])
    repair, _ = relief_of(placement, 0.29)
    assert repair.find(0, too_full(placement, 0.29)) is None


def test_a_squeeze_that_does_not_pay_changes_nothing() -> None:
    placement = board_of([30, 20], [25, 15])
    before = list(placement.up)
    repair, limits = relief_of(placement, 0.45, 1.0)
    tightening = Tightening(placement, repair, limits, 1.0, no_checkpoint)
    tightening.lower_max_utilization((0, 1), 0.45, worth(1.0), 0.05, 0.0)
    assert placement.up == before
    repair, limits = relief_of(placement, 0.45)
    tightening = Tightening(placement, repair, limits, PRICE, no_checkpoint)
    tightening.lower_max_utilization((0, 1), 0.45, worth(1e15), 0.05, 0.0)
    assert [used // GIB for used in placement.used_bytes] == [45, 45]

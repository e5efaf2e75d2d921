"""OSDs with free bytes come out of sorted lists as out of a pass over all of them."""
from __future__ import annotations

import random
from typing import List, Tuple

import pytest
from tests.support.clusters.unit_cluster import single_copies

from equilibrium_mgr.plan.options import PlanOptions
from equilibrium_mgr.planner.objective import Weights
from equilibrium_mgr.planner.search.receivers import Receivers
from equilibrium_mgr.planner.state.constraints import SearchConstraints
from equilibrium_mgr.planner.state.cost_model import CostModel
from equilibrium_mgr.planner.state.placement_state import PlacementState
from equilibrium_mgr.planner.state.target_index import TargetIndex

OSDS = 60


def made(rng: random.Random, held: bool) -> Tuple[PlacementState, Receivers, TargetIndex,
                                                  SearchConstraints]:
    """OSDs of three sizes; where `held`, every fifth one is held to a share of its size."""
    placement = PlacementState(
        single_copies(*[[rng.randint(1, 9) for _ in range(rng.randint(1, 6))]
                        for _ in range(OSDS)]).snapshot(), PlanOptions())
    for i in range(OSDS):
        placement.size_bytes[i] = placement.capacity_bytes[i] = (
            placement.size_bytes[i] * rng.choice((4, 7, 9)) // 8)
        if held and i % 5 == 0:
            placement.capacity_bytes[i] //= 2
    costs = CostModel(placement, Weights(), [0.4] * OSDS,
                      [float(size) for size in placement.size_bytes], [0.0] * OSDS)
    targets, limits = TargetIndex(costs), SearchConstraints(placement, [])
    return placement, Receivers(placement, targets, limits), targets, limits


def with_free(placement: PlacementState, limits: SearchConstraints, osds: List[int],
              least: float) -> List[int]:
    return [i for i in osds if limits.max_used_bytes[i] - placement.used_bytes[i] >= least]


@pytest.mark.parametrize("held", [False, True])
def test_as_a_pass_over_all_osds(held: bool) -> None:
    rng = random.Random(7)
    placement, receivers, targets, limits = made(rng, held)
    everything = tuple(range(OSDS))
    for _ in range(60):
        limits.set_max_utilization(everything, rng.uniform(0.1, 0.6))
        source = rng.choice([i for i in everything if placement.shards[i]])
        placement.move(placement.shards[source][0], source,
                       rng.choice([i for i in everything if i != source]))
        least = rng.choice((0.0, 1e9, rng.uniform(0.0, 1e10)))
        emptiest = sorted(everything, key=lambda i: (placement.capacity_utilization(i), i))
        assert with_free(placement, limits, list(receivers.among(everything, least)), least) == (
            with_free(placement, limits, emptiest, least))
        group = placement.groups[0].index
        given = list(receivers.for_group(group, source, least))
        listed = [osd for _, osd in targets.candidates(group, source)]
        assert with_free(placement, limits, given, least) == (
            with_free(placement, limits, listed, least))


def test_full_osds_are_not_given() -> None:
    placement, receivers, _, limits = made(random.Random(3), False)
    everything = tuple(range(OSDS))
    limits.set_max_utilization(everything, 1e-6)
    assert not list(receivers.among(everything, 1.0))
    assert not list(receivers.for_group(placement.groups[0].index, 0, 1.0))

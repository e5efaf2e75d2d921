"""A shard that left an OSD comes home where a newcomer of its size goes on in its place."""
from __future__ import annotations

from typing import List, Tuple

import pytest
from tests.planner.search.parts import Parts
from tests.support.clusters.unit_cluster import Cluster, hosts, single_copies
from tests.support.units import GIB

from equilibrium_mgr.plan.options import PlanOptions
from equilibrium_mgr.planner.state.placement_state import PlacementState

Ups = List[Tuple[int, ...]]


def shortened(cluster: Cluster, most: float = 0.9) -> Tuple[int, Ups]:
    """How many shards have returned, and the up sets: 1.0 was on osd.0 and 1.1 on osd.1, which
    went to osd.2 and made room for 1.0."""
    placement = PlacementState(cluster.snapshot(), PlanOptions())
    parts = Parts(placement, most=most, moves=[(1, 1, 2), (0, 0, 1)])
    return parts.reduction(0.02).shorten_detours(), placement.up


@pytest.mark.parametrize("gib, most, returned, up", [
    (10, 0.9, 1, [(2,), (1,)]),
    # 1.1 returning, 2 GiB larger than 1.0, would fill osd.1 to 12 %
    (12, 0.119, 0, [(1,), (2,)]), (12, 0.121, 1, [(2,), (1,)])])
def test_one_move_takes_the_place_of_two_within_the_limits(gib: int, most: float, returned: int,
                                                           up: Ups) -> None:
    assert shortened(single_copies([10], [gib], []), most) == (returned, up)


def test_the_failure_domain_holds() -> None:
    """1.0 cannot go straight to osd.2: its other copy is there."""
    cluster = Cluster(hosts(4)).pool(1, size=2)
    cluster.pg("1.0", "0 2", 10 * GIB).pg("1.1", "1 3", 10 * GIB)
    assert shortened(cluster) == (0, [(1, 2), (2, 3)])

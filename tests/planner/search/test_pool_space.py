"""Free space of data pools after a plan, against what balancing PG counts alone would give them."""
from __future__ import annotations

import math
import random
from typing import Callable, Dict, List, Tuple

import pytest
from tests.benchmark.made.scale import large_reading
from tests.benchmark.made.shapes import Osds, PoolPlan, fill
from tests.benchmark.scoring import data_pools, fill as filled
from tests.support.plan_legality import assert_legal
from tests.support.replay import Replay
from tests.support.rules import HDD_HOSTS

from equilibrium_mgr.plan.options import PlanOptions
from equilibrium_mgr.planner.bound.lower_bound import utilization_bounds
from equilibrium_mgr.planner.objective import AIM_WEIGHTS
from equilibrium_mgr.planner.planner import make_plan
from equilibrium_mgr.planner.search.search import Search
from equilibrium_mgr.planner.state.placement_state import PlacementState
from equilibrium_mgr.snapshot.builder import SnapshotBuilder
from equilibrium_mgr.snapshot.model import Snapshot

#: Least part of the even space that a data pool has after a plan, a ratio.
_NEAR = 0.9


def _snapshot(rng: random.Random, pools: List[PoolPlan], hosts: int,
              sizes: Tuple[int, ...]) -> Snapshot:
    """Hosts of five OSDs each."""
    osds = Osds()
    tree = {f"host h{h}": osds.host([rng.choice(sizes) for _ in range(5)]) for h in range(hosts)}
    return fill(osds.layout(tree, {0: HDD_HOSTS}, pools), rng).snapshot()


def _few_pgs_per_osd(rng: random.Random) -> Snapshot:
    pools = [PoolPlan("large", 0.7, 512), *[PoolPlan(f"small{n}", 0.03, 16) for n in range(10)]]
    return _snapshot(rng, pools, 10, (8,))


def _two_large_pools(rng: random.Random) -> Snapshot:
    pools = [PoolPlan("many", 0.6, 1024), PoolPlan("few", 0.4, 128)]
    return _snapshot(rng, pools, 12, (6, 8))


def _even_space(end: Replay, number: int) -> float:
    """Client bytes that fit where each OSD has its part of the shards by size, rounded up."""
    snapshot, pool = end.snapshot, end.snapshot.pools[number]
    total = sum(osd.size_bytes for osd in snapshot.osds.values())
    fits: List[float] = []
    for osd in snapshot.osds.values():
        shards = math.ceil(pool.pg_num * pool.size * osd.size_bytes / total - 1e-9)
        fits.append((osd.size_bytes * snapshot.full_ratio - end.used[osd.id]) / shards)
    return min(fits) * pool.pg_num * pool.data_shards


@pytest.mark.full
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("make", [_few_pgs_per_osd, _two_large_pools])
def test_every_data_pool_has_nearly_the_space_that_even_counts_give(
        make: Callable[[random.Random], Snapshot], seed: int) -> None:
    snapshot = make(random.Random(seed))
    plan = make_plan(snapshot, PlanOptions())
    assert_legal(snapshot, plan)
    end = Replay(snapshot, plan.moves)
    free = filled(snapshot, {pgid: tuple(up) for pgid, up in end.up.items()}).free
    for pool in data_pools(snapshot):
        assert free[pool] >= _NEAR * _even_space(end, pool), snapshot.pools[pool].name


def test_shards_leave_a_rack_of_unequal_hosts_together() -> None:
    """The rule chooses as many racks as there are shards, and three of them take two shards each:
    a PG has a shard on both hosts of the small rack or on none."""
    osds = Osds()
    tree = {"rack r0": {"host h0": osds.host([8] * 2), "host h1": osds.host([8] * 5)}}
    for rack in range(1, 6):
        tree[f"rack r{rack}"] = {f"host h{rack}{h}": osds.host([8] * 5) for h in range(4)}
    rule = "take default~hdd; choose indep 0 rack; chooseleaf indep 2 host; emit"
    layout = osds.layout(tree, {1: rule}, [PoolPlan("ec", 1.0, 96, size=6, rule=1, k=4)])
    snapshot = fill(layout, random.Random(1)).snapshot()
    plan = make_plan(snapshot, PlanOptions())
    assert_legal(snapshot, plan)
    assert plan.after.classes["hdd"].max <= plan.bounds["hdd"] + 0.1


def test_many_pools_do_not_move_without_end_for_their_counts() -> None:
    """Forty pools with 2.5 % of the data each: what they may cost beside evening out is limited."""
    snapshot = SnapshotBuilder().build(large_reading(60, 40))
    bounds = utilization_bounds(snapshot)
    displaced: Dict[float, int] = {}
    for budget in (0.005, 1.0):
        weights = AIM_WEIGHTS["space"][0]._replace(
            far_move_budget=budget, least_far_move_budget=budget, phases=())
        placement = PlacementState(snapshot, PlanOptions())
        search = Search(placement, bounds, weights)
        assert search.run()
        assert search.costs.far_bytes_left > -max(placement.pg_bytes)
        displaced[budget] = sum(placement.pg_bytes[pg] for pg in placement.moved_pgs)
    assert displaced[0.005] < 0.9 * displaced[1.0]

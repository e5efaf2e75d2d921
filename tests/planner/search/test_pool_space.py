"""Free space of data pools after a plan, against what balancing PG counts alone would give them."""
from __future__ import annotations

import math
import random
from typing import Callable, Dict, List, Tuple

import pytest
from tests.benchmark.made.scale import large_reading
from tests.benchmark.made.shapes import Layout, Osds, PoolPlan, fill
from tests.benchmark.scoring import changed_items, data_pools, fill as filled, up_with
from tests.support.plan_legality import assert_legal
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


def _layout(rng: random.Random, pools: List[PoolPlan], hosts: int, osds_per_host: int,
            sizes: Tuple[int, ...]) -> Layout:
    osds = Osds()
    tree = {f"host h{h}": osds.host([rng.choice(sizes) for _ in range(osds_per_host)])
            for h in range(hosts)}
    return Layout({"root default": tree}, osds.tib, osds.classes, {0: HDD_HOSTS}, pools)


def _few_pgs_per_osd(rng: random.Random) -> Snapshot:
    pools = [PoolPlan("large", 0.7, 512)] + [
        PoolPlan(f"small{n}", 0.03, 16) for n in range(10)]
    return fill(_layout(rng, pools, 10, 5, (8,)), rng).snapshot()


def _two_large_pools(rng: random.Random) -> Snapshot:
    pools = [PoolPlan("many", 0.6, 1024), PoolPlan("few", 0.4, 128)]
    return fill(_layout(rng, pools, 12, 5, (6, 8)), rng).snapshot()


def _even_space(snapshot: Snapshot, used: Dict[int, float], pool: int) -> float:
    """Client bytes that fit where each OSD has its part of the shards by size, rounded up."""
    total = sum(osd.size_bytes for osd in snapshot.osds.values())
    shards = snapshot.pools[pool].pg_num * snapshot.pools[pool].size
    return min((osd.size_bytes * snapshot.full_ratio - used[osd.id])
               * snapshot.pools[pool].pg_num * snapshot.pools[pool].data_shards
               / math.ceil(shards * osd.size_bytes / total - 1e-9)
               for osd in snapshot.osds.values())


@pytest.mark.full
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("make", [_few_pgs_per_osd, _two_large_pools])
def test_every_data_pool_has_nearly_the_space_that_even_counts_give(
        make: Callable[[random.Random], Snapshot], seed: int) -> None:
    snapshot = make(random.Random(seed))
    plan = make_plan(snapshot, PlanOptions())
    assert_legal(snapshot, plan)
    up = up_with(snapshot, changed_items(snapshot, ((c.pgid, c.items) for c in plan.changes)))
    used = {osd.id: float(osd.target_bytes) for osd in snapshot.osds.values()}
    for move in plan.moves:
        used[move.source] -= move.bytes
        used[move.target] += move.bytes
    free = filled(snapshot, up).free
    for pool in data_pools(snapshot):
        assert free[pool] >= _NEAR * _even_space(snapshot, used, pool), snapshot.pools[pool].name


def test_shards_leave_a_rack_of_unequal_hosts_together() -> None:
    """The rule chooses as many racks as there are shards, and three of them take two shards each:
    a PG has a shard on both hosts of the small rack or on none."""
    rng = random.Random(1)
    osds = Osds()
    racks = {f"rack r{r}": {f"host r{r}h{h}": osds.host([8] * (5 if r or h else 2))
                            for h in range(2 if r == 0 else 4)} for r in range(6)}
    rules = {0: HDD_HOSTS,
             1: "take default~hdd; choose indep 0 rack; chooseleaf indep 2 host; emit"}
    layout = Layout({"root default": racks}, osds.tib, osds.classes, rules,
                    [PoolPlan("ec", 1.0, 96, size=6, rule=1, k=4)])
    snapshot = fill(layout, rng).snapshot()
    plan = make_plan(snapshot, PlanOptions())
    assert_legal(snapshot, plan)
    highest = {name: usage.max for name, usage in plan.after.classes.items()}
    assert highest["hdd"] <= plan.bounds["hdd"] + 0.1


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

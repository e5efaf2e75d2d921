"""No plan, and no chain of legal moves, leaves a pool more free space than its bound."""
from __future__ import annotations

from typing import Dict, Tuple

from tests.benchmark.scoring import current_up, fill
from tests.properties.planned import Planned

from equilibrium_mgr.crush.placement import NO_OSD
from equilibrium_mgr.planner.bound.lower_bound import cluster_bounds


def test_plans_keep_the_bound(case: Planned) -> None:
    snapshot = case.snapshot
    bounds = cluster_bounds(snapshot).pool_space
    for name, space in case.plan.after.pools.items():
        if space.pool_id in bounds:
            assert space.free_bytes <= bounds[space.pool_id].free_bytes, name


def test_random_moves_keep_the_bound(case: Planned) -> None:
    snapshot, rng = case.snapshot, case.rng("pool space bound")
    bounds = cluster_bounds(snapshot).pool_space
    up: Dict[str, Tuple[int, ...]] = current_up(snapshot)
    used = {osd.id: osd.target_bytes for osd in snapshot.osds.values()}
    usable = [osd.id for osd in snapshot.osds.values() if osd.unusable_reason() is None]
    for _ in range(200):
        pg = snapshot.pgs[rng.choice(sorted(snapshot.pgs))]
        rule, position = snapshot.pools[pg.pool].rule, rng.randrange(len(pg.up))
        target, source = rng.choice(usable), up[pg.pgid][position]
        full = snapshot.osds[target].size_bytes * snapshot.full_ratio
        if rule is None or NO_OSD in up[pg.pgid] or len(pg.up) != rule.size or (
                used[target] + pg.shard_bytes > full) or (
                not rule.allows(up[pg.pgid], position, target)):
            continue
        used[source] -= pg.shard_bytes
        used[target] += pg.shard_bytes
        moved = list(up[pg.pgid])
        moved[position] = target
        up[pg.pgid] = tuple(moved)
    free = fill(snapshot, up).free
    assert all(free[number] <= bound.free_bytes for number, bound in bounds.items())

"""A plan of a small cluster beside the optima: how much is left on both axes."""
from __future__ import annotations

from typing import Dict, List, Mapping, NamedTuple, Sequence, Tuple

from tests.optimum.clusters import optimum_cluster
from tests.optimum.optima import Optima
from tests.optimum.problem import Part, parts_of

from equilibrium_mgr.plan.model import Plan
from equilibrium_mgr.plan.options import PlanOptions
from equilibrium_mgr.planner.bound.lower_bound import UtilizationBounds, cluster_bounds
from equilibrium_mgr.planner.planner import make_plan
from equilibrium_mgr.snapshot.model import Snapshot

#: Of sums of floats that are compared, a ratio.
ROUNDING = 1e-9


class Figures(NamedTuple):
    """Of one placement of a part: the highest utilization, and client bytes free of each pool."""

    max_utilization: float
    free_bytes: Tuple[float, ...]

    @property
    def space(self) -> float:
        return sum(self.free_bytes)


class PartResult(NamedTuple):
    """What is left on the OSDs of one part. Utilizations are ratios."""

    seed: int
    kind: str
    aim: str
    proven: bool
    bound: float                # the planner's, of the maximum
    space_bounds: Tuple[float, ...]    # the planner's, of each pool's free space
    best_free: Tuple[float, ...]       # of each pool, whatever the others have
    best_max: float
    best_space: float
    best_space_at_best_max: float
    best_max_at_best_space: float
    best_max_for_these_pools: float    # no pool with less free space than after the plan
    best_space_at_this_max: float      # no OSD fuller than the plan's fullest
    initial: Figures
    planned: Figures
    typical_shard: float        # ratio of an OSD
    moved_bytes: int

    @property
    def contradiction(self) -> str:
        """What cannot be, or nothing: it would be a fault of the plan, the bound or the optimum."""
        if not self.proven:
            return ""
        if self.planned.max_utilization < self.best_max:
            return "the plan's maximum is below the least"
        if self.planned.space > self.best_space * (1 + ROUNDING):
            return "the plan's free space is above the greatest"
        if self.bound > self.best_max * (1 + ROUNDING):
            return "the bound is above the least maximum"
        if any(bound + 1 < best * (1 - ROUNDING)
               for bound, best in zip(self.space_bounds, self.best_free)):
            return "a bound is below a pool's greatest free space"
        return ""

    @property
    def points(self) -> float:
        """Percentage points above the optimum."""
        return 100.0 * (self.planned.max_utilization - self.best_max)

    @property
    def shards(self) -> float:
        """The same in typical shards."""
        return self.points / 100.0 / self.typical_shard

    @property
    def space_ratio(self) -> float:
        return self.planned.space / self.best_space if self.best_space else 1.0

    @property
    def space_ratio_at_this_max(self) -> float:
        """The same, of what can be had with no OSD fuller than the plan's fullest."""
        best = self.best_space_at_this_max
        return self.planned.space / best if best else 1.0

    @property
    def points_for_these_pools(self) -> float:
        """How much lower the maximum can be with no pool's free space any lower."""
        return 100.0 * (self.planned.max_utilization - self.best_max_for_these_pools)


def compared(seed: int, aims: Sequence[str] = ("space", "even")) -> List[PartResult]:
    """The plans of each aim for a seed's cluster, part by part."""
    kind, cluster = optimum_cluster(seed)
    snapshot = cluster.snapshot()
    bounds = cluster_bounds(snapshot)
    plans = {aim: make_plan(snapshot, PlanOptions(aim=aim)) for aim in aims}
    results: List[PartResult] = []
    for part in parts_of(snapshot, cluster.crush):
        optimum = _optimum(part, bounds)
        results += [_result(seed, kind, snapshot, part, optimum, plan) for plan in plans.values()]
    return results


class _Optimum(NamedTuple):
    optima: Optima
    proven: bool
    best_max: float
    space: float
    space_at_best_max: float
    max_at_best_space: float
    best_free: Tuple[float, ...]
    bound: float
    space_bounds: Tuple[float, ...]


def _optimum(part: Part, bounds: UtilizationBounds) -> _Optimum:
    optima = Optima(part)
    osd_set = next(one for one in bounds.sets if set(one.osds) & set(part.size_bytes))
    best_max = optima.least_max()
    space = optima.most_space()
    at_best = optima.most_space(best_max)
    enough = optima.least_max(space.free_bytes) if part.pools else best_max
    at_space, proven = optima.least_max_at_space(space.total, enough)
    return _Optimum(optima, space.proven and at_best.proven and proven, best_max, space.total,
                    at_best.total, at_space, optima.most_free_of_each(), osd_set.bound,
                    tuple(bounds.pool_space[pool].free_bytes for pool in part.pools))


def _result(seed: int, kind: str, snapshot: Snapshot, part: Part, optimum: _Optimum,
            plan: Plan) -> PartResult:
    ups: Dict[str, Sequence[int]] = {pgid: pg.up for pgid, pg in snapshot.pgs.items()}
    initial = figures_of(part, ups)
    ups.update({change.pgid: change.up_after for change in plan.changes})
    planned = figures_of(part, ups)
    at_this = optimum.optima.most_space(planned.max_utilization)
    return PartResult(
        seed=seed, kind=kind, aim=plan.aim, proven=optimum.proven and at_this.proven,
        bound=optimum.bound, space_bounds=optimum.space_bounds, best_free=optimum.best_free,
        best_max=optimum.best_max, best_space=optimum.space,
        best_space_at_best_max=optimum.space_at_best_max,
        best_max_at_best_space=optimum.max_at_best_space,
        best_max_for_these_pools=optimum.optima.least_max(planned.free_bytes),
        best_space_at_this_max=at_this.total, initial=initial, planned=planned,
        typical_shard=_typical_shard(part),
        moved_bytes=sum(move.bytes for move in plan.moves if move.source in part.size_bytes))


def figures_of(part: Part, ups: Mapping[str, Sequence[int]]) -> Figures:
    """Of a placement, counted as the optima are."""
    used = dict(part.base_bytes)
    shares: Dict[int, Dict[int, float]] = {pool: {} for pool in part.pools}
    for one in part.classes:
        for pgid in one.pgs:
            for osd in ups[pgid]:
                used[osd] += one.shard_bytes
                if one.pool in shares:
                    shares[one.pool][osd] = shares[one.pool].get(osd, 0.0) + one.parts
    free = [min(max(0.0, part.size_bytes[osd] * part.full_ratio - used[osd])
                * part.data_shards[pool] / share for osd, share in shares[pool].items())
            for pool in part.pools]
    return Figures(max(used[osd] / part.size_bytes[osd] for osd in used), tuple(free))


def _typical_shard(part: Part) -> float:
    """Half of the bytes are in shards of at most this ratio of a median OSD."""
    left = sum(one.shard_bytes * one.shards * len(one.pgs) for one in part.classes) / 2.0
    osds = sorted(part.size_bytes.values())
    for one in sorted(part.classes, key=lambda c: c.shard_bytes):
        left -= one.shard_bytes * one.shards * len(one.pgs)
        if left <= 0.0:
            return one.shard_bytes / osds[len(osds) // 2]
    raise AssertionError("a part without shards")

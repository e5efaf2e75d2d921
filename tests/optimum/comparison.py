"""A plan of a small cluster beside the optima: how much is left on both axes."""
from __future__ import annotations

from typing import Dict, List, Mapping, NamedTuple, Sequence, Tuple

from tests.optimum.clusters import optimum_cluster
from tests.optimum.optima import Optima
from tests.optimum.problem import Part, parts_of

from equilibrium_mgr.plan.options import PlanOptions
from equilibrium_mgr.planner.bound.lower_bound import cluster_bounds
from equilibrium_mgr.planner.planner import make_plan

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
    planned: Figures

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
    def space_ratio(self) -> float:
        return self.planned.space / self.best_space if self.best_space else 1.0


def compared(seed: int, aims: Sequence[str] = ("space", "even")) -> List[PartResult]:
    """The plans of each aim for a seed's cluster, part by part."""
    kind, cluster = optimum_cluster(seed)
    snapshot = cluster.snapshot()
    bounds = cluster_bounds(snapshot)
    plans = {aim: make_plan(snapshot, PlanOptions(aim=aim)) for aim in aims}
    results: List[PartResult] = []
    for part in parts_of(snapshot, cluster.crush):
        optima = Optima(part)
        space, best_max = optima.most_space(), optima.least_max()
        osd_set = next(one for one in bounds.sets if set(one.osds) & set(part.size_bytes))
        for plan in plans.values():
            ups: Dict[str, Sequence[int]] = {pgid: pg.up for pgid, pg in snapshot.pgs.items()}
            ups.update({change.pgid: change.up_after for change in plan.changes})
            results.append(PartResult(
                seed=seed, kind=kind, aim=plan.aim, proven=space.proven, bound=osd_set.bound,
                space_bounds=tuple(bounds.pool_space[pool].free_bytes for pool in part.pools),
                best_free=optima.most_free_of_each(), best_max=best_max, best_space=space.total,
                planned=figures_of(part, ups)))
    return results


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

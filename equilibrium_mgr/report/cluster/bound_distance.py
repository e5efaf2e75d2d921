"""How far a plan ends from the bounds of classes and data pools, and what keeps it from them."""
from __future__ import annotations

from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Tuple

from ...observation.cluster_view import ClusterView
from ...observation.planned_placement import PlannedPlacement
from ...plan.kinds import BALANCE
from ...plan.model import ClassUsage, Plan, Usage
from ...plan.usage import class_usage
from ...planner.bound.certificate import Cut, KeptBytes, least_moved_bytes
from ...planner.bound.lower_bound import UtilizationBounds
from ...planner.bound.pool_space import PoolSpaceBound
from ...planner.planner import CONVERGED
from ...runtime.formatting import format_percent, plural, wrap
from ...snapshot import reason_codes as codes
from ..table import Row


#: A pool that has this ratio of its bound is near it.
_NEAR_SPACE = 0.95
#: A class whose maximum is this near its bound (a ratio) is, whatever its shards.
_NEAR_UTILIZATION = 0.0005
#: Pools with a smaller ratio of all bytes are no data pools: their space is not what anybody lacks.
_DATA_POOL = 0.01
_MOST_LINES = 5

# Beside reason codes: why a plan is not near a bound.
LIMIT = "limit"      # of moves, bytes, time, or of OSDs and pools
WEIGHTS = "weights"  # OSDs are held to a share of their size, which the bound does not count
SHARED = "shared"    # the bounds of classes whose OSDs the same pools use exclude each other
SEARCH = "search"    # no move that was tried is worth its bytes

_SAME = 1e-9


class ClassDistance(NamedTuple):
    """Utilizations are ratios. `bound` keeps the operator's weights; `proven_bound`, that of the
    class's certificate, counts the OSDs' sizes alone."""

    device_class: str
    planned_max: float
    bound: float
    proven_bound: float
    moved_bytes: int         # by what is left of the plan, off OSDs of the class
    least_moved_bytes: int   # that any plan with this maximum moves
    is_near: bool
    code: Optional[str]      # why it is not near
    reason: Optional[str]
    held_osds: int = 0       # OSDs of the class that the operator's weights hold to a share

    def lines(self) -> List[str]:
        """What is proven; with lowered weights also what the bound means."""
        points = 100.0 * max(0.0, self.planned_max - self.proven_bound)
        text = (f"provably at most {points:.2f} points and {100.0 * self.bytes_ratio:.0f}% of the"
                " bytes from the best possible")
        if self.held_osds:
            text += (f" by sizes alone ({format_percent(self.proven_bound)}); the bound keeps the"
                     f" lowered weights of {plural(self.held_osds, 'OSD')}")
            if self.planned_max < self.bound - _SAME:
                text += ", which the plan does not reach in full"
        return wrap("  ", text, 2)

    @property
    def bytes_ratio(self) -> float:
        """The part of the moved bytes that another plan with this maximum could save at most."""
        if not self.moved_bytes:
            return 0.0
        return max(0.0, 1.0 - self.least_moved_bytes / self.moved_bytes)


class PoolDistance(NamedTuple):
    """Of a data pool; client bytes."""

    pool: int
    name: str
    planned_free_bytes: int
    best_free_bytes: int
    is_near: bool
    code: Optional[str]
    reason: Optional[str]


class Distances(NamedTuple):
    """Of all classes and data pools whose bounds are known."""

    classes: List[ClassDistance]
    pools: List[PoolDistance]

    def lines(self) -> List[str]:
        """For people: what is near its bound, and why the rest is not."""
        near = [f"{entry.device_class}{' (weights kept)' if entry.held_osds else ''}"
                for entry in self.classes if entry.is_near] + [
            entry.name for entry in self.pools if entry.is_near]
        far = [f"class {entry.device_class} ({100 * (entry.planned_max - entry.bound):.2f} points"
               f" above): {entry.reason}" for entry in self.classes if not entry.is_near]
        far += [f"pool {entry.name} ({_percent(entry)} of it): {entry.reason}"
                for entry in self.pools if not entry.is_near]
        lines = wrap("near the bound: ", ", ".join(near), 2) if near else []
        for text in far[:_MOST_LINES]:
            lines += wrap("not near the bound: ", text, 2)
        more = len(far) - _MOST_LINES
        return lines + ([f"... and {plural(more, 'pool')} more, in the JSON"] if more > 0 else [])

    def to_json(self) -> Row:
        """JSON-ready."""
        return {"classes": [{
            "device_class": entry.device_class, "planned_max_utilization": entry.planned_max,
            "bound_utilization": entry.bound, "proven_utilization": entry.proven_bound,
            "held_osds": entry.held_osds, "moved_bytes": entry.moved_bytes,
            "least_moved_bytes": entry.least_moved_bytes, "is_near": entry.is_near,
            "reason_code": entry.code, "reason": entry.reason}
            for entry in self.classes], "pools": [{
                "id": entry.pool, "name": entry.name,
                "planned_free_bytes": entry.planned_free_bytes,
                "best_free_bytes": entry.best_free_bytes, "is_near": entry.is_near,
                "reason_code": entry.code, "reason": entry.reason} for entry in self.pools]}


def distances(view: ClusterView, plan: Plan, planned: PlannedPlacement,
              usage: Usage) -> Distances:
    """`usage`: the figures of the planned placement."""
    bounds = view.utilization_bounds
    # a plan that does not search for a better placement is not measured by the best one
    if bounds is None or not bounds.cuts or plan.kind != BALANCE:
        return Distances([], [])
    data = _data_pools(bounds)
    return Distances(_classes(view, bounds, plan, planned, data),
                     [_pool(view, plan, usage, pool, bound) for pool, bound in data.items()])


def _data_pools(bounds: UtilizationBounds) -> Dict[int, PoolSpaceBound]:
    whole = sum(bound.shards * bound.shard_bytes for bound in bounds.pool_space.values())
    return {pool: bound for pool, bound in bounds.pool_space.items()
            if bound.shard_bytes and bound.shards * bound.shard_bytes >= _DATA_POOL * whole}


def _classes(view: ClusterView, bounds: UtilizationBounds, plan: Plan, planned: PlannedPlacement,
             data: Mapping[int, PoolSpaceBound]) -> List[ClassDistance]:
    osds = view.snapshot.osds
    moved: Dict[str, int] = {}
    for osd, taken in planned.outgoing.items():
        if osd in osds:
            name = osds[osd].device_class
            moved[name] = moved.get(name, 0) + taken
    return [_class(view, bounds, plan, planned, data, name, figures, moved.get(name, 0))
            for name, figures in class_usage(view.snapshot, planned.used).items()
            if bounds.class_cuts.get(name) in bounds.cuts]


def _class(view: ClusterView, bounds: UtilizationBounds, plan: Plan, planned: PlannedPlacement,
           data: Mapping[int, PoolSpaceBound], name: str, figures: ClassUsage,
           moved: int) -> ClassDistance:
    sizes = {osd.id: osd.size_bytes for osd in view.snapshot.osds.values()
             if osd.has_statistics and osd.is_for_data and osd.device_class == name}
    fullest = figures.fullest_osd
    shards = {pool: planned.shards[pool].get(fullest, 0.0) for pool in data}
    held = sum(shards[pool] * data[pool].shard_bytes for pool in data)
    gap, typical = figures.max - bounds.classes[name], held / (sum(shards.values()) or 1.0)
    is_near = gap <= max(_NEAR_UTILIZATION, typical / sizes[fullest] / 2.0)
    largest = max((pool for pool in data if shards[pool]),
                  key=lambda pool: data[pool].shard_bytes, default=None)
    ratio = data[largest].shard_bytes / sizes[fullest] if largest is not None else 0.0
    text = "" if largest is None else (
        f"a shard of pool {view.snapshot.pools[largest].name} is {100.0 * ratio:.2f}% of"
        f" osd.{fullest}, which is the fullest")
    code, reason = (None, None) if is_near else _cause(
        plan, gap <= ratio, text, _shared(bounds, name))
    return ClassDistance(
        name, figures.max, bounds.classes[name], bounds.cuts[
            bounds.class_cuts[name]].least_utilization, moved,
        least_moved_bytes(view.used_soon, sizes, figures.max), is_near, code, reason,
        sum(view.snapshot.osds[osd].share < 1.0 for osd in sizes))


def _pool(view: ClusterView, plan: Plan, usage: Usage, pool: int,
          bound: PoolSpaceBound) -> PoolDistance:
    name = view.snapshot.pools[pool].name
    free = usage.pools[name].free_bytes
    per_osd = bound.shards / bound.reached_osds
    missing = 1.0 - free / bound.free_bytes
    is_near = missing <= 1.0 - _NEAR_SPACE
    text = (f"its {bound.shards} shards are {per_osd:.1f} per OSD, and one more on one of them is"
            f" {100.0 / per_osd:.0f}%")
    held = sum(view.snapshot.osds[osd].share < 1.0 for osd in bound.osds)
    code, reason = (None, None) if is_near else (
        (WEIGHTS, f"its bound counts the whole size of {plural(held, 'OSD')} whose weights are"
         " lowered") if held and plan.stop_reason == CONVERGED
        else _cause(plan, missing <= 1.0 / per_osd, text))
    return PoolDistance(pool, name, free, bound.free_bytes, is_near, code, reason)


def _shared(bounds: UtilizationBounds, name: str) -> str:
    """Names of all classes that have OSDs in a set of OSDs with this one; empty for it alone."""
    return next((", ".join(names) for names in (
        entry.device_class.split(",") for entry in bounds.sets)
        if name in names and len(names) > 1), "")


def _cause(plan: Plan, is_granular: bool, granularity: str, shared: str = "") -> Tuple[str, str]:
    """(code, clause) of what keeps a plan from a bound."""
    if plan.stop_reason != CONVERGED:
        return LIMIT, f"{plan.stop_reason}"
    if is_granular:
        return codes.GRANULARITY, granularity
    if plan.limited_to:
        return LIMIT, f"the plan is limited to {plan.limited_to}"
    held = sum(count for reason, count in plan.skipped.items() if reason.startswith("PG: "))
    if held:
        return codes.IMMOVABLE, f"{plural(held, 'PG')} cannot be moved"
    if shared:
        return SHARED, (f"the same pools use OSDs of classes {shared}, and the bound of each class"
                        " holds for it alone: they cannot all be reached at once")
    return SEARCH, "the search found no move that is worth its bytes"


def _percent(entry: PoolDistance) -> str:
    return f"{100.0 * entry.planned_free_bytes / entry.best_free_bytes:.1f}%"


def certificates_json(bounds: UtilizationBounds, classes: List[ClassDistance]) -> Row:
    """The cuts, and for each class and pool the number of its cut with what that proves.

    `least_moved_bytes` of a class: what has to leave OSDs that are above its planned maximum.
    `split_bytes` of a pool: its bound if shards could be split, which is what the cut proves.
    """
    number_of = {osds: number for number, osds in enumerate(bounds.cuts)}
    pools: List[Row] = []
    for pool, bound in bounds.pool_space.items():
        pools.append({"id": pool, "cut": number_of[bound.osds], "kept_shards": bound.kept_shards,
                      "split_bytes": bound.split_bytes})
    return {"osdmap_epoch": bounds.epoch, "cuts": [_cut_json(cut) for cut in bounds.cuts.values()],
            "classes": [{
                "device_class": entry.device_class,
                "cut": number_of[bounds.class_cuts[entry.device_class]],
                "bound_utilization": entry.proven_bound,
                "planned_max_utilization": entry.planned_max,
                "least_moved_bytes": entry.least_moved_bytes} for entry in classes],
            "pools": pools}


def _cut_json(cut: Cut) -> Dict[str, Any]:
    return {"osds": list(cut.osds), "size_bytes": cut.size_bytes, "used_bytes": cut.used_bytes,
            "full_bytes": cut.full_bytes, "can_leave_bytes": cut.can_leave_bytes,
            "kept": [_kept_json(entry) for entry in cut.kept]}


def _kept_json(entry: KeptBytes) -> Dict[str, Any]:
    return {"pool": entry.pool, "take": entry.take, "shards": entry.shards,
            "limits": [{"type": name, "most_shards": most} for name, most in entry.limits],
            "most_elsewhere": entry.most_elsewhere, "kept_bytes": entry.kept_bytes}

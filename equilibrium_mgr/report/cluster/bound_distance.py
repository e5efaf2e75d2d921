"""How far a plan ends from the bounds of classes and data pools, and what keeps it from them."""
from __future__ import annotations

from typing import Dict, List, Mapping, Optional, Sequence, Tuple

from ...observation.cluster_view import ClusterView
from ...observation.planned_placement import PlannedPlacement
from ...plan.kinds import BALANCE
from ...plan.model import ClassUsage, Plan, Usage
from ...plan.usage import class_usage
from ...planner.bound.certificate import least_moved_bytes
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


def distance_lines(classes: Sequence[Row], pools: Sequence[Row]) -> List[str]:
    """For people: what is near its bound, and why the rest is not."""
    near, far = [], []
    for row in classes:
        above = row["planned_max_utilization"] - row["bound_utilization"]
        name = row["device_class"]
        if row["is_near"]:
            near.append(f"{name} (weights kept)" if row["held_osds"] else name)
        else:
            far.append(f"class {name} ({100 * above:.2f} points above): {row['reason']}")
    for row in pools:
        if row["is_near"]:
            near.append(row["name"])
        else:
            part = 100.0 * row["planned_free_bytes"] / row["best_free_bytes"]
            far.append(f"pool {row['name']} ({part:.1f}% of it): {row['reason']}")
    lines = wrap("near the bound: ", ", ".join(near), 2) if near else []
    for text in far[:_MOST_LINES]:
        lines += wrap("not near the bound: ", text, 2)
    more = len(far) - _MOST_LINES
    return lines + ([f"... and {plural(more, 'pool')} more, in the JSON"] if more > 0 else [])


def proven_lines(row: Row) -> List[str]:
    """What is proven of a class; with lowered weights also what the bound means."""
    highest, proven = row["planned_max_utilization"], row["proven_utilization"]
    saved = max(0.0, 1.0 - row["least_moved_bytes"] / row["moved_bytes"]) if (
        row["moved_bytes"]) else 0.0   # that another plan with this maximum could save at most
    text = (f"provably at most {100.0 * max(0.0, highest - proven):.2f} points and"
            f" {100.0 * saved:.0f}% of the bytes from the best possible")
    if row["held_osds"]:
        text += (f" by sizes alone ({format_percent(proven)}); the bound keeps the lowered weights"
                 f" of {plural(row['held_osds'], 'OSD')}")
        if highest < row["bound_utilization"] - _SAME:
            text += ", which the plan does not reach in full"
    return wrap("  ", text, 2)


def distances(view: ClusterView, plan: Plan, planned: PlannedPlacement,
              usage: Usage) -> Tuple[List[Row], List[Row]]:
    """Of all classes, and of all data pools, whose bounds are known, JSON-ready; `usage`: the
    figures of the planned placement.

    Of classes, utilizations are ratios: `bound_` keeps the operator's weights, `proven_`, that of
    the class's certificate, counts the OSDs' sizes alone. `moved_bytes`: by what is left of the
    plan, off OSDs of the class; `least_moved_bytes`: that any plan with this maximum moves.
    `held_osds`: OSDs that the operator's weights hold to a share. Of pools, client bytes.
    """
    bounds, osds = view.utilization_bounds, view.snapshot.osds
    # a plan that does not search for a better placement is not measured by the best one
    if bounds is None or not bounds.cuts or plan.kind != BALANCE:
        return [], []
    whole = sum(bound.shards * bound.shard_bytes for bound in bounds.pool_space.values())
    data = {pool: bound for pool, bound in bounds.pool_space.items()
            if bound.shard_bytes and bound.shards * bound.shard_bytes >= _DATA_POOL * whole}
    moved: Dict[str, int] = {}
    for osd, taken in planned.outgoing.items():
        if osd in osds:
            name = osds[osd].device_class
            moved[name] = moved.get(name, 0) + taken
    return (
        [_class(view, bounds, plan, planned, data, name, figures, moved.get(name, 0))
         for name, figures in class_usage(view.snapshot, planned.used).items()
         if bounds.class_cuts.get(name) in bounds.cuts],
        [_pool(view, plan, usage, pool, bound) for pool, bound in data.items()])


def _class(view: ClusterView, bounds: UtilizationBounds, plan: Plan, planned: PlannedPlacement,
           data: Mapping[int, PoolSpaceBound], name: str, figures: ClassUsage,
           moved: int) -> Row:
    """`data`: the bounds of data pools."""
    osds, fullest = view.snapshot.osds, figures.fullest_osd
    sizes = {osd.id: osd.size_bytes for osd in osds.values()
             if osd.has_statistics and osd.is_for_data and osd.device_class == name}
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
    # classes that have OSDs in a set of OSDs with this one
    shared = next((", ".join(names) for names in (
        entry.device_class.split(",") for entry in bounds.sets)
        if name in names and len(names) > 1), "")
    code, reason = (None, None) if is_near else _cause(plan, gap <= ratio, text, shared)
    return {"device_class": name, "planned_max_utilization": figures.max,
            "bound_utilization": bounds.classes[name],
            "proven_utilization": bounds.cuts[bounds.class_cuts[name]].least_utilization,
            "held_osds": sum(osds[osd].share < 1.0 for osd in sizes), "moved_bytes": moved,
            "least_moved_bytes": least_moved_bytes(view.used_soon, sizes, figures.max),
            "is_near": is_near, "reason_code": code, "reason": reason}


def _pool(view: ClusterView, plan: Plan, usage: Usage, pool: int, bound: PoolSpaceBound) -> Row:
    name = view.snapshot.pools[pool].name
    free, per_osd = usage.pools[name].free_bytes, bound.shards / bound.reached_osds
    missing = 1.0 - free / bound.free_bytes
    is_near = missing <= 1.0 - _NEAR_SPACE
    held = sum(view.snapshot.osds[osd].share < 1.0 for osd in bound.osds)
    code: Optional[str] = None
    reason: Optional[str] = None
    if not is_near and held and plan.stop_reason == CONVERGED:
        code, reason = WEIGHTS, (f"its bound counts the whole size of {plural(held, 'OSD')} whose"
                                 " weights are lowered")
    elif not is_near:
        code, reason = _cause(
            plan, missing <= 1.0 / per_osd, f"its {bound.shards} shards are {per_osd:.1f} per OSD,"
            f" and one more on one of them is {100.0 / per_osd:.0f}%")
    return {"id": pool, "name": name, "planned_free_bytes": free,
            "best_free_bytes": bound.free_bytes, "is_near": is_near, "reason_code": code,
            "reason": reason}


def _cause(plan: Plan, is_granular: bool, granularity: str, shared: str = "") -> Tuple[str, str]:
    """(code, clause) of what keeps a plan from a bound. `shared`: names of all classes that have
    OSDs in a set with this one; empty for it alone."""
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


def certificates_json(bounds: UtilizationBounds, classes: Sequence[Row]) -> Row:
    """What proves the bounds (planner/bound/certificate.py): the cuts, and for each class and pool
    the number of its cut with what that proves.

    `least_moved_bytes` of a class: what has to leave OSDs that are above its planned maximum.
    `split_bytes` of a pool: its bound if shards could be split, which is what the cut proves.
    """
    number_of = {osds: number for number, osds in enumerate(bounds.cuts)}
    return {
        "osdmap_epoch": bounds.epoch,
        "cuts": [{
            "osds": list(cut.osds), "size_bytes": cut.size_bytes, "used_bytes": cut.used_bytes,
            "full_bytes": cut.full_bytes, "can_leave_bytes": cut.can_leave_bytes,
            "kept": [{
                "pool": entry.pool, "take": entry.take, "shards": entry.shards,
                "limits": [{"type": name, "most_shards": most} for name, most in entry.limits],
                "most_elsewhere": entry.most_elsewhere, "kept_bytes": entry.kept_bytes}
                for entry in cut.kept]} for cut in bounds.cuts.values()],
        "classes": [{
            "device_class": row["device_class"],
            "cut": number_of[bounds.class_cuts[row["device_class"]]],
            "bound_utilization": row["proven_utilization"],
            "planned_max_utilization": row["planned_max_utilization"],
            "least_moved_bytes": row["least_moved_bytes"]} for row in classes],
        "pools": [{"id": pool, "cut": number_of[bound.osds], "kept_shards": bound.kept_shards,
                   "split_bytes": bound.split_bytes}
                  for pool, bound in bounds.pool_space.items()]}

"""How far a plan ends from the bounds of classes and data pools, and what keeps it from them.

The figures of device classes: of now as `ceph osd df` has them, and of what is to come.
"""
from __future__ import annotations

import math
from collections import Counter
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from ...observation.cluster_view import ClusterView
from ...observation.refusals import PlannedPlacement
from ...plan.model import BALANCE, ClassUsage, Plan, Usage
from ...plan.usage import class_usage
from ...planner.bound.demand import least_moved_bytes
from ...planner.bound.lower_bound import UtilizationBounds
from ...planner.bound.pool_space import PoolSpaceBound
from ...planner.planner import CONVERGED
from ...runtime.formatting import format_bytes, format_percent, plural, wrap
from ...snapshot import reason_codes as codes
from ..answer import Column, Row, render_table

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
    """What proves the bounds (planner/bound/demand.py): the cuts, and for each class and pool
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


_COLUMNS = (Column("CLASS", is_name=True),) + tuple(Column(title) for title in (
    "OSDS", "SIZE", "%USE", "%MAX", "FULLEST", "%MIN", "STDDEV", "%SOON", "%PLAN", "%BOUND"))
#: Points of utilization that a line stands for: the least that keeps to so many lines.
_STEPS = (1, 2, 4, 5, 10, 20, 50, 100)
_MOST_CLASS_LINES = 10
_BAR = 22


def class_rows(view: ClusterView, planned_used: Optional[Mapping[int, int]] = None) -> List[Row]:
    """One dictionary for each device class, in the order of names; OSDs that are out or without
    statistics do not count.

    Utilizations are ratios: `utilization` is used bytes ÷ size of the class; it, max, min and
    stddev are of now, as OSDs report them, those that are being drained too. What is to be is of
    the OSDs that take data, and None where a class has none. `soon_`: once everything in flight has
    arrived. `planned_`: by `planned_used`, OSD id → bytes; None without it. `bound_`: no legal
    placement that keeps the operator's weights has a lower maximum, one that does not may; None
    where that is not known of the class by itself.
    """
    later = (("soon_", class_usage(view.snapshot, view.used_soon)),
             ("planned_", {} if planned_used is None else class_usage(view.snapshot, planned_used)))
    rows: List[Row] = []
    for name, now in class_usage(view.snapshot, view.used_now, with_drained=True).items():
        row: Row = {
            "device_class": name, "osds": now.osds, "size_bytes": now.size_bytes,
            "used_bytes": now.used_bytes,
            "utilization": now.used_bytes / now.size_bytes if now.size_bytes else None,
            "max_utilization": now.max, "fullest_osd": now.fullest_osd,
            "min_utilization": now.min, "stddev": now.stddev,
            "bound_utilization": view.bounds.get(name)}
        for prefix, usages in later:
            usage = usages.get(name)
            row.update({f"{prefix}max_utilization": usage and usage.max,
                        f"{prefix}fullest_osd": usage and usage.fullest_osd,
                        f"{prefix}min_utilization": usage and usage.min,
                        f"{prefix}stddev": usage and usage.stddev})
        rows.append(row)
    return rows


def class_table(rows: Sequence[Dict[str, Any]]) -> str:
    """One line for each dictionary of `class_rows`, in per cent."""
    return render_table(_COLUMNS, [[
        row["device_class"], str(row["osds"]), format_bytes(row["size_bytes"]),
        format_percent(row["utilization"]), format_percent(row["max_utilization"]),
        f"osd.{row['fullest_osd']}", format_percent(row["min_utilization"]),
        format_percent(row["stddev"]), format_percent(row["soon_max_utilization"]),
        format_percent(row["planned_max_utilization"]),
        format_percent(row["bound_utilization"])] for row in rows])


def histogram(now: Sequence[float], later: Sequence[float],
              bound: Optional[float]) -> List[Row]:
    """One row for each step of utilization from the fullest down.

    `now`, `later`: utilization of each OSD, a ratio; `later_osds` is None where that is empty, as
    nothing is compared.
    """
    known = [*now, *later]
    if not known:
        return []
    known += [bound] if bound is not None else []
    step = next((step for step in _STEPS if _index(max(known), step) - _index(min(known), step)
                 < _MOST_CLASS_LINES), _STEPS[-1])
    osds, later_osds = (Counter(_index(value, step) for value in values)
                        for values in (now, later))
    return [{"from_ratio": step * index / 100.0, "to_ratio": step * (index + 1) / 100.0,
             "osds": osds[index], "later_osds": later_osds[index] if later else None}
            for index in range(_index(max(known), step), _index(min(known), step) - 1, -1)]


def histogram_lines(rows: Sequence[Row], bound: Optional[float], when: str) -> List[str]:
    """A line for each step of utilization, the fullest first. `when`: the head of what is later."""
    most = max([1, *[row["osds"] for row in rows], *[row["later_osds"] or 0 for row in rows]])
    is_compared = any(row["later_osds"] is not None for row in rows)

    def side(count: int) -> str:
        bar = "#" * max(1, round(_BAR * count / most)) if count else "."
        return f"  {count or '':>4}  {bar.ljust(_BAR)}"
    right = f"  OSDS  {when[:_BAR]}" if is_compared else ""
    lines = [f"  %USE  OSDS  {'now'.ljust(_BAR)}{right}".rstrip()]
    for row in rows:
        begin, end = (round(100.0 * row[key]) for key in ("from_ratio", "to_ratio"))
        text = f"{begin:6}" + side(row["osds"]) + (side(row["later_osds"]) if is_compared else "")
        is_marked = bound is not None and _index(bound, end - begin) * (end - begin) == begin
        lines.append((text + "  < bound" * is_marked).rstrip())
    return lines


def _index(value: float, step: int) -> int:
    return math.floor(100.0 * max(0.0, value) / step)

"""`eval`: the placement now, what a plan makes of it, and how far that ends from the bounds."""
from __future__ import annotations

import math
from collections import Counter
from typing import Any, Collection, Dict, List, Mapping, NamedTuple, Optional, Sequence

from ...execution.execution import bytes_by_target
from ...gateway.cluster_summary import PoolSpaceNow
from ...observation.cluster_view import ClusterView
from ...observation.movements import expected_time
from ...plan.model import BALANCE, PgChange, Plan, Usage
from ...plan.placement import Placement
from ...plan.usage import class_usage
from ...planner.bound.demand import least_moved_bytes
from ...planner.bound.lower_bound import UtilizationBounds
from ...planner.planner import CONVERGED
from ...runtime.formatting import format_bytes, format_duration, format_percent, plural, wrap
from ...runtime.time_slice import piecewise
from ...settings import Settings, default_settings
from ...snapshot import reason_codes as codes
from ...snapshot.model import Pg, Snapshot
from ..answer import CommandAnswer, Row, render_table
from .cluster_tables import (
    class_rows, class_table, format_known, format_osd, held_sentences, pool_rows, pool_table,
    room_json, room_lines)

_LOOK_STARTED = "; a new look has been started"
_AS_OLD = ", as are pools, %SOON and %BOUND; %USE, %MAX and %MIN are of now"
#: Pools with a smaller ratio of the data are folded into one line: their space is not what anybody
#: lacks.
_SMALL_POOL = 0.01

#: A class whose maximum is this near its bound (a ratio) is, whatever its shards.
_NEAR_UTILIZATION = 0.0005
_PGS_A_PIECE = 1000   # before it gives way again: about a millisecond

# Beside reason codes: why a plan is not near a bound.
LIMIT = "limit"      # of moves, bytes, time, or of OSDs and pools
SEARCH = "search"    # no move that was tried is worth its bytes

#: Points of utilization that a line stands for: the least that keeps to so many lines.
_STEPS = (1, 2, 4, 5, 10, 20, 50, 100)
_MOST_CLASS_LINES = 10
_BAR = 22


class Look(NamedTuple):
    """What an evaluation rests on."""

    view: ClusterView
    age_seconds: float                    # of the view
    space: Mapping[int, PoolSpaceNow]     # pool id → Ceph's own figures
    settings: Settings = default_settings()
    is_look_started: bool = False         # newer figures are on their way
    #: Changes of the execution that are still to be sent; None where nothing is executed.
    wanted: Optional[Sequence[PgChange]] = None

    def line(self) -> str:
        """How old the figures are, and which."""
        drifted = self.view.has_drifted
        return "\n".join(wrap(
            "", f"placement of osdmap e{self.view.snapshot.epoch},"
            f" {format_duration(self.age_seconds)} old"
            f"{_AS_OLD if drifted else ''}"
            f"{_LOOK_STARTED if self.is_look_started or drifted else ''}", 0))

    def to_json(self) -> Dict[str, Any]:
        """As `line`, JSON-ready."""
        return {"osdmap_epoch": self.view.snapshot.epoch, "snapshot_age_seconds": self.age_seconds,
                "look_started": self.is_look_started}


def evaluate_cluster(look: Look) -> CommandAnswer:
    """The placement now, and once everything in flight has arrived; the classes also when the
    execution is complete."""
    view = look.view
    planned = None if look.wanted is None else view.planned(look.wanted).used
    later, arrived = (view.used_soon, view.usage.room) if view.movements else (None, None)
    usage = view.usage_now()
    pools = pool_rows(view, look.space, usage, None)
    classes = _with_histograms(view, class_rows(view, planned), later)
    parts = [[look.line(), *room_lines(usage.room, arrived, "when what moves has arrived")],
             [render_table(*class_table(classes))],
             *_class_parts(classes, "once all has arrived", None if later is None else "soon_"),
             held_sentences(view.snapshot),
             pool_lines("POOL<|ID|STORED|FREE|LIMITED BY|BOUND|MAX AVAIL", pools, [
                 [row["name"], str(row["id"]), format_known(row["stored"]),
                  format_known(row["free_bytes"]), format_osd(row["limiting_osd"]),
                  format_known(row["best_free_bytes"]), format_known(row["max_avail"])]
                 for row in pools], "df")]
    data = {**look.to_json(), "room": room_json(usage.room),
            "soon_room": room_json(view.usage.room), "classes": classes,
            "pools": pools}
    return CommandAnswer(data, joined(parts))


def evaluate_pool(name: str, look: Look) -> CommandAnswer:
    """The free space of one pool, and the OSD that limits it."""
    rows = [row for row in pool_rows(look.view, look.space, look.view.usage_now(), None)
            if row["name"] == name]
    return CommandAnswer({**look.to_json(), "pools": rows},
                         joined([[look.line()], [render_table(*pool_table(rows))]]))


def evaluate_plan(name: str, plan: Plan, look: Look, epoch: int,
                  age_seconds: Optional[float] = None, is_executing: bool = False,
                  outdated_reason: Optional[str] = None) -> CommandAnswer:
    """The placement now and with the plan, its bytes and moves.

    `epoch`: of the newest osdmap. `age_seconds`: of the plan. `outdated_reason`: as `ls` has it.
    """
    view, usage_now, is_search = look.view, look.view.usage_now(), plan.kind == BALANCE
    planned = view.planned(plan.changes)
    usage = planned.usage()
    pools = pool_rows(view, look.space, usage_now, usage)
    classes = _with_histograms(view, class_rows(view, planned.used), planned.used)
    near_classes = distances(view, plan, planned)
    by_bytes = expected_time(view.rates, view.movements, dict(
        bytes_by_target(planned.changes.values())))
    rounds = _least_rounds(planned.changes.values(), look)
    least = rounds * look.settings.sleep_interval
    expected, basis = (None, None) if by_bytes is None else max(by_bytes, (
        least, f"{plural(rounds, 'round')}, a sleep_interval each"))
    left = len(plan.changes) - len(planned.changes)   # PGs that are not as the plan found them
    # what the plan rests on has changed, and not by the plan itself: a newer map is no reason
    is_outdated = not is_executing and (left > 0 or outdated_reason is not None)
    when, aim = f"osdmap e{plan.epoch}", plan.purpose
    age = f", {format_duration(age_seconds)} old" if age_seconds is not None else ""
    content = f"{plural(len(plan.moves), 'shard')}, {format_bytes(plan.bytes)}"
    pgs = plural(len(plan.changes), "PG")
    if is_outdated:
        text = f"{name} is outdated ({when}, now e{epoch}{age}): {aim}, {content}"
        text += (f"; {left} of its {pgs} {'is' if left == 1 else 'are'} elsewhere by now, and left"
                 " out below") if left else ""
    elif is_executing:
        text = (f"{name} is being executed ({aim}, {when}{age}): {content};"
                f" {len(planned.changes)} of its {pgs} are still to be sent")
    else:
        text = f"{name} ({aim}, {when}{age}): {content}"
    text += f", about {format_duration(expected)} ({basis})" if expected is not None else ""
    changes = [[
        row["name"], str(row["id"]), format_known(row["stored"]), format_known(free),
        format_known(later), format_change(None if None in (free, later) else later - free),
        format_osd(row["planned_limiting_osd"]), format_known(row["best_free_bytes"])]
        for row in pools for free, later in [(row["free_bytes"], row["planned_free_bytes"])]]
    parts = [[*wrap("plan ", text, 5), look.line(),
              *room_lines(usage_now.room, usage.room, f"with {name}")],
             *_class_parts(classes, f"with {name}", "planned_",
                           {row["device_class"]: proven_lines(row) for row in near_classes}),
             pool_lines("POOL<|ID|STORED|FREE|PLANNED|CHANGE|LIMITED BY|BOUND", pools, changes,
                        f"df {name}"),
             distance_lines(near_classes),
             ["not moved:"] * bool(plan.skipped) + [
                 line for reason, count in sorted(plan.skipped.items())
                 for line in wrap(f"  {count:6}  ", reason, 10)]]
    bounds = view.utilization_bounds
    return CommandAnswer({
        "plan": name, "kind": plan.kind, "aim": plan.aim, "osdmap_epoch": plan.epoch,
        "age_seconds": age_seconds, "is_outdated": is_outdated,
        "moves": len(plan.moves), "bytes": plan.bytes,
        "changes": len(plan.changes), "applicable_changes": len(planned.changes),
        "stop_reason": plan.stop_reason,
        "expected_seconds": expected, "expected_from": basis,
        "least_seconds": least,   # of its rounds
        "skipped": [{"reason": reason, "count": count}
                    for reason, count in sorted(plan.skipped.items())],
        "now": look.to_json(), "room": room_json(usage_now.room),
        "planned_room": room_json(usage.room), "classes": classes, "pools": pools,
        "distance": {"classes": near_classes},
        "certificates": None if bounds is None or not is_search else (
            certificates_json(bounds, near_classes))}, joined(parts))


def _least_rounds(changes: Collection[PgChange], look: Look) -> int:
    """In which changes can be sent where what each round sends has arrived by the next."""
    settings, view = look.settings, look.view
    ends = Counter((osd, osd in change.up_after) for change in changes if change.shards
                   for osd in change.gained_by | change.lost_by)
    return max(math.ceil(count / most) for count, most in (
        (sum(change.shards for change in changes), settings.max_moves_per_round),
        (max(ends.values(), default=0), settings.max_backfills_per_osd),
        (sum(change.shards * change.objects for change in changes),
         view.max_misplaced_ratio * view.snapshot.object_copies)) if most)


def _with_histograms(view: ClusterView, classes: Sequence[Row],
                     later: Optional[Mapping[int, int]]) -> List[Row]:
    """The rows of classes, each with a row for each step of its OSDs' utilization, now and `later`,
    from the fullest down; `later_osds` is None where nothing is compared."""
    rows: List[Row] = []
    for row in classes:
        osds = [osd for osd in view.snapshot.osds.values()
                if osd.has_statistics and osd.is_in
                and view.snapshot.set_of(osd.id) == row["device_class"]]
        ratios = [view.used_now[osd.id] / osd.size_bytes for osd in osds]
        later_ratios = [] if later is None else [
            later[osd.id] / osd.size_bytes for osd in osds if osd.is_for_data]
        known = [*ratios, *later_ratios, *(
            bound for bound in [row["bound_utilization"]] if bound is not None)]
        step = next((step for step in _STEPS if _index(max(known), step) - _index(min(known), step)
                     < _MOST_CLASS_LINES), _STEPS[-1])
        counts, later_counts = (Counter(_index(ratio, step) for ratio in found)
                                for found in (ratios, later_ratios))
        rows.append({**row, "histogram": [{
            "from_ratio": step * index / 100.0, "to_ratio": step * (index + 1) / 100.0,
            "osds": counts[index], "later_osds": later_counts[index] if later_counts else None}
            for index in range(_index(max(known), step), _index(min(known), step) - 1, -1)]})
    return rows


def _class_parts(classes: Sequence[Row], when: str, later: Optional[str],
                 proven: Mapping[str, List[str]] = {}) -> List[List[str]]:
    """The lines of each class: its histogram, its highest, lowest and spread, and the lines on
    what is `proven` of it. `later`: which figures the present ones are compared with, if any."""
    parts: List[List[str]] = []
    for row in classes:
        bound = row["bound_utilization"]
        lines = [f"{row['device_class']}  {plural(row['osds'], 'OSD')},"
                 f" {format_bytes(row['size_bytes'])}",
                 *histogram_lines(row["histogram"], bound, when)]
        if later is not None:
            mark = f" (bound {format_percent(bound)})" if bound is not None else ""
            lines.append(
                f"  max {_change(row, later, 'max_utilization')}{mark}"
                f"  stddev {_change(row, later, 'stddev')}"
                f"  min {_change(row, later, 'min_utilization')}")
        parts.append(lines + proven.get(row["device_class"], []))
    return parts


def _change(row: Row, prefix: str, key: str) -> str:
    now, later = format_percent(row[key]), format_percent(row[prefix + key])
    return f"{now} -> {later}" if later else now   # a class of drained OSDs alone takes no data


def pool_lines(head: str, rows: Sequence[Row], cells: Sequence[Sequence[str]],
               command: str) -> List[str]:
    """A table of the pools without the small ones, and a line that counts those."""
    stored = sum(row["stored"] or 0 for row in rows)
    large = [text for row, text in zip(rows, cells)
             if (row["stored"] or 0) >= _SMALL_POOL * stored]
    lines = render_table(head, large).split("\n") if large else []
    folded = len(rows) - len(large)
    if folded:
        lines += wrap("... ", f"{plural(folded, 'pool')} below {100.0 * _SMALL_POOL:.0f}% of the"
                      f" data: 'ceph equilibrium {command}'", 4)
    return lines


def joined(parts: Sequence[Sequence[str]]) -> str:
    return "\n\n".join("\n".join(part) for part in parts if part)


def format_change(count: Optional[int]) -> str:
    """'+2.8 TiB', '-604 GiB'; empty where it is not known."""
    return "" if count is None else ("+" if count >= 0 else "") + format_bytes(count)


# -- utilization of a class, in steps --------------------------------------------------------------

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


# -- how far a plan ends from the bounds of classes, and what keeps it from them -------------------

def distance_lines(classes: Sequence[Row]) -> List[str]:
    """For people: which classes are near their bound, and why the others are not."""
    near: List[str] = []
    lines: List[str] = []
    for row in classes:
        name = row["device_class"]
        if row["is_near"]:
            near.append(f"{name} (weights kept)" if row["held_osds"] else name)
            continue
        above = 100.0 * (row["planned_max_utilization"] - row["bound_utilization"])
        lines += wrap("not near the bound: ", f"class {name} ({above:.2f} points above):"
                      f" {row['reason']}", 2)
    return wrap("near the bound: ", ", ".join(near), 2) + lines if near else lines


def proven_lines(row: Row) -> List[str]:
    """What is proven of a class; with lowered weights also what the bound means."""
    highest, proven = row["planned_max_utilization"], row["proven_utilization"]
    saved = max(0.0, 1.0 - row["least_moved_bytes"] / row["moved_bytes"]) if (
        row["moved_bytes"]) else 0.0   # that another plan with this maximum could save at most
    text = (f"provably at most {100.0 * max(0.0, highest - proven):.2f} points and"
            f" {100.0 * saved:.0f}% of the bytes from the best possible")
    return wrap("  ", text + (
        f" by sizes alone ({format_percent(proven)}); the bound keeps the lowered weights of"
        f" {plural(row['held_osds'], 'OSD')}" if row["held_osds"] else ""), 2)


def distances(view: ClusterView, plan: Plan, planned: Placement) -> List[Row]:
    """Of all classes whose bounds are known, JSON-ready.

    Of OSD sets, utilizations are ratios: `bound_` keeps the operator's weights, `proven_`, that of
    the set's certificate, counts the OSDs' sizes alone. `moved_bytes`: by what is left of the
    plan, off OSDs of the set; `least_moved_bytes`: that any plan with this maximum moves.
    `osd_ids`: of the set, those that take data; `held_osds`: OSDs that the operator's weights hold
    to a share.
    """
    bounds, osds = view.utilization_bounds, view.snapshot.osds
    # a plan that does not search for a better placement is not measured by the best one
    if bounds is None or not bounds.cuts or plan.kind != BALANCE:
        return []
    whole = sum(bound.shards * bound.shard_bytes for bound in bounds.pool_space.values())
    data = {pool: bound for pool, bound in bounds.pool_space.items()
            if bound.shard_bytes and bound.shards * bound.shard_bytes >= _SMALL_POOL * whole}
    moved: Counter[str] = Counter()
    for change in planned.changes.values():
        for osd in osds.keys() & change.lost_by:
            moved[view.snapshot.set_of(osd)] += change.bytes_on(osd)
    classes: List[Row] = []
    for name, figures in class_usage(view.snapshot, planned.used).items():
        if bounds.at_bound.get(name) not in bounds.cuts:
            continue
        fullest = figures.fullest_osd
        sizes = {osd.id: osd.size_bytes for osd in osds.values()
                 if osd.has_statistics and osd.is_for_data
                 and view.snapshot.set_of(osd.id) == name}
        shards = {pool: planned.shards[pool].get(fullest, 0.0) for pool in data}
        held = sum(shards[pool] * data[pool].shard_bytes for pool in data)
        gap, typical = figures.max - bounds.highest[name], held / (sum(shards.values()) or 1.0)
        ratio, largest = max([(data[pool].shard_bytes / sizes[fullest], pool)
                              for pool in data if shards[pool]], default=(0.0, -1))
        classes.append({
            "device_class": name, "planned_max_utilization": figures.max,
            "bound_utilization": bounds.highest[name],
            "proven_utilization": bounds.cuts[bounds.at_bound[name]].least_utilization,
            "osd_ids": sorted(sizes),
            "held_osds": sum(osds[osd].share < 1.0 for osd in sizes), "moved_bytes": moved[name],
            "least_moved_bytes": least_moved_bytes(view.used_soon, sizes, figures.max),
            **_cause(plan, gap <= max(_NEAR_UTILIZATION, typical / sizes[fullest] / 2.0),
                     _forbidden(view.snapshot, [
                         pg for pg in piecewise(view.snapshot.pgs.values(), _PGS_A_PIECE)
                         if fullest in pg.up]),
                     f"a shard of pool {view.snapshot.pools[largest].name} is {100.0 * ratio:.2f}%"
                     f" of osd.{fullest}, which is the fullest" if gap <= ratio > 0.0 else "")})
    return classes


def _forbidden(snapshot: Snapshot, pgs: Sequence[Pg]) -> str:
    """Why none of the PGs may be moved, most often; empty if one may."""
    held = Counter(pg.immovable or snapshot.pools[pg.pool].immovable for pg in pgs)
    if None in held or not held:
        return ""
    return f"every move is forbidden: {held.most_common(1)[0][0]}"


def _cause(plan: Plan, is_near: bool, forbidden: str, granularity: str) -> Row:
    """What keeps a plan from a bound, JSON-ready; `forbidden`, `granularity`: the clause where that
    does."""
    code, reason = (
        (None, None) if is_near
        else (codes.IMMOVABLE, forbidden) if forbidden
        else (LIMIT, plan.stop_reason) if plan.stop_reason != CONVERGED
        else (codes.GRANULARITY, granularity) if granularity
        else (LIMIT, f"the plan is limited to {plan.limited_to}") if plan.limited_to
        else (SEARCH, "the search found no move that is worth its bytes"))
    return {"is_near": is_near, "reason_code": code, "reason": reason}


def certificates_json(bounds: UtilizationBounds, classes: Sequence[Row]) -> Row:
    """What proves the bounds (planner/bound/demand.py): the cuts, and for each class and pool
    the number of its cut with what that proves.

    `least_moved_bytes` of a class: what has to leave OSDs that are above its planned maximum.
    `split_bytes` of a pool: the bound of its free space, as if shards could be split.
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
            "device_class": row["device_class"], "osds": row["osd_ids"],
            "cut": number_of[bounds.at_bound[row["device_class"]]],
            "bound_utilization": row["proven_utilization"],
            "planned_max_utilization": row["planned_max_utilization"],
            "least_moved_bytes": row["least_moved_bytes"]} for row in classes],
        "pools": [{"id": pool, "cut": number_of[bound.osds], "kept_shards": bound.kept_shards,
                   "split_bytes": bound.free_bytes}
                  for pool, bound in bounds.pool_space.items()]}

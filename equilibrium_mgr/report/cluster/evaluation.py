"""`eval`: the current placement, the placement after a plan, and how far a plan ends from the
bounds."""
from __future__ import annotations

import math
from collections import Counter
from typing import Collection, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ...execution.execution import bytes_by_target
from ...gateway.cluster_summary import PoolSpaceNow
from ...observation.cluster_view import ClusterView
from ...observation.movements import expected_time
from ...plan.load import SetLoad, loads_after, loads_of_sets
from ...plan.model import BALANCE, PgChange, Plan
from ...plan.placement import Placement
from ...planner.bound.demand import Cut, least_moved_bytes
from ...planner.bound.lower_bound import UtilizationBounds
from ...planner.planner import CONVERGED
from ...runtime.formatting import format_bytes, format_duration, format_percent, plural, wrap
from ...runtime.time_slice import grouped, piecewise
from ...settings import Settings, default_settings
from ...snapshot import reason_codes as codes
from ...snapshot.immovable_reasons import Immovable
from ...snapshot.model import Osd, Snapshot
from ..answer import CommandAnswer, Row, render_table
from .cluster_tables import (
    Columns, age_json, age_line, cells_of, class_rows, class_table, format_osd, held_sentences,
    pool_rows, pool_table, room_json, room_lines, text_of)

_LOOK_STARTED = "; a new look has been started"
_AS_OLD = ", as are pools, %SOON and %BOUND; %USE, %MAX and %MIN are of now"
#: One line counts the pools with a smaller ratio of the data: nobody lacks space in them.
_SMALL_POOL = 0.01

#: A class whose maximum is this near its bound (a ratio) is near it, even if its shards are small.
_NEAR_UTILIZATION = 0.0005
_PGS_A_PIECE = 1000   # before it gives way again: about a millisecond

# Reason codes of this file: why a plan is not near a bound.
LIMIT = "limit"      # of moves, bytes, time, or of OSDs and pools
SEARCH = "search"    # no move that was tried is worth its bytes

#: Points of utilization that one line of a histogram stands for. The smallest step is used that
#: needs at most _MOST_CLASS_LINES lines.
_STEPS = (1, 2, 4, 5, 10, 20, 50, 100)
_MOST_CLASS_LINES = 10
_BAR = 22


def format_change(count: int) -> str:
    """Returns '+2.8 TiB' or '-604 GiB'."""
    if count >= 0:
        return f"+{format_bytes(count)}"
    return format_bytes(count)


_POOL_HEAD = "POOL<|ID|STORED|FREE|LIMITED BY|BOUND|MAX AVAIL"
_POOL_COLUMNS: Columns = {
    "name": str,
    "id": str,
    "stored": format_bytes,
    "free_bytes": format_bytes,
    "limiting_osd": format_osd,
    "best_free_bytes": format_bytes,
    "max_avail": format_bytes}
_PLANNED_POOL_HEAD = "POOL<|ID|STORED|FREE|PLANNED|CHANGE|LIMITED BY|BOUND"
_PLANNED_POOL_COLUMNS: Columns = {
    "name": str,
    "id": str,
    "stored": format_bytes,
    "free_bytes": format_bytes,
    "planned_free_bytes": format_bytes,
    "change": format_change,
    "planned_limiting_osd": format_osd,
    "best_free_bytes": format_bytes}


class Look(NamedTuple):
    """What an evaluation is computed from."""

    view: ClusterView
    age_seconds: float                    # of the view
    space: Mapping[int, PoolSpaceNow]     # pool id → Ceph's own figures
    settings: Settings = default_settings()
    is_look_started: bool = False         # a refresh of the view has been requested
    #: the changes of the plan in question, or those of the execution that are still to be sent;
    #: None without either
    wanted: Optional[Sequence[PgChange]] = None

    def line(self) -> str:
        """Returns the age of the figures, for people."""
        text = age_line(self.view, self.age_seconds)
        has_drifted = self.view.has_drifted
        if has_drifted:
            text += _AS_OLD
        if has_drifted or self.is_look_started:
            text += _LOOK_STARTED
        return text_of(wrap("", text, 0))

    def to_json(self) -> Row:
        """Returns the age of the figures, JSON-ready."""
        age = age_json(self.view, self.age_seconds)
        return {**age, "look_started": self.is_look_started}


def evaluate_cluster(look: Look) -> CommandAnswer:
    """Evaluates the current placement and the placement after everything in flight has arrived. The
    table of classes also has the maximum after the execution."""
    view = look.view
    usage = view.usage_now()
    soon_room = room_json(view.usage.room)
    planned = later = arrived = prefix = None
    if look.wanted is not None:
        planned = view.planned(look.wanted).used
    if view.movements:
        later = view.used_soon
        arrived = soon_room
        prefix = "soon_"
    pools = pool_rows(view, look.space, usage, None)
    classes = _class_rows(view, planned, later, None)
    data = {
        **look.to_json(),
        "room": room_json(usage.room),
        "soon_room": soon_room,
        "classes": classes,
        "pools": pools}
    parts = [
        [look.line(), *room_lines(data["room"], arrived, "when what moves has arrived")],
        [render_table(*class_table(classes))],
        *_class_parts(classes, "once all has arrived", prefix, {}),
        held_sentences(view.snapshot),
        pool_lines(_POOL_HEAD, pools, cells_of(pools, _POOL_COLUMNS), "df")]
    return CommandAnswer(data, joined(parts))


def evaluate_pool(name: str, look: Look) -> CommandAnswer:
    """Shows the free space of one pool, and the OSD that limits it."""
    every = pool_rows(look.view, look.space, look.view.usage_now(), None)
    rows = [row for row in every if row["name"] == name]
    table = render_table(*pool_table(rows))
    return CommandAnswer({**look.to_json(), "pools": rows}, joined([[look.line()], [table]]))


def evaluate_plan(name: str, plan: Plan, look: Look, epoch: int, age_seconds: float = 0.0,
                  is_executing: bool = False,
                  outdated_reason: Optional[str] = None) -> CommandAnswer:
    """Evaluates the placement now and after the plan, and the moves of the plan.

    `epoch`: of the newest osdmap. `age_seconds`: of the plan. `outdated_reason`: why all or a part
    of the plan is void, if it is.
    """
    view = look.view
    now = view.usage_now()
    bounds = view.utilization_bounds
    planned = view.planned(plan.changes)
    usage = planned.usage()
    pools = pool_rows(view, look.space, now, usage)
    classes = _class_rows(view, planned.used, planned.used, planned.changes.values())
    near_classes = distances(view, plan, planned, classes)
    certificates = None
    if bounds is not None and plan.kind == BALANCE:
        certificates = certificates_json(bounds, near_classes)
    expected, basis = _expected(look, planned)
    skipped = [{"reason": reason, "count": count}
               for reason, count in sorted(plan.skipped.items())]
    changes = len(plan.changes)
    applicable = len(planned.changes)
    gone = changes - applicable   # somebody has moved these PGs since
    # a newer osdmap alone does not make a plan outdated; nor do its own changes
    is_outdated = not is_executing and (gone > 0 or outdated_reason is not None)
    data: Row = {
        "plan": name,
        "kind": plan.kind,
        "aim": plan.aim,
        "osdmap_epoch": plan.epoch,
        "age_seconds": age_seconds,
        "is_outdated": is_outdated,
        "moves": len(plan.moves),
        "bytes": plan.bytes,
        "changes": changes,
        "applicable_changes": applicable,
        "stop_reason": plan.stop_reason,
        "expected_seconds": expected,
        "expected_from": basis,
        "skipped": skipped,
        "now": look.to_json(),
        "room": room_json(now.room),
        "planned_room": room_json(usage.room),
        "classes": classes,
        "pools": pools,
        "distance": {"classes": near_classes},
        "certificates": certificates}
    cells = cells_of([_with_change(row) for row in pools], _PLANNED_POOL_COLUMNS)
    parts = [
        [*wrap("plan ", _plan_text(data, plan.purpose, epoch, is_executing), 5),
         look.line(),
         *room_lines(data["room"], data["planned_room"], f"with {name}")],
        *_class_parts(classes, f"with {name}", "planned_",
                      {row["device_class"]: proven_lines(row) for row in near_classes}),
        pool_lines(_PLANNED_POOL_HEAD, pools, cells, f"df {name}"),
        distance_lines(near_classes),
        _skipped_lines(skipped)]
    return CommandAnswer(data, joined(parts))


def _plan_text(data: Row, purpose: str, epoch: int, is_executing: bool) -> str:
    """Returns the first sentence of a plan. `data`: its evaluation. `epoch`: of the newest
    osdmap."""
    name = data["plan"]
    applicable = data["applicable_changes"]
    gone = data["changes"] - applicable
    pgs = plural(data["changes"], "PG")
    made = f"osdmap e{data['osdmap_epoch']}"
    if data["is_outdated"]:
        name = f"{name} is outdated"
        made += f", now e{epoch}"
    elif is_executing:
        name = f"{name} is being executed"
    age = format_duration(data["age_seconds"])
    text = (f"{name} ({made}, {purpose}, {age} old): {plural(data['moves'], 'shard')},"
            f" {format_bytes(data['bytes'])}")
    if is_executing:
        text += f"; {applicable} of its {pgs} are still to be sent"
    elif gone:
        text += f"; elsewhere by now, and left out below: {gone} of its {pgs}"
    if data["expected_seconds"] is not None:
        text += f", about {format_duration(data['expected_seconds'])} ({data['expected_from']})"
    return text


def _with_change(row: Row) -> Row:
    """Returns the row of a pool with the change of its free space by the plan; None if unknown."""
    now = row["free_bytes"]
    later = row["planned_free_bytes"]
    change = None
    if now is not None and later is not None:
        change = later - now
    return {**row, "change": change}


def _skipped_lines(skipped: Sequence[Row]) -> List[str]:
    """Says what the plan could not move, and why."""
    if not skipped:
        return []
    lines = ["not moved:"]
    for row in skipped:
        lines += wrap(f"  {row['count']:6}  ", row["reason"], 10)
    return lines


def _expected(look: Look, planned: Placement) -> Tuple[Optional[float], Optional[str]]:
    """Returns the seconds that the plan is expected to take, and what that rests on; None if no
    bytes move."""
    view = look.view
    changes = planned.changes.values()
    by_bytes = expected_time(view.rates, view.movements, bytes_by_target(changes))
    if by_bytes is None:
        return None, None
    rounds = _least_rounds(changes, look)
    by_rounds = f"{plural(rounds, 'round')}, a sleep_interval each"
    return max(by_bytes, (rounds * look.settings.sleep_interval, by_rounds))


def _least_rounds(changes: Collection[PgChange], look: Look) -> int:
    """Returns the rounds that the limits need at least to send the changes, if the shards of each
    round have arrived by the next."""
    settings = look.settings
    view = look.view
    shards = sum([change.shards for change in changes])
    copies = sum([change.shards * change.objects for change in changes])
    ends: Counter[Tuple[int, bool]] = Counter()   # shards that an OSD sends or gets
    for change in changes:
        if change.shards:
            ends.update([(osd, True) for osd in change.gained_by])
            ends.update([(osd, False) for osd in change.lost_by])
    limits = [
        (shards, settings.max_moves_per_round),
        (max(ends.values(), default=0), settings.max_backfills_per_osd),
        (copies, view.max_misplaced_ratio * view.snapshot.object_copies)]
    return max([math.ceil(count / most) for count, most in limits if most])


def _class_rows(view: ClusterView, planned: Optional[Mapping[int, int]],
                later: Optional[Mapping[int, int]],
                changes: Optional[Collection[PgChange]]) -> List[Row]:
    """Returns the rows of classes with all that `eval` shows of them."""
    rows = _with_histograms(view, class_rows(view, planned), later)
    return _with_loads(view, rows, changes)


def _with_histograms(view: ClusterView, classes: Sequence[Row],
                     later: Optional[Mapping[int, int]]) -> List[Row]:
    """Returns the rows of classes, each with a histogram of the utilization of its OSDs: now, and
    by `later`, OSD id → used bytes. `later_osds` is None if nothing is compared."""
    snapshot = view.snapshot
    counted = [osd for osd in snapshot.osds.values() if osd.has_statistics and osd.is_in]
    osds_of = grouped((snapshot.set_of(osd.id), osd) for osd in counted)
    return [{**row, "histogram": _histogram(view, row, osds_of[row["device_class"]], later)}
            for row in classes]


def _with_loads(view: ClusterView, classes: Sequence[Row],
                changes: Optional[Collection[PgChange]]) -> List[Row]:
    """Returns the rows of classes with the load of the busiest OSD as a ratio of the mean: now, and
    after `changes` if there are any to compare. None if it is not known."""
    snapshot = view.snapshot
    now = loads_of_sets(snapshot, view.loads)
    planned: Mapping[str, SetLoad] = {}
    if now and changes is not None:
        planned = loads_of_sets(snapshot, loads_after(snapshot, view.loads, changes))
    rows: List[Row] = []
    for row in classes:
        name = row["device_class"]
        rows.append({
            **row, **_load_figures("", now.get(name)),
            **_load_figures("planned_", planned.get(name))})
    return rows


def _load_figures(prefix: str, load: Optional[SetLoad]) -> Row:
    return {f"{prefix}{key}": getattr(load, key, None) for key in ("max_load", "busiest_osd")}


def _load_lines(row: Row) -> List[str]:
    """Says how busy the busiest OSD of a class is; nothing if that is not known."""
    if row["max_load"] is None:
        return []
    line = f"  load of the busiest OSD: {_busiest(row, '')}"
    if row["planned_max_load"] is not None:
        line += f" -> {_busiest(row, 'planned_')}"
    return [f"{line} times the mean"]


def _busiest(row: Row, prefix: str) -> str:
    return f"{row[f'{prefix}max_load']:.2f} (osd.{row[f'{prefix}busiest_osd']})"


def _histogram(view: ClusterView, row: Row, osds: Sequence[Osd],
               later: Optional[Mapping[int, int]]) -> List[Row]:
    """Returns one row for each step of utilization, the fullest first, JSON-ready."""
    now = [view.used_now[osd.id] / osd.size_bytes for osd in osds]
    then: List[float] = []
    if later is not None:
        then = [later[osd.id] / osd.size_bytes for osd in osds if osd.is_for_data]
    known = now + then
    if row["bound_utilization"] is not None:
        known.append(row["bound_utilization"])
    step = _step(min(known), max(known))
    counts = Counter([_index(ratio, step) for ratio in now])
    later_counts = Counter([_index(ratio, step) for ratio in then])
    rows: List[Row] = []
    for index in range(_index(max(known), step), _index(min(known), step) - 1, -1):
        step_row = {
            "from_ratio": step * index / 100.0,
            "to_ratio": step * (index + 1) / 100.0,
            "osds": counts[index],
            "later_osds": later_counts[index] if then else None}
        rows.append(step_row)
    return rows


def _step(lowest: float, highest: float) -> int:
    """Returns the smallest step that needs few lines from the lowest to the highest ratio."""
    for step in _STEPS:
        if _index(highest, step) - _index(lowest, step) < _MOST_CLASS_LINES:
            return step
    return _STEPS[-1]


def _class_parts(classes: Sequence[Row], when: str, later: Optional[str],
                 proven: Mapping[str, List[str]]) -> List[List[str]]:
    """Returns the lines of each class: its histogram, its highest, lowest and spread, and its
    `proven` lines. `later`: the prefix of the figures to compare with, if any."""
    parts: List[List[str]] = []
    for row in classes:
        name = row["device_class"]
        bound = row["bound_utilization"]
        lines = [f"{name}  {plural(row['osds'], 'OSD')}, {format_bytes(row['size_bytes'])}"]
        lines += histogram_lines(row["histogram"], bound, when)
        if later is not None:
            highest = _change(row, later, "max_utilization")
            if bound is not None:
                highest += f" (bound {format_percent(bound)})"
            lines.append(f"  max {highest}  stddev {_change(row, later, 'stddev')}"
                         f"  min {_change(row, later, 'min_utilization')}")
        parts.append(lines + _load_lines(row) + proven.get(name, []))
    return parts


def _change(row: Row, prefix: str, key: str) -> str:
    now = format_percent(row[key])
    later = format_percent(row[prefix + key])
    if not later:   # a class of drained OSDs alone takes no data
        return now
    return f"{now} -> {later}"


def pool_lines(head: str, rows: Sequence[Row], cells: Sequence[Sequence[str]],
               command: str) -> List[str]:
    """Returns a table of the pools without the small ones, and a line that counts these.
    `command`: shows all pools."""
    sizes = [row["stored"] or 0 for row in rows]
    least = _SMALL_POOL * sum(sizes)
    large = [line for line, size in zip(cells, sizes) if size >= least]
    lines: List[str] = []
    if large:
        lines.append(render_table(head, large))
    if len(large) < len(rows):
        lines += wrap("... ", f"{plural(len(rows) - len(large), 'pool')} below"
                      f" {100.0 * _SMALL_POOL:.0f}% of the data: 'ceph equilibrium {command}'", 4)
    return lines


def joined(parts: Sequence[Sequence[str]]) -> str:
    """Joins parts of a screen with an empty line between them."""
    return "\n\n".join([text_of(part) for part in parts if part])


# -- utilization of a class, in steps --------------------------------------------------------------

def histogram_lines(rows: Sequence[Row], bound: Optional[float], when: str) -> List[str]:
    """Returns a line for each step of utilization, the fullest first. `when`: the title of the
    later figures."""
    counts = [row["osds"] for row in rows]
    later = [row["later_osds"] for row in rows if row["later_osds"] is not None]
    most = max([1, *counts, *later])
    title = f"  %USE  OSDS  {'now'.ljust(_BAR)}"
    if later:
        title += f"  OSDS  {when[:_BAR]}"
    lines = [title.rstrip()]
    for row in rows:
        begin = round(100.0 * row["from_ratio"])
        end = round(100.0 * row["to_ratio"])
        text = f"{begin:6}{_bar(row['osds'], most)}"
        if later:
            text += _bar(row["later_osds"], most)
        if bound is not None and _index(bound, end - begin) * (end - begin) == begin:
            text += "  < bound"
        lines.append(text.rstrip())
    return lines


def _bar(count: int, most: int) -> str:
    """Returns a number of OSDs with its bar. `most`: the number of the longest bar."""
    if not count:
        return f"{'':8}{'.'.ljust(_BAR)}"
    length = max(1, round(_BAR * count / most))
    return f"  {count:4}  {('#' * length).ljust(_BAR)}"


def _index(value: float, step: int) -> int:
    return math.floor(100.0 * max(0.0, value) / step)


# -- how far a plan ends from the bounds of classes, and what keeps it from them -------------------

def distance_lines(classes: Sequence[Row]) -> List[str]:
    """Says why classes are not near their bound."""
    lines: List[str] = []
    for row in classes:
        if not row["is_near"]:
            above = 100.0 * (row["planned_max_utilization"] - row["bound_utilization"])
            lines += wrap("not near the bound: ", f"class {row['device_class']} ({above:.2f} points"
                          f" above): {row['reason']}", 2)
    return lines


def proven_lines(row: Row) -> List[str]:
    """Says how far the plan is from the best possible at most, and whether that keeps lowered
    weights."""
    proven = row["proven_utilization"]
    saved = 0.0
    points = 100.0 * max(0.0, row["planned_max_utilization"] - proven)
    if row["moved_bytes"]:   # another plan with this maximum could save at most this ratio
        saved = max(0.0, 1.0 - row["least_moved_bytes"] / row["moved_bytes"])
    text = (f"provably at most {points:.2f} points and {100.0 * saved:.0f}% of the bytes from the"
            " best possible")
    if row["held_osds"]:
        text += (f" by sizes alone ({format_percent(proven)}); the bound keeps the lowered weights"
                 f" of {plural(row['held_osds'], 'OSD')}")
    return wrap("  ", text, 2)


def distances(view: ClusterView, plan: Plan, planned: Placement,
              classes: Sequence[Row]) -> List[Row]:
    """Returns how far the plan ends from the bound of each class that has one, JSON-ready. A plan
    that does not search for a better placement has no distance from the best one. `classes`: the
    `class_rows` with the plan.

    Utilizations are ratios. `bound_` keeps the operator's weights. `proven_` counts the sizes of
    the OSDs alone; the certificate of the class proves it. `moved_bytes`: what the plan still moves
    off OSDs of the class. `least_moved_bytes`: what any plan with this maximum moves at least.
    `osd_ids`: the OSDs of the class that take data. `held_osds`: how many of these have a lowered
    weight.
    """
    bounds = view.utilization_bounds
    snapshot = view.snapshot
    osds = snapshot.osds
    if bounds is None or not bounds.cuts or plan.kind != BALANCE:
        return []
    shard_bytes = _shard_bytes(bounds)
    moved: Counter[str] = Counter()
    for change in planned.changes.values():
        for osd in osds.keys() & change.lost_by:
            moved[snapshot.set_of(osd)] += change.bytes_on(osd)
    rows: List[Row] = []
    for row in classes:
        name = row["device_class"]
        highest = row["planned_max_utilization"]
        fullest = row["planned_fullest_osd"]
        bound = row["bound_utilization"]
        at_bound = bounds.at_bound.get(name)
        if highest is None or at_bound is None or at_bound not in bounds.cuts:
            continue
        sizes = {osd.id: osd.size_bytes for osd in osds.values()
                 if _takes_data(osd) and snapshot.set_of(osd.id) == name}
        shards = {pool: planned.shards[pool].get(fullest, 0.0) for pool in shard_bytes}
        code, reason = _cause(
            snapshot, plan, fullest, highest - bound, shards, shard_bytes)
        distance = {
            "device_class": name,
            "planned_max_utilization": highest,
            "bound_utilization": bound,
            "proven_utilization": bounds.cuts[at_bound].least_utilization,
            "osd_ids": sorted(sizes),
            "held_osds": sum([osds[osd].share < 1.0 for osd in sizes]),
            "moved_bytes": moved[name],
            "least_moved_bytes": least_moved_bytes(view.used_soon, sizes, highest),
            "is_near": code is None,
            "reason_code": code,
            "reason": reason}
        rows.append(distance)
    return rows


def _takes_data(osd: Osd) -> bool:
    return osd.has_statistics and osd.is_for_data


def _shard_bytes(bounds: UtilizationBounds) -> Dict[int, int]:
    """Returns pool id → mean bytes of a shard, without small pools."""
    sizes = {pool: bound.shards * bound.shard_bytes for pool, bound in bounds.pool_space.items()}
    least = max(1.0, _SMALL_POOL * sum(sizes.values()))
    return {pool: bounds.pool_space[pool].shard_bytes
            for pool, size in sizes.items() if size >= least}


def _cause(snapshot: Snapshot, plan: Plan, fullest: int, gap: float, shards: Mapping[int, float],
           shard_bytes: Mapping[int, int]) -> Tuple[Optional[str], Optional[str]]:
    """Returns the reason code and the reason why the `fullest` OSD of a class ends above the bound;
    None if it is near.

    `gap`: how far above, a ratio of its size. `shards`: pool id → shards on it. `shard_bytes`: pool
    id → mean bytes of a shard.
    """
    size = snapshot.osds[fullest].size_bytes
    held_bytes = sum([count * shard_bytes[pool] for pool, count in shards.items()])
    typical = held_bytes / (sum(shards.values()) or 1.0)   # bytes of a shard
    if gap <= max(_NEAR_UTILIZATION, typical / size / 2.0):
        return None, None
    forbidden = _forbidden(snapshot, fullest)
    if forbidden:
        return codes.IMMOVABLE, f"every move is forbidden: {forbidden}"
    if plan.stop_reason != CONVERGED:
        return LIMIT, plan.stop_reason
    found = [(shard_bytes[pool] / size, pool) for pool, count in shards.items() if count]
    ratio, largest = max(found, default=(0.0, -1))
    if gap <= ratio > 0.0:
        return codes.GRANULARITY, (
            f"a shard of pool {snapshot.pools[largest].name} is {100.0 * ratio:.2f}% of"
            f" osd.{fullest}, which is the fullest")
    if plan.limited_to:
        return LIMIT, f"the plan is limited to {plan.limited_to}"
    return SEARCH, "the search found no move that is worth its bytes"


def _forbidden(snapshot: Snapshot, osd: int) -> Optional[Immovable]:
    """Returns the most common reason why the PGs of an OSD must not be moved; None if one of them
    may."""
    found: Counter[Optional[Immovable]] = Counter()
    for pg in piecewise(snapshot.pgs.values(), _PGS_A_PIECE):
        if osd in pg.up:
            found[pg.immovable or snapshot.pools[pg.pool].immovable] += 1
    if not found or None in found:
        return None
    return found.most_common(1)[0][0]


def certificates_json(bounds: UtilizationBounds, classes: Sequence[Row]) -> Row:
    """Returns the proof of the bounds (planner/bound/demand.py), JSON-ready: the cuts, and for each
    class and pool the number of its cut with what that proves. `classes`: the rows of `distances`.

    `least_moved_bytes` of a class: the bytes above its planned maximum, which have to leave OSDs.
    `split_bytes` of a pool: the bound of its free space, as if shards could be split.
    """
    number_of = {osds: number for number, osds in enumerate(bounds.cuts)}
    classes_json: List[Row] = []
    for row in classes:
        found = {
            "device_class": row["device_class"],
            "osds": row["osd_ids"],
            "cut": number_of[bounds.at_bound[row["device_class"]]],
            "bound_utilization": row["proven_utilization"],
            "planned_max_utilization": row["planned_max_utilization"],
            "least_moved_bytes": row["least_moved_bytes"]}
        classes_json.append(found)
    pools = [{
        "id": pool,
        "cut": number_of[bound.osds],
        "kept_shards": bound.kept_shards,
        "split_bytes": bound.free_bytes} for pool, bound in bounds.pool_space.items()]
    return {
        "osdmap_epoch": bounds.epoch,
        "cuts": [_cut_json(cut) for cut in bounds.cuts.values()],
        "classes": classes_json,
        "pools": pools}


def _cut_json(cut: Cut) -> Row:
    kept = [{**entry._asdict(), "limits": _limits_json(entry.limits)} for entry in cut.kept]
    return {**cut._asdict(), "osds": list(cut.osds), "kept": kept}


def _limits_json(limits: Sequence[Tuple[str, int]]) -> List[Row]:
    return [{"type": name, "most_shards": most} for name, most in limits]

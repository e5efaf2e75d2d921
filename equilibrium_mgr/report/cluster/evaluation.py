"""`eval`: the placement now, and what a plan makes of it."""
from __future__ import annotations

from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ...gateway.snapshot_reader import PoolSpaceNow
from ...observation.cluster_view import ClusterView
from ...observation.refusals import planned_placement
from ...observation.movements import expected_time
from ...plan.aim_comparison import FAILED, PLANNING, READY, AimComparison, figures_of
from ...plan.model import BALANCE, PgChange, Plan
from ...plan.options import AIMS
from ...plan.usage import counted_usage
from ...runtime.formatting import format_bytes, format_duration, format_percent, plural, wrap
from ..answer import Column, CommandAnswer, Row, render_table
from .bounds import (
    certificates_json, class_rows, class_table, distance_lines, distances, histogram,
    histogram_lines, proven_lines)
from .cluster_tables import (
    format_known, format_osd, held_json, held_sentences, pool_rows, pool_table, room_json,
    room_lines)

_LOOK_STARTED = "; a new look has been started"
_AS_OLD = ", as are pools, %SOON and %BOUND; %USE, %MAX and %MIN are of now"
#: Pools with a smaller ratio of the data are folded into one line, unless all are that small.
_SMALL_POOL = 0.01
_LEAST_POOLS = 10

_POOLS_NOW = (Column("POOL", is_name=True), *map(Column, (
    "ID", "STORED", "FREE", "LIMITED BY", "BOUND", "MAX AVAIL")))
_POOLS_PLANNED = (Column("POOL", is_name=True), *map(Column, (
    "ID", "STORED", "FREE", "PLANNED", "CHANGE", "LIMITED BY", "BOUND")))


class Look(NamedTuple):
    """What an evaluation rests on."""

    view: ClusterView
    age_seconds: float                    # of the view
    space: Mapping[int, PoolSpaceNow]     # pool id → Ceph's own figures
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
    planned = None if look.wanted is None else planned_placement(view, look.wanted).used
    later, arrived = (view.used_soon, view.usage) if view.movements else (None, None)
    usage = view.usage_now()
    pools = pool_rows(view, look.space, usage, arrived)
    classes = _with_histograms(view, class_rows(view, planned), later)
    parts = [[look.line(), *room_lines(usage.room, arrived.room if arrived is not None else None,
                                       "when what moves has arrived")],
             class_table(classes).split("\n"),
             *_class_parts(classes, "once all has arrived", None if later is None else "soon_"),
             held_sentences(view.snapshot),
             _pool_lines(_POOLS_NOW, pools, [
                 [row["name"], str(row["id"]), format_known(row["stored"]),
                  format_known(row["free_bytes"]), format_osd(row["limiting_osd"]),
                  format_known(row["best_free_bytes"]), format_known(row["max_avail"])]
                 for row in pools], "df")]
    data = {**look.to_json(), "room": room_json(usage.room),
            "soon_room": room_json(view.usage.room), "classes": classes,
            "held_osds": held_json(view.snapshot), "pools": _without_plan(pools)}
    return CommandAnswer(data, _joined(parts))


def evaluate_pool(name: str, look: Look) -> CommandAnswer:
    """The free space of one pool, and the OSD that limits it."""
    rows = [row for row in pool_rows(look.view, look.space, look.view.usage_now(), None)
            if row["name"] == name]
    return CommandAnswer({**look.to_json(), "pools": _without_plan(rows)},
                         _joined([[look.line()], pool_table(rows).split("\n")]))


def evaluate_plan(name: str, plan: Plan, look: Look, epoch: int,
                  created_at: Optional[float] = None, age_seconds: Optional[float] = None,
                  is_executing: bool = False, with_aims: bool = False,
                  comparison: Optional[AimComparison] = None, failure_lines: Sequence[str] = (),
                  outdated_reason: Optional[str] = None) -> CommandAnswer:
    """The placement now and with the plan, its bytes and moves, and figures of the other aims
    where they were asked for.

    `epoch`: of the newest osdmap. `created_at`: seconds since the epoch. `comparison`: with the
    other aims; None where there are none, or the plan was removed meanwhile. `failure_lines`: on
    the worst failure, where it has been computed. `outdated_reason`: as `ls` has it.
    """
    view, usage_now, is_search = look.view, look.view.usage_now(), plan.kind == BALANCE
    planned = planned_placement(view, plan.changes)
    usage = counted_usage(view.snapshot, planned.used, planned.shards)
    pools = pool_rows(view, look.space, usage_now, usage)
    classes = _with_histograms(view, class_rows(view, planned.used), planned.used)
    near_classes, near_pools = distances(view, plan, planned, usage)
    expected, basis = expected_time(view.rates, view.movements, planned.incoming) or (None, None)
    left = len(plan.changes) - planned.changes   # PGs that are not as the plan found them
    # what the plan rests on has changed, and not by the plan itself: a newer map is no reason
    is_outdated = not is_executing and (left > 0 or outdated_reason is not None)
    when, aim = f"osdmap e{plan.epoch}", f"aim {plan.aim}" if is_search else plan.kind
    age = f", {format_duration(age_seconds)} old" if age_seconds is not None else ""
    content = f"{plural(len(plan.moves), 'shard')}, {format_bytes(plan.bytes)}"
    pgs = plural(len(plan.changes), "PG")
    if is_outdated:
        text = f"{name} is outdated ({when}, now e{epoch}{age}): {aim}, {content}"
        if left:
            text += (f"; {left} of its {pgs} {'is' if left == 1 else 'are'} elsewhere by now, and"
                     " left out below")
    elif is_executing:
        text = (f"{name} is being executed ({aim}, {when}{age}): {content};"
                f" {planned.changes} of its {pgs} are still to be sent")
    else:
        text = f"{name} ({aim}, {when}{age}): {content}"
    if expected is not None:
        text += f", about {format_duration(expected)} ({basis})"
    changes: List[List[str]] = []
    for row in pools:
        free, later = row["free_bytes"], row["planned_free_bytes"]
        change = later - free if free is not None and later is not None else None
        changes.append([
            row["name"], str(row["id"]), format_known(row["stored"]), format_known(free),
            format_known(later), format_change(change), format_osd(row["planned_limiting_osd"]),
            format_known(row["best_free_bytes"])])
    aims, aim_lines = _aims(name, plan, comparison) if with_aims and is_search else ([], [])
    parts = [[*wrap("plan ", text, 5), look.line(),
              *room_lines(usage_now.room, usage.room, f"with {name}"), *failure_lines],
             *_class_parts(classes, f"with {name}", "planned_",
                           {row["device_class"]: proven_lines(row) for row in near_classes}),
             _pool_lines(_POOLS_PLANNED, pools, changes, f"df {name}"),
             distance_lines(near_classes, near_pools),
             aim_lines, ["not moved:"] * bool(plan.skipped) + [
                 line for reason, count in sorted(plan.skipped.items())
                 for line in wrap(f"  {count:6}  ", reason, 10)]]
    bounds = view.utilization_bounds
    return CommandAnswer({
        "plan": name, "kind": plan.kind, "aim": plan.aim, "osdmap_epoch": plan.epoch,
        "created_at": created_at, "age_seconds": age_seconds,
        "is_outdated": is_outdated, "moves": len(plan.moves), "bytes": plan.bytes,
        "changes": len(plan.changes), "applicable_changes": planned.changes,
        "stop_reason": plan.stop_reason,
        "expected_seconds": expected,
        "expected_from": basis,
        "skipped": [{"reason": reason, "count": count}
                    for reason, count in sorted(plan.skipped.items())],
        "now": look.to_json(), "room": room_json(usage_now.room),
        "planned_room": room_json(usage.room), "classes": classes, "pools": pools,
        **({"aims": aims, "options_known": comparison is not None and comparison.options_known}
           if with_aims else {}),
        "distance": {"classes": near_classes, "pools": near_pools},
        "certificates": None if bounds is None or not is_search else (
            certificates_json(bounds, near_classes))}, _joined(parts))


def _with_histograms(view: ClusterView, classes: Sequence[Row],
                     later: Optional[Mapping[int, int]]) -> List[Row]:
    """The rows of classes with the steps of their OSDs' utilization, now and `later`."""
    rows: List[Row] = []
    for row in classes:
        osds = [osd for osd in view.snapshot.osds.values()
                if osd.has_statistics and osd.is_in and osd.device_class == row["device_class"]]
        rows.append({**row, "histogram": histogram(
            [view.used_now[osd.id] / osd.size_bytes for osd in osds],
            [] if later is None else [later[osd.id] / osd.size_bytes for osd in osds
                                      if osd.is_for_data], row["bound_utilization"])})
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
            prefix = later if row[f"{later}max_utilization"] is not None else "soon_"
            mark = f" (bound {format_percent(bound)})" if bound is not None else ""
            lines.append(
                f"  max {_change(row, prefix, 'max_utilization')}{mark}"
                f"  stddev {_change(row, prefix, 'stddev')}"
                f"  min {_change(row, prefix, 'min_utilization')}")
        parts.append(lines + proven.get(row["device_class"], []))
    return parts


def _change(row: Row, prefix: str, key: str) -> str:
    now, later = format_percent(row[key]), format_percent(row[prefix + key])
    return f"{now} -> {later}" if later else now   # a class of drained OSDs alone takes no data


def _pool_lines(columns: Sequence[Column], rows: Sequence[Row], cells: Sequence[Sequence[str]],
                command: str) -> List[str]:
    """A table of the pools without the small ones, and a line that counts those."""
    stored = sum(row["stored"] or 0 for row in rows)
    large = [text for row, text in zip(rows, cells)
             if (row["stored"] or 0) >= _SMALL_POOL * stored]
    shown = large or list(cells[:_LEAST_POOLS])
    lines = render_table(columns, shown).split("\n") if shown else []
    folded = len(rows) - len(shown)
    if folded:
        small = f" below {100.0 * _SMALL_POOL:.0f}% of the data" if large else ""
        lines += wrap("... ", f"{plural(folded, 'pool')}{small}: 'ceph equilibrium {command}'", 4)
    return lines


def _without_plan(rows: Sequence[Row]) -> List[Row]:
    return [{key: value for key, value in row.items() if not key.startswith("planned_")}
            for row in rows]


def _joined(parts: Sequence[Sequence[str]]) -> str:
    return "\n\n".join("\n".join(part) for part in parts if part)


def _aims(name: str, plan: Plan,
          comparison: Optional[AimComparison]) -> Tuple[List[Row], List[str]]:
    """The plan and those compared with it: one dictionary for each aim, null until it is computed,
    and the table of them with notes about those without figures. ROOM: how much more fits then if
    all pools grow alike. An aim that this release does not know comes last."""
    known = {**(comparison.aims if comparison is not None else {}), plan.aim: figures_of(plan)}
    aims = {aim: known[aim] for aim in [*AIMS, plan.aim] if aim in known}
    classes = list(plan.after.classes)
    table = render_table(
        (Column("AIM", is_name=True), *[Column(f"%MAX {title}") for title in classes],
         Column("ROOM"), Column("MOVED"), Column("SHARDS")),
        [[f"{aim} ({name})" if aim == plan.aim else aim,
          *[format_percent((found.classes or {}).get(title)) for title in classes],
          format_change(found.room_gain_bytes), format_bytes(found.bytes or 0), str(found.moves)]
         for aim, found in aims.items() if found.state == READY])
    planning = [aim for aim, found in aims.items() if found.state == PLANNING]
    notes = [f"{', '.join(planning)}: being planned; ask again"] if planning else []
    notes += [f"{aim}: could not be planned ({found.failure}); ask again"
              for aim, found in aims.items() if found.state == FAILED]
    epochs = sorted({found.osdmap_epoch for found in aims.values()
                     if found.osdmap_epoch is not None} - {plan.epoch})
    if epochs:
        notes.append(f"the plan was made at osdmap epoch {plan.epoch}, the others at"
                     f" {', '.join(map(str, epochs))}")
    if comparison is not None and not comparison.options_known:
        notes.append("this mgr does not know the limits that the plan was made with: the others"
                     " have those of the present settings")
    rows = [{"aim": aim, "is_this_plan": aim == plan.aim, **found._asdict(),
             "classes": None if found.classes is None else [
                 {"device_class": title, "max_utilization": highest}
                 for title, highest in found.classes.items()]} for aim, found in aims.items()]
    return rows, [*table.split("\n"), *[line for note in notes for line in wrap("", note, 0)]]


def format_change(count: Optional[int]) -> str:
    """'+2.8 TiB', '-604 GiB'; empty where it is not known."""
    return "" if count is None else ("+" if count >= 0 else "") + format_bytes(count)

"""`eval`: the placement now, and what a plan makes of it."""
from __future__ import annotations

from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence

from ...gateway.pool_space import PoolSpaceNow
from ...observation.cluster_view import ClusterView
from ...observation.planned_placement import planned_placement
from ...observation.transfer_rates import ExpectedTime, expected_time
from ...plan.aim_comparison import FAILED, PLANNING, READY, AimComparison, AimFigures, figures_of
from ...plan.kinds import BALANCE
from ...plan.model import PgChange, Plan
from ...plan.options import AIMS
from ...plan.usage import counted_usage
from ...runtime.formatting import format_bytes, format_duration, format_percent, plural, wrap
from ..command_answer import CommandAnswer
from ..table import Column, Row, render_table
from .bound_distance import certificates_json, distances, proven_lines
from .classes import class_rows, class_table, histogram, histogram_lines
from .osds import held_json, held_sentences
from .pools import (
    figures_of_usage, format_known, format_osd, pool_table, room_json, room_lines)

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


class EvaluatedPlan(NamedTuple):
    """A plan and what is known of it beside its content."""

    name: str
    plan: Plan
    created_at: Optional[float]    # seconds since the epoch
    age_seconds: Optional[float]
    epoch: int                     # of the newest osdmap
    is_executing: bool = False
    with_aims: bool = False        # the other aims were asked for
    #: with the other aims; None where there are none, or the plan was removed meanwhile
    comparison: Optional[AimComparison] = None
    failure_lines: Sequence[str] = ()   # on the worst failure, where it has been computed
    outdated_reason: Optional[str] = None   # as `ls` has it

    def is_outdated(self, elsewhere: int) -> bool:
        """True where what the plan rests on has changed, and not by the plan itself: a newer map is
        no reason. `elsewhere`: PGs that are not where the plan found them."""
        return not self.is_executing and (elsewhere > 0 or self.outdated_reason is not None)


def evaluate_cluster(look: Look) -> CommandAnswer:
    """The placement now, and once everything in flight has arrived; the classes also when the
    execution is complete."""
    view = look.view
    planned = None if look.wanted is None else planned_placement(view, look.wanted).used
    later, arrived = (view.used_soon, view.usage) if view.movements else (None, None)
    pools = figures_of_usage(view, look.space, view.usage_now(), arrived)
    classes = _with_histograms(view, class_rows(view, planned), later)
    parts = [[look.line(), *room_lines(pools.room, pools.planned_room,
                                       "when what moves has arrived")],
             class_table(classes).split("\n"),
             *_class_parts(classes, "once all has arrived", None if later is None else "soon_"),
             held_sentences(view.snapshot),
             _pool_lines(_POOLS_NOW, pools.rows, [
                 [row["name"], str(row["id"]), format_known(row["stored"]),
                  format_known(row["free_bytes"]), format_osd(row["limiting_osd"]),
                  format_known(row["best_free_bytes"]), format_known(row["max_avail"])]
                 for row in pools.rows], "df")]
    data = {**look.to_json(), "room": room_json(pools.room),
            "soon_room": room_json(view.usage.room), "classes": classes,
            "held_osds": held_json(view.snapshot), "pools": _without_plan(pools.rows)}
    return CommandAnswer(data, _joined(parts))


def evaluate_pool(name: str, look: Look) -> CommandAnswer:
    """The free space of one pool, and the OSD that limits it."""
    pools = figures_of_usage(look.view, look.space, look.view.usage_now(), None)
    rows = [row for row in pools.rows if row["name"] == name]
    return CommandAnswer({**look.to_json(), "pools": _without_plan(rows)},
                         _joined([[look.line()], pool_table(rows).split("\n")]))


def evaluate_plan(found: EvaluatedPlan, look: Look) -> CommandAnswer:
    """The placement now and with the plan, its bytes and moves, and figures of the other aims
    where they were asked for."""
    view, plan, name, comparison = look.view, found.plan, found.name, found.comparison
    planned = planned_placement(view, plan.changes)
    usage = counted_usage(view.snapshot, planned.used, planned.shards)
    pools = figures_of_usage(view, look.space, view.usage_now(), usage)
    classes = _with_histograms(view, class_rows(view, planned.used), planned.used)
    distance = distances(view, plan, planned, usage)
    expected = expected_time(view.rates, view.movements, planned.incoming)
    left = len(plan.changes) - planned.changes
    changes: List[List[str]] = []
    for row in pools.rows:
        free, later = row["free_bytes"], row["planned_free_bytes"]
        change = later - free if free is not None and later is not None else None
        changes.append([
            row["name"], str(row["id"]), format_known(row["stored"]), format_known(free),
            format_known(later), format_change(change), format_osd(row["planned_limiting_osd"]),
            format_known(row["best_free_bytes"])])
    parts = [[*_plan_lines(found, left, expected), look.line(),
              *room_lines(pools.room, pools.planned_room, f"with {name}"), *found.failure_lines],
             *_class_parts(classes, f"with {name}", "planned_",
                           {row["device_class"]: proven_lines(row) for row in distance.classes}),
             _pool_lines(_POOLS_PLANNED, pools.rows, changes, f"df {name}"), distance.lines(),
             aims_table(name, plan, comparison).split("\n")
             if found.with_aims and plan.kind == BALANCE else [],
             skipped_lines(plan.skipped)]
    bounds = view.utilization_bounds
    aims = {} if not found.with_aims else {
        "aims": aims_json(plan, comparison),
        "options_known": comparison is not None and comparison.options_known}
    return CommandAnswer({
        "plan": name, "kind": plan.kind, "aim": plan.aim, "osdmap_epoch": plan.epoch,
        "created_at": found.created_at, "age_seconds": found.age_seconds,
        "is_outdated": found.is_outdated(left), "moves": len(plan.moves), "bytes": plan.bytes,
        "changes": len(plan.changes), "applicable_changes": planned.changes,
        "stop_reason": plan.stop_reason,
        "expected_seconds": expected.seconds if expected is not None else None,
        "expected_from": expected.basis if expected is not None else None,
        "skipped": [{"reason": reason, "count": count}
                    for reason, count in sorted(plan.skipped.items())],
        "now": look.to_json(), "room": room_json(pools.room),
        "planned_room": room_json(pools.planned_room), "classes": classes,
        "pools": pools.rows, **aims,
        "distance": distance._asdict(),
        "certificates": None if bounds is None or plan.kind != BALANCE else (
            certificates_json(bounds, distance.classes))}, _joined(parts))


def skipped_lines(skipped: Mapping[str, int]) -> List[str]:
    """How many PGs could not be moved, one reason a line."""
    if not skipped:
        return []
    return ["not moved:"] + [line for reason, count in sorted(skipped.items())
                             for line in wrap(f"  {count:6}  ", reason, 10)]


def _plan_lines(found: EvaluatedPlan, left: int,
                expected: Optional[ExpectedTime]) -> List[str]:
    """`left`: PGs that are not as the plan found them."""
    plan, when = found.plan, f"osdmap e{found.plan.epoch}"
    age = f", {format_duration(found.age_seconds)} old" if found.age_seconds is not None else ""
    content = f"{plural(len(plan.moves), 'shard')}, {format_bytes(plan.bytes)}"
    pgs = plural(len(plan.changes), "PG")
    aim = f"aim {plan.aim}" if plan.kind == BALANCE else plan.kind
    if found.is_outdated(left):
        text = (f"{found.name} is outdated ({when}, now e{found.epoch}{age}): {aim},"
                f" {content}")
        if left:
            text += (f"; {left} of its {pgs} {'is' if left == 1 else 'are'} elsewhere by now, and"
                     " left out below")
    elif found.is_executing:
        text = (f"{found.name} is being executed ({aim}, {when}{age}): {content};"
                f" {len(plan.changes) - left} of its {pgs} are still to be sent")
    else:
        text = f"{found.name} ({aim}, {when}{age}): {content}"
    if expected is not None:
        text += f", about {format_duration(expected.seconds)} ({expected.basis})"
    return wrap("plan ", text, 5)


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


# -- aims ------------------------------------------------------------------------------------------

def aims_json(plan: Plan, comparison: Optional[AimComparison]) -> List[Dict[str, Any]]:
    """Figures of the plan and of those compared with it, one dictionary for each aim; null until
    they are computed. None of them where the plan has no aim."""
    if plan.kind != BALANCE:
        return []
    return [{"aim": aim, "is_this_plan": aim == plan.aim,
             **{**figures._asdict(), "classes": None if figures.classes is None else [
                 {"device_class": name, "max_utilization": highest}
                 for name, highest in figures.classes.items()]}}
            for aim, figures in _figures(plan, comparison).items()]


def aims_table(name: str, plan: Plan, comparison: Optional[AimComparison]) -> str:
    """One line for each aim, and notes about those without figures. ROOM: how much more fits then
    if all pools grow alike."""
    aims = _figures(plan, comparison)
    classes = list(plan.after.classes)
    rows = [_row(f"{aim} ({name})" if aim == plan.aim else aim, figures, classes)
            for aim, figures in aims.items() if figures.state == READY]
    columns = (Column("AIM", is_name=True), *[Column(f"%MAX {title}") for title in classes],
               Column("ROOM"), Column("MOVED"), Column("SHARDS"))
    return "\n".join([render_table(columns, rows), *_notes(plan, aims, comparison)])


def _figures(plan: Plan, comparison: Optional[AimComparison]) -> Dict[str, AimFigures]:
    """Aim → figures in the order of AIMS; an aim that this release does not know comes last."""
    known = dict(comparison.aims) if comparison is not None else {}
    known[plan.aim] = figures_of(plan)
    return {aim: known[aim] for aim in list(AIMS) + [plan.aim] if aim in known}


def _row(aim: str, figures: AimFigures, classes: List[str]) -> List[str]:
    highest = figures.classes or {}
    return ([aim] + [format_percent(highest.get(name)) for name in classes]
            + [format_change(figures.room_gain_bytes), format_bytes(figures.bytes or 0),
               str(figures.moves)])


def format_change(count: Optional[int]) -> str:
    """'+2.8 TiB', '-604 GiB'; empty where it is not known."""
    return "" if count is None else ("+" if count >= 0 else "") + format_bytes(count)


def _notes(plan: Plan, aims: Dict[str, AimFigures],
           comparison: Optional[AimComparison]) -> List[str]:
    notes: List[str] = []
    planning = [aim for aim, figures in aims.items() if figures.state == PLANNING]
    if planning:
        notes.append(f"{', '.join(planning)}: being planned; ask again")
    notes += [f"{aim}: could not be planned ({figures.failure}); ask again"
              for aim, figures in aims.items() if figures.state == FAILED]
    epochs = sorted({figures.osdmap_epoch for figures in aims.values()
                     if figures.osdmap_epoch is not None} - {plan.epoch})
    if epochs:
        notes.append(f"the plan was made at osdmap epoch {plan.epoch}, the others at"
                     f" {', '.join(map(str, epochs))}")
    if comparison is not None and not comparison.options_known:
        notes.append("this mgr does not know the limits that the plan was made with: the others"
                     " have those of the present settings")
    return [line for note in notes for line in wrap("", note, 0)]

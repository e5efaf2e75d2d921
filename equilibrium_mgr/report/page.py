"""The HTML page of `report`: its text, pictures (SVG) and tables.

Its figures come from the JSON of `eval` and `status`: a reader who compares the page with a command
finds the same.
"""
from __future__ import annotations

import html
import re
from contextlib import suppress
from string import Template
from typing import (
    Any, Dict, List, Mapping, NamedTuple, NewType, Optional, Sequence, Tuple)

from ..observation.cluster_view import OFF
from ..plan.model import Move, PgChange, Plan
from ..plan_service.plan_service import FailureAnswer
from ..planner.planner import CONVERGED, skipped
from ..runtime.formatting import (
    format_bytes, format_duration, format_percent, format_time, plural)
from ..runtime.time_slice import grouped
from ..snapshot import reason_codes as codes
from ..snapshot.model import Snapshot, is_same_placement
from ..snapshot.upmap_items import items_for
from ..version import VERSION
from .cluster.cluster_tables import class_table, held_sentences, pool_table, room_sentence
from .cluster.failures import WORST_HEAD, room_advice, worst_cells
from .answer import CommandAnswer, amount
from .status import moving_text, window_text

Markup = NewType("Markup", str)
#: Characters that a page must not have: controls, also of the direction, and surrogates.
_ODD = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069"
                  "\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")

_PAGE = Template("""\
<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<style>
*{box-sizing:border-box}
body{margin:0 auto;max-width:960px;padding:12px;background:#fff;color:#1a1a1a;
font:15px/1.45 system-ui,-apple-system,"Segoe UI",Roboto,"Liberation Sans",sans-serif;
overflow-wrap:anywhere;-webkit-text-size-adjust:100%;print-color-adjust:exact}
h1{font-size:1.5em;margin:0 0 .3em}
h2{font-size:1.2em;margin:1.6em 0 .4em;border-bottom:1px solid #999;break-after:avoid}
p{margin:.4em 0;max-width:75ch}
.verdict{font-size:1.15em;border-left:5px solid #08519c;padding:.3em .8em}
.warning{border-left:5px solid #e08214;padding:.3em .8em;font-weight:bold}
.note{color:#444;font-size:.9em}
svg{display:block;width:100%;max-width:560px;height:auto;break-inside:avoid}
.scroll{overflow-x:auto;margin:.4em 0}
table{border-collapse:collapse;font-size:.9em;font-variant-numeric:tabular-nums}
th,td{padding:2px 8px;text-align:left;vertical-align:top;border-bottom:1px solid #ccc}
th,.n{overflow-wrap:normal}
thead th,thead .n{border-bottom:2px solid #666;vertical-align:bottom;white-space:normal}
tbody th{font-weight:normal;overflow-wrap:anywhere;min-width:6em}
.n{text-align:right;white-space:nowrap}
tr{break-inside:avoid}
summary{cursor:pointer;padding:.3em 0;font-weight:bold}
dt{font-weight:bold;margin-top:.4em}
dd{margin:0 0 0 1em}
@media (min-width:700px){dl{display:grid;grid-template-columns:18em 1fr;gap:.3em 1em}
dt,dd{margin:0}}
@media screen and (min-width:1400px){body{max-width:1680px}main{columns:2;column-gap:32px}
section{break-inside:avoid}h1,main>dl,.verdict,.warning{column-span:all}table{font-size:.82em}}
@media screen and (max-width:600px){thead{display:none}tr{display:block;margin:.4em 0;
border-bottom:2px solid #999}tbody th{font-weight:bold}td,tbody th{display:flex;gap:1em;
justify-content:space-between;border:0;text-align:right;white-space:normal}
td::before,tbody th::before{content:attr(data-of);font-weight:normal;color:#444}}
@page{size:A4;margin:13mm}
@media print{body{max-width:none;padding:0;font-size:9.5pt}.scroll{overflow:visible}
svg{max-width:120mm}table{font-size:8pt}th,td{padding:1px 4px}}
</style></head>
<body><main>
<h1>$title</h1>
$body
</main></body></html>""")

_LENGTH = 150.0   # of the longest bar
#: Of the picture: head of a column, empty for the later one; key of its figures; its left edge, and
#: a color that differs from the other's for the color-blind, and in brightness in print.
_BARS = (("now", "osds", 44.0, "#e08214"), ("", "later_osds", 232.0, "#08519c"))
_MOST_CLASSES = 8

#: Rows of a table: of a thousand OSDs with 100 pools and a larger plan the page has some 300 kB.
_MOST_ROWS = 2000
_CLASSES_NAMED = 3

Data = Mapping[str, Any]


class _Left(NamedTuple):
    """What of a plan is still to be moved; empty without a plan."""

    changes: Sequence[PgChange] = ()
    moves: Sequence[Move] = ()
    in_place: int = 0   # PGs that are where the plan wants them, or on their way there

    @property
    def bytes(self) -> int:
        """Returns the bytes of the moves."""
        return sum(move.bytes for move in self.moves)


def report_page(evaluation: Data, status: Data, snapshot: Snapshot, plan: Optional[Plan], fsid: str,
                ceph_version: str, epoch: int, now: float,
                failures: Mapping[str, Optional[FailureAnswer]] = {"": None}) -> CommandAnswer:
    """Returns the page, from the JSON of `eval` and `status`. Its JSON has the page, and apart from
    it the verdict, the warnings, the picture and the commands that take the plan back.

    `epoch`: of the newest osdmap. `now`: seconds since the epoch. `failures`: name of a plan, or
    nothing → the worst failures, or None if they are not known.
    """
    left = _left_of(plan, snapshot)
    classes = evaluation["classes"]
    prefix, when, room = _later(evaluation, status, plan)
    name = ""
    title = "Equilibrium: the cluster's state"
    drawn_for = "once all has arrived"
    about = _about(evaluation, status, fsid, ceph_version, epoch, now)
    if plan is not None:
        name = evaluation["plan"]
        drawn_for = when
        title = f"Equilibrium: plan {name}"
        about["plan"] = f"{name}, {plan.purpose}, made at osdmap epoch {plan.epoch}"
    verdict = _verdict(evaluation, status["active"], left, room, _maxima(classes, prefix))
    warnings = _warnings(evaluation, status, snapshot, plan, left, epoch)
    rollback = _rollback(snapshot, plan)
    drawn = picture(classes, drawn_for)
    parts = [
        definitions(about),
        paragraph(verdict, "verdict"),
        *[paragraph(text, "warning") for text in warnings],
        _before_and_after(classes, room_sentence(evaluation["room"], room, when), drawn),
        _free_space(evaluation["pools"], name),
        section("What it costs", _costs(status, left)),
        section("If a host or a disk fails", *_failures(failures)),
        section("How to stop, and to go back", _ways_back(name, rollback)),
        section("Options that differ from their defaults", _options(status["options"])),
        section("What is left out, and why", _left_out(status, plan, snapshot)),
        *_moves(left, name)]
    text = _PAGE.substitute(title=escaped(title), body="\n".join(parts))
    data = {
        "plan": name or None,
        "verdict": [verdict],
        "warnings": warnings,
        "rollback": rollback,
        "picture": drawn,
        "html": text}
    return CommandAnswer(data, text)


def _left_of(plan: Optional[Plan], snapshot: Snapshot) -> _Left:
    """Returns what of a plan is still to be moved, by the up sets that PGs have now."""
    if plan is None:
        return _Left()
    changes = {}
    in_place = 0
    for change in plan.changes:
        pg = snapshot.pgs.get(change.pgid)
        if pg is not None and pg.up == change.up_before:
            changes[change.pgid] = change
        elif pg is not None and pg.up == change.up_after:
            in_place += 1
    moves = [move for move in plan.moves if move.pgid in changes]
    return _Left([*changes.values()], moves, in_place)


def _later(evaluation: Data, status: Data,
           plan: Optional[Plan]) -> Tuple[str, str, Optional[Data]]:
    """Returns the later moment that the page compares with now: the prefix of its figures, its
    name, and the room at it."""
    moving = status["moving"]
    if plan is not None:
        return "planned_", f"with {evaluation['plan']}", evaluation["planned_room"]
    if status["execution"] is not None:
        return "planned_", "when the plan under way is done", None
    if moving["shards"] or moving["other_shards"]:
        return "soon_", "when what moves has arrived", evaluation["soon_room"]
    return "", "", None


def _about(evaluation: Data, status: Data, fsid: str, ceph_version: str, epoch: int,
           now: float) -> Dict[str, str]:
    look = evaluation.get("now", evaluation)
    balancing = "on" if status["active"] else "off"
    if status["state"] != OFF:
        balancing += f"; {status['state']}: {status['reason']}"
    return {
        "cluster": f"fsid {fsid or 'unknown'}, {ceph_version or 'Ceph'}",
        "page": f"made at {format_time(now)} UTC, osdmap epoch {epoch}, by equilibrium {VERSION};"
        f" the cluster was read {format_duration(look['snapshot_age_seconds'])} before, at epoch"
        f" {look['osdmap_epoch']}",
        "automatic balancing": balancing}


def _verdict(evaluation: Data, active: bool, left: _Left, room: Optional[Data],
             highest: str) -> str:
    """Returns the first sentence of the page. `room`: at the later moment. `highest`: the highest
    utilization of each class, now and then, as a clause."""
    now = evaluation["room"]
    name = evaluation.get("plan")
    if now is None or now["limiting_osd"] is None or not evaluation["classes"]:
        return ("There is nothing to balance: no pool holds data, or no OSD has reported its"
                " statistics.")
    size = format_bytes(now["bytes"])
    if name is None:
        balancing = "on" if active else "off"
        return (f"The pools have room for {size} more data if they grow alike, until"
                f" osd.{now['limiting_osd']} is full; {highest}; automatic balancing is"
                f" {balancing}.")
    if not left.moves or room is None:
        if evaluation["moves"]:
            return f"Plan {name} has nothing left to be moved: {highest}."
        return f"Plan {name} moves no data: {highest}."
    time = ""
    expected = evaluation["expected_seconds"]
    if expected is not None:
        time = f", in about {format_duration(expected)} ({evaluation['expected_from']})"
    return (f"Plan {name} moves {amount(len(left.moves), left.bytes)}{time}: then the pools have"
            f" room for {format_bytes(room['bytes'])} more data instead of {size}, and {highest}.")


def _warnings(evaluation: Data, status: Data, snapshot: Snapshot, plan: Optional[Plan],
              left: _Left, epoch: int) -> List[str]:
    """Returns sentences without which a reader would misread the page; most pages have none."""
    outage = status["outage"]
    warnings = []
    if outage is not None:
        warnings.append(f"{outage['sentence']}: {outage['action']}")
    if plan is not None:
        warnings += _plan_warnings(evaluation, status["execution"], plan, left, epoch)
    nearfull = snapshot.nearfull_ratio
    stuck = [row for row in evaluation["classes"]
             if (row["bound_utilization"] or 0.0) >= nearfull > 0.0]
    for row in stuck[:_CLASSES_NAMED]:
        name = row["device_class"]
        bound = row["bound_utilization"]
        action = codes.action(codes.BOUND_CAPACITY, {"full_class": name})
        warnings.append(
            f"Balancing cannot bring class {name} below {format_percent(bound)}%, and nearfull is"
            f" {format_percent(nearfull)}%: {action}.")
    return warnings


def _plan_warnings(evaluation: Data, execution: Optional[Data], plan: Plan, left: _Left,
                   epoch: int) -> List[str]:
    warnings = []
    progress = (f"{len(left.changes)} of its {plural(len(plan.changes), 'PG')} are still to be"
                f" moved, {left.in_place} are in place or on their way; what follows is about those"
                " to be moved.")
    if execution is not None and execution["plan"] == evaluation["plan"]:
        warnings.append(f"The plan is being carried out: {progress}")
    elif evaluation["is_outdated"]:
        warnings.append(f"The plan is outdated: it was made at osdmap epoch {plan.epoch}, and the"
                        f" newest is {epoch}; {progress}")
    if plan.stop_reason != CONVERGED:
        warnings.append(f"The plan was cut short: {plan.stop_reason}.")
    return warnings


def _rollback(snapshot: Snapshot, plan: Optional[Plan]) -> List[str]:
    """Returns commands that take the plan back, the last change first. A PG that the plan has not
    touched gets the items that it has now. A PG that has moved already gets the items that place it
    where the plan found it."""
    commands: List[str] = []
    if plan is None:
        return commands
    for change in reversed(plan.changes):
        pg = snapshot.pgs.get(change.pgid)
        if pg is None:
            continue
        items = None
        if pg.up == change.up_before:
            items = snapshot.items_of(change.pgid)
        elif pg.up == change.up_after and is_same_placement(
                pg.raw, change.raw, snapshot.is_positional(pg)):
            with suppress(ValueError):   # upmap items cannot express where it was
                items = items_for(change.raw, change.up_before)
        if items is not None:
            commands.append(change._replace(items=items).command())
    return commands


def _maxima(classes: Sequence[Data], prefix: str) -> str:
    """Returns the classes whose fullest OSD is furthest above the bound: now, later, and the
    bound."""
    rows = sorted(classes, key=_above_bound, reverse=True)
    return "the fullest OSD " + ", that ".join([
        _maximum(row, prefix) for row in rows[:_CLASSES_NAMED]])


def _above_bound(row: Data) -> float:
    return float(row["max_utilization"] - (row["bound_utilization"] or 0.0))


def _maximum(row: Data, prefix: str) -> str:
    now = format_percent(row["max_utilization"])
    bound = format_percent(row["bound_utilization"])
    later = format_percent(row.get(f"{prefix}max_utilization")) or now
    text = f"of class {row['device_class']} goes from {now}% to {later}%"
    if later == now:
        text = f"of class {row['device_class']} is at {now}%"
    # a bound that keeps lowered weights may be above the fullest OSD
    if bound and float(bound) <= float(later):
        text += f" (the rules allow {bound}%)"
    return text


# -- sections --------------------------------------------------------------------------------------

def _before_and_after(classes: Sequence[Dict[str, Any]], room: str, drawn: Markup) -> Markup:
    return section(
        "Before and after",
        table(*class_table(classes), "ceph equilibrium status"),
        paragraph(f"Room {room}; in brackets the OSD that is full first."),
        paragraph("%SOON: when what moves has arrived. %PLAN: when the plan is done. %BOUND: the"
                  " lowest maximum that the CRUSH rules and lowered weights allow.", "note"),
        drawn,
        paragraph("OSDs of each device class by utilization: the longer a bar, the more OSDs. Each"
                  " class has its own scale.", "note"))


def _free_space(pools: Sequence[Dict[str, Any]], name: str) -> Markup:
    return section(
        "Free space of pools",
        table(*pool_table(pools), f"ceph equilibrium df {name}".strip()),
        paragraph("FREE: what fits into this pool alone until its first OSD is full. Pools share"
                  " their OSDs, so it cannot be had for all of them at once; a pool of little data"
                  " may have less then.", "note"))


def _options(options: Sequence[Data]) -> Markup:
    if not options:
        return paragraph("None: all of them have their defaults.")
    rows = []
    for one in options:
        value = one["value"]
        if one["bad"]:
            value += f" ({one['bad']})"
        rows.append([one["name"], value, one["default"]])
    return table("OPTION<|VALUE<|DEFAULT<", rows)


def _costs(status: Data, left: _Left) -> Markup:
    limits = status["limits"]
    rows = {}
    if left.moves:
        shards = plural(len(left.moves), "shard")
        rows["data to move"] = f"{format_bytes(left.bytes)} in {shards}"
    rows["moving now"] = moving_text(status["moving"]) or "nothing"
    rows["misplaced object copies"] = (
        f"{format_percent(status['misplaced_ratio'])}% now; no move is sent that makes it more than"
        f" {format_percent(limits['max_misplaced_ratio'])}%, except off an OSD that is too full, or"
        " of one PG at a time that is more by itself")
    rows["at a time"] = "any number of shards to an OSD and from it"
    if limits["max_backfills_per_osd"]:
        most = plural(limits["max_backfills_per_osd"], "shard")
        rows["at a time"] = f"up to {most} to an OSD, and as many from it"
    window = window_text(status["window"]) or "at any time"
    rows["time window"] = f"{window}; 'execute' does not mind it"
    return definitions(rows)


def _failures(answers: Mapping[str, Optional[FailureAnswer]]) -> List[Markup]:
    """Returns the worst failure of each type, now and with the plan."""
    rows: List[List[str]] = []
    missing = []
    advice: List[Markup] = []
    for plan, answer in answers.items():
        of_plan = f" {plan}" if plan else ""
        command = f"ceph equilibrium eval{of_plan} --worst-failure"
        if answer is None:
            missing.append(paragraph(
                f"Not computed: '{command}' does it; then ask for this page again."))
        else:
            rows += _failure_rows(plan, answer)
            advice += _room_advice(plan, answer)
    if len(missing) == len(answers):
        return missing
    return [
        table(f"WORST FAILURE<|WHEN<|{WORST_HEAD}", rows),
        paragraph("The worst of each type. %AFTER: the highest utilization at the end, %PEAK: on"
                  " the way. NO ROOM: what finds none below backfillfull, so that %AFTER is not"
                  " reached. Steered: with the options steer_recovery and hold_placement, or the"
                  f" one that is on; the line above it is by CRUSH alone. '{command}' has others."
                  " While a plan is carried out it is between now and with it, as an upmap moves a"
                  " whole copy before the old one is deleted.",
                  "note"),
        *advice,
        *missing]


def _failure_rows(plan: str, answer: FailureAnswer) -> List[List[str]]:
    rows = []
    when = f"with {plan}" if plan else "now"
    for type_name, found in (answer.worst or {}).items():
        for one in found.worst[:1]:
            names = (f"{type_name} {one.failure.name}", "the same, steered")
            for name, cells in zip(names, worst_cells(answer, one)):
                rows.append([name, when, *cells[1:]])
    return rows


def _room_advice(plan: str, answer: FailureAnswer) -> List[Markup]:
    """Returns what gives all shards room after the worst failure of each type."""
    when = f" with {plan}" if plan else ""
    found: List[Markup] = []
    for type_name, failures in (answer.worst or {}).items():
        for one in failures.worst[:1]:
            advice = room_advice(answer, one)
            if advice:
                found.append(paragraph(f"{type_name} {one.failure.name}{when}: {advice}."))
    return found


def _ways_back(name: str, rollback: Sequence[str]) -> Markup:
    of_plan = ""
    stopped = "all plans"
    if name:
        of_plan = f" {name}"
        stopped = "the plan"
    rows = {
        "when": "clients' latency rises more than they can bear, or an OSD nears nearfull although"
        " the plan does not foresee it ('ceph equilibrium status')",
        "ceph equilibrium off": "nothing more is sent; what moves already goes on",
        f"ceph equilibrium cancel{of_plan}": f"stops {stopped}, and takes back what was sent and"
        " has not begun to be copied; no data moves for it",
        f"ceph equilibrium undo{of_plan}": "moves back what has moved, within the same limits; with"
        " --dry-run it tells what that would cost"}
    if rollback:
        rows[f"ceph equilibrium report{of_plan} --format json | jq -r '.rollback[]'"] = (
            f"{plural(len(rollback), 'command')} that do so without equilibrium, to be kept"
            " before the plan is carried out: 'ceph equilibrium off' first; nothing throttles them,"
            " so run some dozens at a time")
    return definitions(rows)


def _left_out(status: Data, plan: Optional[Plan], snapshot: Snapshot) -> Markup:
    """Returns the reasons with counts, and sentences about things that have no count."""
    counts: Dict[str, int] = dict(skipped(snapshot) if plan is None else plan.skipped)
    for group in status["rejected"]:
        reason = f"PG: left alone for now: {group['reason']}"
        counts[reason] = len(group["pgids"])
    rows = [[reason, str(count)]
            for reason, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]
    stopped = [entry["reason"] for entry in status["mispredicted"]]
    rows += [[text, ""] for text in (*status["left_out"], *stopped, *held_sentences(snapshot))]
    if not rows:
        return paragraph("Nothing: every PG may be moved, and every OSD may take shards.")
    return table("WHY<|COUNT", rows, "ceph equilibrium explain")


def _moves(left: _Left, name: str) -> List[Markup]:
    """Returns the changes of the plan that are still to be made, folded; none without a plan."""
    if not left.changes:
        return []
    moves = grouped((move.pgid, move) for move in left.moves)
    rows = []
    for change in left.changes:
        own = moves.get(change.pgid, ())
        shards = [f"osd.{move.source} to osd.{move.target}" for move in own]
        size = format_bytes(sum(move.bytes for move in own))
        rows.append([change.pgid, ", ".join(shards), change.command(), size])
    moves_table = table("PG<|SHARDS<|COMMAND<|SIZE", rows, f"ceph equilibrium show {name}")
    summary = escaped(f"{plural(len(rows), 'PG')}, {format_bytes(left.bytes)}")
    return [section("Moves", Markup(
        f"<details><summary>{summary}</summary>\n{moves_table}</details>"))]


# -- the picture: OSDs of each device class by utilization -----------------------------------------

def picture(classes: Sequence[Data], when: str) -> Markup:
    """Returns bars of the `histogram` of each class, now and `when`, each class with its own scale.
    The same figures give the same picture at any time. Empty without OSDs."""
    shapes: List[str] = []
    y = 0.0
    for row in classes[:_MOST_CLASSES]:
        steps = row["histogram"]
        shapes += _class_heads(row, when, y)
        y += 40.0
        most = max([1, *[max(step["osds"], step["later_osds"] or 0) for step in steps]])
        for step in steps:
            shapes += _step_bars(step, most, y)
            y += 17.0
        y += 12.0
    if not shapes:
        return Markup("")
    label = escaped(f" and {when}")
    return Markup(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 420 {y:g}" role="img"'
        f' aria-label="OSDs of each device class by utilization, now{label}"'
        ' font-size="12" font-family="system-ui, -apple-system, Roboto, sans-serif">'
        f'<rect width="420" height="{y:g}" fill="#ffffff"/>{"".join(shapes)}</svg>')


def _class_heads(row: Data, when: str, y: float) -> List[str]:
    text = f"{row['device_class']}: {plural(row['osds'], 'OSD')}, {format_bytes(row['size_bytes'])}"
    if row["bound_utilization"] is not None:
        text += f", bound {format_percent(row['bound_utilization'])}%"
    is_compared = any(step["later_osds"] is not None for step in row["histogram"])
    bars = _BARS if is_compared else _BARS[:1]
    heads = [_text((head or when)[:30], x, y + 34.0) for head, _, x, _ in bars]
    return [_text(text, 0.0, y + 16.0), *heads]


def _step_bars(step: Data, most: int, y: float) -> List[str]:
    """Returns the bars of one step of utilization; the longest bar has `most` OSDs."""
    shapes = [_text(f"{100.0 * step['from_ratio']:.0f}%", 0.0, y + 12.0)]
    for _, key, x, color in _BARS:
        if step[key]:
            length = _LENGTH * step[key] / most
            shapes.append(f'<rect x="{x:g}" y="{y:g}" width="{length:.1f}" height="14"'
                          f' fill="{color}"/>')
            shapes.append(_text(step[key], x + length + 4.0, y + 12.0))
    return shapes


def _text(text: object, x: float, y: float) -> str:
    return f'<text x="{x:.1f}" y="{y:g}" fill="#1a1a1a">{escaped(str(text))}</text>'


# -- pieces of HTML: a `str` is text and becomes `Markup` by being escaped -------------------------

def escaped(text: str) -> Markup:
    """Returns the text as it stands in an element or an attribute. Names in a map may hold
    anything, and characters that are not printable would make the page invalid."""
    return Markup(html.escape(_ODD.sub("\ufffd", text)))


def paragraph(text: str, kind: str = "") -> Markup:
    """Returns a paragraph. `kind`: verdict, warning, note or nothing."""
    if not kind:
        return Markup(f"<p>{escaped(text)}</p>")
    return Markup(f'<p class="{kind}">{escaped(text)}</p>')


def section(title: str, *parts: Markup) -> Markup:
    """Returns a part of the page under its heading."""
    body = "\n".join(parts)
    return Markup(f"<section><h2>{escaped(title)}</h2>\n{body}</section>")


def definitions(rows: Mapping[str, str]) -> Markup:
    """Returns terms and their descriptions."""
    return Markup("<dl>" + "".join([f"<dt>{escaped(term)}</dt><dd>{escaped(text)}</dd>"
                                    for term, text in rows.items()]) + "</dl>")


def table(head: str, rows: Sequence[Sequence[str]], elsewhere: str = "") -> Markup:
    """Returns a table that scrolls sideways if it is too wide.

    `head`: as of `render_table`. `elsewhere`: the command that shows the rows above _MOST_ROWS,
    which are only counted.
    """
    titles = head.split("|")
    kinds = list(map(_cell_kind, titles))
    names = [escaped(title.rstrip("<")) for title in titles]
    top = [f'<th scope="col"{kind}>{name}</th>' for kind, name in zip(kinds, names)]
    body = [_table_row(row, kinds, names) for row in rows[:_MOST_ROWS]]
    more = len(rows) - len(body)
    rest = ""
    if more:
        rest = paragraph(f"{plural(more, 'more row')} left out; '{elsewhere}' has all of them.",
                         "note")
    return Markup('<div class="scroll" role="region" tabindex="0"><table><thead><tr>'
                  f"{''.join(top)}</tr></thead><tbody>\n" + "\n".join(body)
                  + f"</tbody></table></div>{rest}")


def _cell_kind(title: str) -> str:
    """Returns the attribute of the cells of a column: numbers are aligned to the right."""
    if title.endswith("<"):
        return ""
    return ' class="n"'


def _table_row(row: Sequence[str], kinds: Sequence[str], names: Sequence[str]) -> str:
    cells = [f'<td{kind} data-of="{name}">{escaped(text)}</td>'
             for kind, name, text in zip(kinds, names, row)]
    cells[0] = f'<th scope="row" data-of="{names[0]}">{escaped(row[0])}</th>'
    return f"<tr>{''.join(cells)}</tr>"

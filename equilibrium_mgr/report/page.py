"""The HTML page of `report`: its text, pictures (SVG) and tables.

Its figures are those of `eval` and `status`, taken from their JSON: a reader who compares
the page with a command finds the same.
"""
from __future__ import annotations

import html
from collections import Counter
from contextlib import suppress
from string import Template
from typing import Any, Dict, List, Mapping, NewType, Optional, Sequence, Set

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
from .cluster.cluster_tables import class_table, format_osd, held_sentences, pool_table
from .answer import CommandAnswer
from .status import window_text

Markup = NewType("Markup", str)

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
#: Of the picture: head of a column, empty for what is later; key of its figures; where it begins,
#: and a color that differs from the other's for the color-blind, and in brightness in print.
_BARS = (("now", "osds", 44.0, "#e08214"), ("", "later_osds", 232.0, "#08519c"))
_MOST_CLASSES = 8

#: Rows of a table: of a thousand OSDs with 100 pools and a larger plan the page has some 300 kB.
_MOST_ROWS = 2000
_CLASSES_NAMED = 3
#: MiB/s of an OSD, for which it is told how long a plan takes.
_RATES = (10, 50, 100)


def report_page(evaluation: Mapping[str, Any], status: Mapping[str, Any],
                snapshot: Snapshot, plan: Optional[Plan], fsid: str, ceph_version: str, epoch: int,
                now: float,
                failures: Mapping[str, Optional[FailureAnswer]] = {"": None}) -> CommandAnswer:
    """The page, from the JSON of `eval` and `status`; in JSON it stands beside its verdict, the
    picture and all commands that take the plan back. `epoch`: of the newest osdmap; `now`: seconds
    since the epoch; `failures`: name of a plan, or nothing → the worst, where they are known."""
    pgs = snapshot.pgs
    changes = [(change, pgs[change.pgid]) for change in plan.changes
               if change.pgid in pgs] if plan is not None else []
    to_make = [change for change, pg in changes if pg.up == change.up_before]
    in_place = [change for change, pg in changes
                if pg.up == change.up_after != change.up_before]
    wanted = {change.pgid for change in to_make}
    moves = [move for move in plan.moves if move.pgid in wanted] if plan is not None else []
    prefix, when, room = "", "", None
    if plan is not None:
        prefix, when, room = "planned_", f"with {evaluation['plan']}", evaluation["planned_room"]
    elif status["execution"] is not None:
        prefix, when = "planned_", "when the plan under way is done"
    elif status["moving"]["shards"] or status["moving"]["other_shards"]:
        prefix, when, room = "soon_", "when what moves has arrived", evaluation["soon_room"]
    name, highest = str(evaluation.get("plan", "")), _maxima(evaluation["classes"], prefix)
    said = _verdict(evaluation, status["active"], moves if plan is not None else None, room,
                    highest)
    warned = _warnings(evaluation, status, snapshot, plan, len(to_make), len(in_place), epoch)
    rollback = _rollback(snapshot, plan, wanted, {change.pgid for change in in_place})
    look = evaluation.get("now", evaluation)
    about = {"cluster": f"fsid {fsid or 'unknown'}, {ceph_version or 'Ceph'}",
             "page": f"made at {format_time(now)} UTC, osdmap epoch {epoch}, by"
             f" equilibrium {VERSION}; the cluster was read"
             f" {format_duration(look['snapshot_age_seconds'])} before, at epoch"
             f" {look['osdmap_epoch']}",
             "automatic balancing": ("on" if status["active"] else "off") + (
                 f"; {status['state']}: {status['reason']}" if status["state"] != OFF else "")}
    if plan is not None:
        about["plan"] = f"{name}, {plan.purpose}, made at osdmap epoch {plan.epoch}"
    rooms = [f"{format_bytes(one['bytes'])} {at} ({format_osd(one['limiting_osd'])} is full first)"
             for one, at in ((evaluation["room"], "now"), (room, when))
             if one is not None and one["limiting_osd"] is not None]
    drawn = picture(evaluation["classes"], when if plan is not None else "once all has arrived")
    title = f"Equilibrium: plan {name}" if plan is not None else (
        "Equilibrium: the cluster's state")
    parts = [definitions(about), paragraph(said, "verdict"),
             *[paragraph(text, "warning") for text in warned],
             section("Before and after", table(*class_table(evaluation["classes"]),
                                               "ceph equilibrium status"),
                     paragraph(f"Room if all pools grow alike: {', '.join(rooms) or 'unknown'}."),
                     paragraph("%SOON: when what moves has arrived. %PLAN: when the plan is done."
                               " %BOUND: the lowest maximum that the CRUSH rules and"
                               " lowered weights allow.", "note"),
                     drawn,
                     paragraph("OSDs of each device class by utilization: the longer a bar, the"
                               " more OSDs. Each class has its own scale.", "note")),
             section("Free space of pools", table(
                 *pool_table(evaluation["pools"]), f"ceph equilibrium df {name}".strip()),
                     paragraph("FREE: what fits into this pool alone until its first OSD is full."
                               " Pools share their OSDs, so it cannot be had for all of them at"
                               " once; a pool of little data may have less then.", "note")),
             section("What it costs", _costs(status, evaluation, moves)),
             section("If a host or a disk fails", *_failures(failures)),
             section("How to stop, and to go back", _ways_back(name, rollback)),
             section("Options that differ from their defaults", table("OPTION<|VALUE<|DEFAULT<", [
                 [one["name"], one["value"] + (f" ({one['bad']})" if one["bad"] else ""),
                  one["default"]] for one in status["options"]]) if status["options"]
                     else paragraph("None: all of them have their defaults.")),
             section("What is left out, and why", _left_out(status, plan, snapshot)),
             *_moves(plan, name, to_make)]
    text = _PAGE.substitute(title=escaped(title), body="\n".join(parts))
    return CommandAnswer({
        "plan": name or None,
        "outdated": evaluation.get("is_outdated"), "osdmap_epoch": epoch,
        "fsid": fsid, "ceph_version": ceph_version, "version": VERSION,
        "created_at": now, "verdict": [said], "warnings": warned,
        "rollback": rollback, "picture": drawn, "html": text}, text)


def _verdict(evaluation: Mapping[str, Any], active: bool, moves: Optional[Sequence[Move]],
             room: Optional[Mapping[str, Any]], highest: str) -> str:
    """What the page says first. `moves`: what a plan has still to move; None without a plan.
    `highest`: the highest utilization of each class, now and then, as a clause."""
    now_room, name = evaluation["room"], evaluation.get("plan", "")
    expected = evaluation.get("expected_seconds")
    if now_room is None or now_room["limiting_osd"] is None or not evaluation["classes"]:
        return ("There is nothing to balance: no pool holds data, or no OSD has reported its"
                " statistics.")
    if moves is None:
        return (f"The pools have room for {format_bytes(now_room['bytes'])} more data if they grow"
                f" alike, until osd.{now_room['limiting_osd']} is full; {highest}; automatic"
                f" balancing is {'on' if active else 'off'}.")
    if not moves or room is None:
        left = "has nothing left to be moved" if evaluation["moves"] else "moves no data"
        return f"Plan {name} {left}: {highest}."
    time = "" if expected is None else (
        f", in about {format_duration(expected)} ({evaluation['expected_from']})")
    return (f"Plan {name} moves {plural(len(moves), 'shard')},"
            f" {format_bytes(sum(move.bytes for move in moves))}{time}: then the pools have"
            f" room for {format_bytes(room['bytes'])} more data instead of"
            f" {format_bytes(now_room['bytes'])}, and {highest}.")


def _warnings(evaluation: Mapping[str, Any], status: Mapping[str, Any], snapshot: Snapshot,
              plan: Optional[Plan], to_make: int, in_place: int, epoch: int) -> List[str]:
    """Without which the page would be read wrongly; most pages have none. Of the plan's PGs
    `to_make` are still to be moved, and `in_place` are where it wants them or on their way."""
    outage = status["outage"]
    warned = [] if outage is None else [f"{outage['sentence']}: {outage['action']}"]
    if plan is not None:
        gone = len(plan.changes) - to_make - in_place
        of_all = (f"of its {plural(len(plan.changes), 'PG')} {in_place} are in place or on"
                  f" their way, {to_make} are still to be moved, and {gone} are elsewhere by"
                  " now; what follows is about those to be moved.")
        if (status["execution"] or {}).get("plan") == evaluation["plan"]:
            warned.append(f"The plan is being carried out: {of_all}")
        elif evaluation["is_outdated"]:
            warned.append(f"The plan is outdated: it was made at osdmap epoch {plan.epoch}, and the"
                          f" newest is {epoch}; {of_all}")
        if plan.stop_reason != CONVERGED:
            warned.append(f"The plan was cut short: {plan.stop_reason}.")
    warned += [f"Balancing cannot bring class {row['device_class']} below"
               f" {format_percent(row['bound_utilization'])}%, and nearfull is"
               f" {format_percent(snapshot.nearfull_ratio)}%:"
               f" {codes.action(codes.BOUND_CAPACITY, {'full_class': row['device_class']})}."
               for row in evaluation["classes"]
               if (row["bound_utilization"] or 0.0) >= snapshot.nearfull_ratio > 0.0
               ][:_CLASSES_NAMED]
    return warned


def _rollback(snapshot: Snapshot, plan: Optional[Plan], to_make: Set[str],
              made: Set[str]) -> List[str]:
    """Commands that take the plan back, the last change first. A PG that the plan has not touched
    gets the items that it has now; one that has moved already those that place it where the plan
    found it."""
    commands = []
    for change in reversed(plan.changes if plan is not None else ()):
        if change.pgid in to_make:
            items = snapshot.items_of(change.pgid)
            commands.append(change._replace(items=items).command())
        elif change.pgid in made:
            pg = snapshot.pgs[change.pgid]
            if is_same_placement(pg.raw, change.raw, snapshot.is_positional(pg)):
                with suppress(ValueError):   # upmap items cannot express where it was
                    items = items_for(change.raw, change.up_before)
                    commands.append(change._replace(items=items).command())
    return commands


def _maxima(classes: Sequence[Mapping[str, Any]], prefix: str) -> str:
    """The classes whose fullest OSD is furthest above the bound: now, later, and the bound."""
    said: List[str] = []
    for row in sorted(classes, reverse=True, key=lambda row: float(
            row["max_utilization"] - (row["bound_utilization"] or 0.0)))[:_CLASSES_NAMED]:
        now, bound = (format_percent(row[key]) for key in ("max_utilization", "bound_utilization"))
        later = format_percent(row.get(f"{prefix}max_utilization")) or now
        said.append(f"of class {row['device_class']} "
                    + (f"is at {now}%" if later == now else f"goes from {now}% to {later}%")
                    # a bound that keeps lowered weights may be above what is there
                    + (f" (the rules allow {bound}%)" if bound and float(bound) <= float(later)
                       else ""))
    return "the fullest OSD " + ", that ".join(said)


# -- figures ---------------------------------------------------------------------------------------

def _costs(status: Mapping[str, Any], evaluation: Mapping[str, Any],
           moves: Sequence[Move]) -> Markup:
    moving, limits, room = status["moving"], status["limits"], evaluation["room"]
    most, to_come, rows = limits["max_backfills_per_osd"], Counter[int](), {}
    for move in moves:
        to_come[move.target] += move.bytes
    for osd, size in to_come.most_common(1):
        rows["data to move"] = (f"{format_bytes(sum(move.bytes for move in moves))} in"
                                f" {plural(len(moves), 'shard')}")
        rows["time"] = "; ".join([
            f"{format_duration(max(size / (rate << 20), evaluation['least_seconds']))} at {rate}"
            " MiB/s an OSD"
            for rate in _RATES]) + f" (osd.{osd} gets most, {format_bytes(size)})"
    if moves and room is not None and room["limiting_osd"] is not None:
        rows["if it is left"] = (
            f"the pools take {format_bytes(room['bytes'])} more; then osd.{room['limiting_osd']} is"
            " full, and pools with data on it take no writes")
    return definitions({
        **rows,
        "moving now": " and ".join([
            f"{plural(moving[f'{whose}shards'], 'shard')}, {format_bytes(moving[f'{whose}bytes'])},"
            f" {by}"
            for whose, by in (("", "by equilibrium"), ("other_", "for other reasons"))
            if moving[f"{whose}shards"]]) or "nothing",
        "misplaced object copies": f"{format_percent(status['misplaced_ratio'])}% now; no move is"
        f" sent that makes it more than {format_percent(limits['max_misplaced_ratio'])}%, but for"
        " one PG at a time that is more by itself",
        "at a time": f"up to {plural(most, 'shard')} to an OSD, and as many from it" if most
        else "any number of shards to an OSD and from it",
        "time window": (window_text(status["window"]) or "at any time")
        + "; 'execute' does not mind it"})


def _failures(answers: Mapping[str, Optional[FailureAnswer]]) -> List[Markup]:
    """The worst failure of each type, now and with the plan."""
    rows = [[f"{type_name} {one.failure.name}", f"with {plan}" if plan else "now",
             format_percent(one.fullest[0]), format_osd(one.fullest[1]), str(len(one.too_full)),
             str(sum(one.undersized.values())), str(sum(one.lost.values())),
             format_bytes(one.copied_bytes)]
            for plan, answer in answers.items()
            if answer is not None and answer.worst is not None
            for type_name, found in answer.worst.items() for one in found.worst[:1]]
    commands = {plan: " ".join(["ceph equilibrium eval", *filter(None, [plan]), "--worst-failure"])
                for plan in answers}
    told = paragraph(
        "The worst of each type, as if all of it could recover: the PGs of TOOFULL cannot."
        f" '{[*commands.values()][-1]}' has others. While a plan is carried out it is between now"
        " and with it, as an upmap moves a whole copy before the old one is deleted.", "note")
    return [*[table("WORST FAILURE<|WHEN<|%AFTER|FULLEST|TOOFULL|UNDERSIZED|LOST|COPIED", rows),
              told] * any(answers.values()),
            *[paragraph(f"Not computed: '{commands[plan]}' does it; then ask for this page again.")
              for plan, answer in answers.items() if answer is None]]


def _ways_back(name: str, rollback: Sequence[str]) -> Markup:
    of_plan = f" {name}" if name else ""
    rows = {
        "when": "clients' latency rises more than they can bear, or an OSD nears nearfull although"
        " the plan does not foresee it ('ceph equilibrium status')",
        "ceph equilibrium off": "nothing more is sent; what moves already goes on",
        f"ceph equilibrium cancel{of_plan}": f"stops {'the plan' if of_plan else 'all plans'}, and"
        " takes back what was sent and has not begun to be copied; no data moves for it",
        f"ceph equilibrium undo{of_plan}": "moves back what has moved, within the same limits; with"
        " --dry-run it tells what that would cost"}
    if rollback:
        rows[f"ceph equilibrium report{of_plan} --format json | jq -r '.rollback[]'"] = (
            f"{plural(len(rollback), 'command')} that do so without equilibrium, to be kept"
            " before the plan is carried out: 'ceph equilibrium off' first; nothing throttles them,"
            " so run some dozens at a time")
    return definitions(rows)


def _left_out(status: Mapping[str, Any], plan: Optional[Plan], snapshot: Snapshot) -> Markup:
    """Counted reasons, and sentences on what is not counted."""
    rows = [[reason, str(count)] for reason, count in sorted(
        (skipped(snapshot) if plan is None else plan.skipped).items(),
        key=lambda item: (-item[1], item[0]))]
    rows += [[f"PG: the monitor did not keep its upmap items: {group['reason']}",
              str(len(group["pgids"]))] for group in status["rejected"]]
    rows += [[sentence, ""] for sentence in (
        *status["left_out"], *[entry["reason"] for entry in status["mispredicted"]],
        *held_sentences(snapshot))]
    return table("WHY<|COUNT", rows, "ceph equilibrium explain") if rows else paragraph(
        "Nothing: every PG may be moved, and every OSD may take shards.")


def _moves(plan: Optional[Plan], name: str, to_make: Sequence[PgChange]) -> List[Markup]:
    """The changes of the plan that are still to be made, folded; none without a plan."""
    if plan is None or not to_make:
        return []
    moves = grouped((move.pgid, move) for move in plan.moves)
    rows = [[change.pgid, ", ".join([f"osd.{move.source} to osd.{move.target}"
                                     for move in moves.get(change.pgid, ())]), change.command(),
             format_bytes(sum(move.bytes for move in moves.get(change.pgid, ())))]
            for change in to_make]
    size = format_bytes(sum(move.bytes for change in to_make for move in moves.get(
        change.pgid, ())))
    moves_table = table("PG<|SHARDS<|COMMAND<|SIZE", rows, f"ceph equilibrium show {name}")
    return [section("Moves", Markup(
        f"<details><summary>{escaped(plural(len(rows), 'PG'))}, {size}</summary>\n"
        f"{moves_table}</details>"))]


# -- the picture: OSDs of each device class by utilization -----------------------------------------

def picture(classes: Sequence[Mapping[str, Any]], when: str) -> Markup:
    """Bars of the `histogram` of each class, now and `when`, each class with a scale of its own;
    nothing in it depends on the time. Empty without OSDs."""
    shapes: List[str] = []
    y = 0.0
    for row in classes[:_MOST_CLASSES]:
        steps, bound = row["histogram"], row["bound_utilization"]
        most = max([1, *[step[key] or 0 for step in steps for _, key, _, _ in _BARS]])
        is_compared = any(step["later_osds"] is not None for step in steps)
        shapes.append(_text(
            f"{row['device_class']}: {plural(row['osds'], 'OSD')},"
            f" {format_bytes(row['size_bytes'])}"
            f"{'' if bound is None else f', bound {format_percent(bound)}%'}", 0.0, y + 16.0))
        shapes += [_text((head or when)[:30], x, y + 34.0)
                   for head, _, x, _ in _BARS[:1 + is_compared]]
        y += 40.0
        for step in steps:
            shapes.append(_text(f"{100.0 * step['from_ratio']:.0f}%", 0.0, y + 12.0))
            for _, key, x, color in _BARS:
                if step[key]:
                    length = _LENGTH * step[key] / most
                    shapes += [f'<rect x="{x:g}" y="{y:g}" width="{length:.1f}" height="14"'
                               f' fill="{color}"/>', _text(step[key], x + length + 4.0, y + 12.0)]
            y += 17.0
        y += 12.0
    return Markup("" if not shapes else (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 420 {y:g}" role="img"'
        f' aria-label="OSDs of each device class by utilization, now{escaped(f" and {when}")}"'
        ' font-size="12" font-family="system-ui, -apple-system, Roboto, sans-serif">'
        f'<rect width="420" height="{y:g}" fill="#ffffff"/>{"".join(shapes)}</svg>'))


def _text(text: object, x: float, y: float) -> str:
    return f'<text x="{x:.1f}" y="{y:g}" fill="#1a1a1a">{escaped(str(text))}</text>'


# -- pieces of HTML: a `str` is text and becomes `Markup` by being escaped -------------------------

def escaped(text: str) -> Markup:
    """The text as it stands in an element or an attribute. Names in a map may hold anything: what
    is not printable would make the page invalid."""
    if not text.isprintable():
        text = "".join(one if one.isprintable() or one == "\n" else "\ufffd" for one in text)
    return Markup(html.escape(text))


def paragraph(text: str, kind: str = "") -> Markup:
    """A paragraph. `kind`: verdict, warning, note or nothing."""
    return Markup(f'<p class="{kind}">{escaped(text)}</p>' if kind
                  else f"<p>{escaped(text)}</p>")


def section(title: str, *parts: Markup) -> Markup:
    """A part of the page under its heading."""
    return Markup(f"<section><h2>{escaped(title)}</h2>\n" + "\n".join(parts) + "</section>")


def definitions(rows: Dict[str, str]) -> Markup:
    """Terms, and what is to be said of each."""
    return Markup("<dl>" + "".join([f"<dt>{escaped(term)}</dt><dd>{escaped(text)}</dd>"
                                    for term, text in rows.items()]) + "</dl>")


def table(head: str, rows: Sequence[Sequence[str]], elsewhere: str = "") -> Markup:
    """A table that scrolls sideways where it is too wide; `head` as `render_table` has it. Rows
    beyond _MOST_ROWS are counted only; `elsewhere`: the command that has all."""
    titles = head.split("|")
    names = [f' data-of="{escaped(title.rstrip("<"))}"' for title in titles]
    kinds = ["" if title.endswith("<") else ' class="n"' for title in titles]
    top = "".join([f'<th scope="col"{kind}>{escaped(title.rstrip("<"))}</th>'
                   for kind, title in zip(kinds, titles)])
    body = [f'<tr><th scope="row"{names[0]}>{escaped(row[0])}</th>' + "".join([
        f"<td{kind}{name}>{escaped(cell)}</td>"
        for kind, name, cell in zip(kinds[1:], names[1:], row[1:])]) + "</tr>"
        for row in rows[:_MOST_ROWS]]
    more = len(rows) - len(body)
    rest = paragraph(f"{plural(more, 'more row')} left out; '{elsewhere}' has all of them.", "note")
    return Markup('<div class="scroll" role="region" tabindex="0"><table><thead><tr>'
                  f"{top}</tr></thead><tbody>\n" + "\n".join(body) + "</tbody></table></div>"
                  + (rest if more else ""))

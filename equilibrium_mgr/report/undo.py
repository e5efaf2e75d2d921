"""What `undo` and `cancel` answer: what it costs, and what is not restored."""
from __future__ import annotations

from typing import Dict, List, Mapping, Optional, Sequence, Tuple

from ..drain.drain_list import DrainList
from ..plan.kinds import CANCEL
from ..runtime.formatting import (
    format_bytes, format_duration, format_percent, named, plural, wrap)
from ..snapshot.model import Snapshot
from ..undo.undo_plan import DRAINED, Obstacle, UndoResult
from .command_answer import CommandAnswer
from .table import Row

#: PGs, and OSDs, that a group of what is not restored names.
_MOST_NAMES = 3


def report_undo(kind: str, title: str, name: Optional[str], stopped: Optional[str], dry_run: bool,
                result: UndoResult, snapshot: Snapshot, drains: DrainList, unknown: Optional[str],
                age_seconds: float) -> CommandAnswer:
    """The answer; in JSON bytes are bytes.

    `kind`: of plan/kinds.py. `title`: what is taken back. `name`: of the plan that does it, None
    where none is executed. `stopped`: the plan whose execution was stopped for it. `result`: its
    plan with figures, where it changes anything. `unknown`: what of it the log has dropped, as a
    clause. `snapshot`: that the figures are of, at a look so many seconds ago.
    """
    plan = result.plan
    lines = [f"the execution of plan '{stopped}' was stopped"] if stopped else []
    begin = f"{name}: " if name else "would do this: " if dry_run else ""
    lines += wrap("", f"{begin}takes back {title}: {_parts(kind, result)}" if plan.changes else (
        "nothing waits to be moved" if kind == CANCEL else "nothing is left to be taken back")
        + f" of {title}", 0)
    classes: List[Row] = [{
        "device_class": name_of_class, "max_utilization": before.max,
        "fullest_osd": before.fullest_osd,
        "planned_max_utilization": plan.after.classes[name_of_class].max,
        "planned_fullest_osd": plan.after.classes[name_of_class].fullest_osd}
        for name_of_class, before in sorted(plan.before.classes.items())
        if name_of_class in plan.after.classes]
    for row in classes if plan.moves else ():   # what data that moves back leads to
        highest, after = row["max_utilization"], row["planned_max_utilization"]
        is_near = after > max(highest, snapshot.nearfull_ratio)
        lines += wrap("highest:", f"{format_percent(highest)}% -> {'up to ' if is_near else ''}"
                      f"{format_percent(after)}% (osd.{row['planned_fullest_osd']}, class"
                      f" {row['device_class']})" + (
                          ", above nearfull: what is left for an OSD that is nearfull by then is"
                          " left out" if is_near else ""))
    if result.not_begun or result.under_way:   # of when these are, and what becomes of the rest
        rest = ("what has begun to be copied since then goes on" if kind == CANCEL else
                "what has arrived since then moves back, within all limits")
        lines += wrap("looked at:", f"{format_duration(age_seconds)} ago; {rest}")
    if unknown:
        lines += wrap("", unknown, 0)
    if name:
        lines += ["'ceph equilibrium status' shows how far it is",
                  f"'ceph equilibrium rm {name}' stops it"]
    return CommandAnswer({
        "plan": name, "kind": kind, "of": title,
        "state": "dry-run" if dry_run else "executing" if name else "completed",
        "stopped_plan": stopped, "pgs": len(plan.changes), "shards": len(plan.moves),
        "bytes": plan.bytes, "not_begun_pgs": result.not_begun,
        "under_way_pgs": result.under_way, "classes": classes, "unknown": unknown,
        "osdmap_epoch": snapshot.epoch, "age_seconds": round(age_seconds, 3),
        "not_restored": [{"pgid": pgid, "reason": reason, "osd": reason.osd,
                          "action": _command([reason], drains.names) or None}
                         for pgid, reason in result.not_restored]},
        "\n".join(lines + _not_restored(result, drains)))


def _parts(kind: str, result: UndoResult) -> str:
    """What becomes of the PGs that are taken back."""
    plan = result.plan
    arrived = sum(change.shards > 0 for change in plan.changes)
    items = len(plan.changes) - result.not_begun - result.under_way - arrived
    parts = []
    if result.not_begun:
        at_most = "at most " if kind == CANCEL else ""
        stay = "stays where it is" if result.not_begun == 1 else "stay where they are"
        parts.append(f"{at_most}{plural(result.not_begun, 'PG')} of which nothing has been copied"
                     f" yet {stay}")
    if result.under_way:
        are = "is" if result.under_way == 1 else "are"
        parts.append(f"{plural(result.under_way, 'PG')} that {are} being copied will not arrive")
    if arrived:
        parts.append(f"{plural(arrived, 'PG')} {'moves' if arrived == 1 else 'move'} back:"
                     f" {plural(len(plan.moves), 'shard')}, {format_bytes(plan.bytes)}")
    if items:
        parts.append(f"{plural(items, 'PG')} {'gets' if items == 1 else 'get'} the upmap items of"
                     " before")
    if not arrived:
        parts.append("no data moves")
    return "; ".join(parts)


def drained_again(drains: DrainList) -> str:
    """Why nothing is taken back while a drain runs, and what ends it."""
    names, is_one = sorted(drains.by_name()), len(drains.osds) == 1
    return (f"{named(names, _MOST_NAMES)} {'is' if is_one else 'are'} being drained and would be"
            f" emptied again; run 'ceph equilibrium drain rm {' '.join(names)}' first")


def _not_restored(result: UndoResult, drains: DrainList) -> List[str]:
    """The PGs that are left as they are, by the reason, with the command that lets each group."""
    groups: Dict[Tuple[str, str], List[Tuple[str, Obstacle]]] = {}
    for pgid, reason in result.not_restored:
        groups.setdefault((reason, reason.command), []).append((pgid, reason))
    lines = [f"not restored: {plural(len(result.not_restored), 'PG')}"] if groups else []
    for (text, _), rows in sorted(groups.items(), key=lambda group: -len(group[1])):
        osds = sorted({why.osd for _, why in rows if why.osd is not None})
        said = text if not osds else (
            f"{text} ({named([f'osd.{osd}' for osd in osds], _MOST_NAMES)})")
        command = _command([why for _, why in rows], drains.names)
        lines += wrap(f"  {plural(len(rows), 'PG')}:",
                      f"{said}: {named([row[0] for row in rows], _MOST_NAMES)}"
                      + (f"; '{command}' lets {'it' if len(rows) == 1 else 'them'}" if command
                         else ""))
    return lines


def _command(reasons: Sequence[Obstacle], names: Mapping[int, str]) -> str:
    """The whole command that lets PGs of one reason be restored; empty for none."""
    osds = sorted({reason.osd for reason in reasons if reason.osd is not None})
    words = sorted({names.get(osd, str(osd)) for osd in osds}) if reasons[0] == DRAINED else [
        str(osd) for osd in osds]
    return " ".join([reasons[0].command, *words]) if reasons[0].command else ""

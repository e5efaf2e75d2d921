"""`drain ls`: the OSDs that are being drained, how far that is, and what cannot leave them.

What `freeze` answers: how much can be pinned, and what cannot and why.

What `undo` and `cancel` answer: what it costs, and what is not restored.
"""
from __future__ import annotations

from typing import Any, Dict, FrozenSet, List, Mapping, Optional, Sequence

from ..control.status import BalancerStatus
from ..drain.drain_list import DrainList
from ..drain.status import DrainStatus
from ..freeze.freeze import Freeze
from ..observation.cluster_view import BLOCKED, WAITING
from ..plan.model import CANCEL, StuckShards
from ..runtime.formatting import (
    PINS, format_bytes, format_duration, format_percent, format_time, named, named_osds,
    pasted, plural, wrap)
from ..runtime.time_slice import grouped
from ..settings import Settings
from ..snapshot import reason_codes as codes
from ..snapshot.model import Snapshot
from ..undo.undo_plan import DRAINED, Obstacle, UndoResult
from .answer import CommandAnswer, Row, render_table
from .explain.advice import state_action
from .explain.figures import excluding_option


NONE_DRAINED = "no OSD is being drained; 'ceph equilibrium drain add <osd>' empties one"


def drain_list(loop: BalancerStatus, settings: Settings, now: float,
               weighted: FrozenSet[int] = frozenset()) -> CommandAnswer:
    """The list, from what the loop has published; `now` in seconds since the epoch, `weighted`:
    OSDs with a CRUSH weight."""
    status, view = loop.drains, loop.view
    rate = view.rates.ours_now.per_second if view is not None else 0.0
    rows: List[Dict[str, Any]] = []
    for osd, name in sorted(status.drains.names.items()):
        there = status.remaining.get(osd) if osd not in status.down else None
        is_empty, safe = there is not None and not there.shards, status.is_safe(osd)
        rows.append({
            "osd": osd, "given_as": name, "shards": None if there is None else there.shards,
            "bytes": None if there is None else there.bytes,
            "leaving_shards": None if there is None else there.leaving,
            "stuck": [] if is_empty else [{
                "code": one.code, "shards": one.shards, "bytes": one.bytes,
                "example_pg": one.example, "reason": codes.REASONS[one.code].stuck,
                "action": stuck_action(one, settings)}
                for one in status.stuck if one.osd == osd],
            "safe_to_stop": safe,
            "purge_moves_data": osd in weighted if safe else None})
    left = sum(row["bytes"] or 0 for row in rows)
    progress, blocked = loop.progress, is_blocked(loop)
    # the time left that `status` has; None where it is not known, or nothing is sent
    seconds = None if progress is None or progress.name or status.drains.is_paused or blocked or (
        not left) else progress.eta_seconds(now)
    data: Dict[str, Any] = {
        "osds": rows, "paused": status.drains.is_paused, "bytes": left,
        "shards": sum(row["shards"] or 0 for row in rows),
        "bytes_per_second": rate or None, "eta_seconds": seconds,
        "waits_for_plan": (progress.name or None) if (
            left and status.drains.is_running and progress is not None) else None,
        "state": loop.state, "reason": loop.reason,
        "action": state_action(loop, view, settings, now),
        "safe_to_stop": bool(rows) and all(row["safe_to_stop"] is True for row in rows),
        "not_safe_reason": status.not_safe_reason,
        "osdmap_epoch": view.snapshot.epoch if view is not None else None,
        "snapshot_age_seconds": (
            max(0.0, now - view.snapshot.taken_at) if view is not None else None),
        "notes": [{"at": at, "note": note} for at, note in status.drains.notes]}
    return CommandAnswer(data, _screen(data, status, blocked))


def is_blocked(status: BalancerStatus) -> bool:
    """True where nothing that drains is sent for now, for a reason that the state has."""
    return status.drains.drains.is_running and status.state in (BLOCKED, WAITING)


def stuck_action(one: StuckShards, settings: Settings) -> str:
    """What lets the shards leave."""
    return codes.action(one.code, {"osd": one.osd, "option": excluding_option(settings)
                             if one.code == codes.OSD_EXCLUDED else None})


_PURGE = ("'ceph osd purge' takes the CRUSH weight away as well, and Ceph then moves data of other"
          " OSDs again. These commands let it move nothing:")


def _screen(data: Dict[str, Any], status: DrainStatus, blocked: bool) -> str:
    rows: List[Dict[str, Any]] = data["osds"]
    notes = [line for note in data["notes"]
             for line in wrap("", f"{format_time(note['at'])} UTC: {note['note']}", 0)]
    if not rows:
        return "\n".join([NONE_DRAINED, *notes])
    cells = []
    for row in rows:
        stuck, safe = sum(one["shards"] for one in row["stuck"]), row["safe_to_stop"]
        cells.append((
            f"osd.{row['osd']}", row["given_as"],
            "" if row["shards"] is None else str(row["shards"]),
            "" if row["bytes"] is None else format_bytes(row["bytes"]),
            "" if row["leaving_shards"] is None else str(row["leaving_shards"]),
            "" if row["shards"] is None and not stuck else str(stuck),
            "" if safe is None else "yes" if safe else "no"))
    lines = [render_table("OSD<|GIVEN AS<|SHARDS|SIZE|LEAVING|STUCK|SAFE TO STOP", cells), ""]
    if blocked:   # what holds everything up, and what to do about it
        lines += [*wrap("", f"{data['state']}: {data['reason']}", 0),
                  *wrap("do: ", str(data["action"]), 4)]
    summary = drain_sentence(status, data["eta_seconds"])
    if data["paused"]:
        summary = (f"paused by 'ceph equilibrium off': {plural(data['shards'], 'shard')} left;"
                   " 'ceph equilibrium on' or 'ceph equilibrium drain add' goes on"
                   + (f"; {status.down_sentence}" if status.down else ""))
    lines += wrap("", summary, 0)
    plan = data["waits_for_plan"]
    lines += wrap("", f"it goes on once plan '{plan}' is done; 'ceph equilibrium rm {plan}'"
                  " stops that", 0) if plan is not None else ()
    weights = [f"ceph osd crush reweight osd.{row['osd']} 0" for row in rows
               if row["purge_moves_data"]]
    if weights:
        lines += [*wrap("", _PURGE, 0), *pasted([
            "ceph osd set norebalance", *weights, *PINS, "ceph osd unset norebalance"])]
    by_code = grouped((one["code"], one) for row in rows for one in row["stuck"])
    for _, found in sorted(by_code.items()):
        shards, size = (sum(one[key] for one in found) for key in ("shards", "bytes"))
        lines += wrap("", f"{plural(shards, 'shard')} ({format_bytes(size)}) cannot leave:"
                      f" {found[0]['reason']}, such as pg {found[0]['example_pg']};"
                      f" {found[0]['action']}", 0)
    if data["osdmap_epoch"] is not None:
        lines.append(f"placement of osdmap e{data['osdmap_epoch']},"
                     f" {format_duration(data['snapshot_age_seconds'])} old")
    return "\n".join(lines + notes)


def drain_sentence(status: DrainStatus, eta_seconds: Optional[float] = None) -> str:
    """How far the drains are, as a clause for `status` and `drain ls`."""
    left = status.known_left
    if not status.is_known:
        return f"{status.named}: not looked at yet"
    shards, check = sum(one.shards for one in left), status.stop_check
    if shards:
        text = (f"{status.named}: {plural(shards, 'shard')},"
                f" {format_bytes(sum(one.bytes for one in left))} left")
        stuck = min(shards, sum(one.shards for one in status.stuck))
        text += f", of which {stuck} cannot leave" if stuck else ""
        text += f", about {format_duration(eta_seconds)}" if eta_seconds else ""
        return text + (f"; {status.down_sentence}" if status.down else "")
    if status.down:
        return status.down_sentence
    if check is None or status.is_old:
        return f"{status.named}: no shard left; {status.not_safe_reason}"
    return f"{status.named}: no shard left, " + (
        "safe to stop" if check.is_safe else f"not safe to stop: {check.reason}")


def drains_json(status: DrainStatus) -> Dict[str, Any]:
    """The drains in the JSON of `status`."""
    return {"osds": sorted(status.drains.osds), "paused": status.drains.is_paused,
            "shards": status.left_shards,
            "bytes": sum(one.bytes for one in status.remaining.values()),
            "safe_to_stop": bool(status.drains.names) and all(
                status.is_safe(osd) for osd in status.drains.names),
            "sentence": "" if not status.drains.names else (
                f"{status.named}: paused by 'ceph equilibrium off'" if status.drains.is_paused
                else drain_sentence(status))}


def report_freeze(name: Optional[str], dry_run: bool, found: Freeze, snapshot: Snapshot,
                  goes_on: bool, draining: FrozenSet[int]) -> CommandAnswer:
    """The answer; in JSON bytes are bytes and ratios run from 0 to 1.

    `name`: of the plan that pins, None where none is executed. `snapshot`: that the pins were found
    in. `goes_on`: automatic balancing is on, which moves data again. `draining`: OSDs that are
    being drained, of drains under way.
    """
    changes = found.plan.changes
    pairs = sum(map(len, snapshot.upmap_items.values()))
    added = sum(len(change.items) - len(snapshot.items_of(change.pgid))
                for change in changes)
    copies = max(1, snapshot.object_copies)
    again = sorted(draining.intersection(
        osd for change in changes for osd in change.gained_by))
    groups: Dict[str, Dict[str, Any]] = {}   # what goes on moving, by reason
    for left in found.unpinned:
        group = groups.setdefault(left.obstacle, {
            "reason_code": left.obstacle.code, "reason": left.obstacle, "shards": 0,
            "bytes": 0, "pgids": []})
        group["shards"] += left.shards
        group["bytes"] += left.bytes
        group["pgids"].append(left.pgid)
    data: Dict[str, Any] = {
        "plan": name,
        "state": "dry-run" if dry_run else "executing" if name else "completed",
        "drained_again_osds": again,
        "osdmap_epoch": snapshot.epoch, "remapped_pgs": found.remapped_pgs,
        "pinned_pgs": len(changes), "shards": found.shards, "bytes": found.bytes,
        "misplaced_ratio": found.copies / copies,
        "planned_misplaced_ratio": (found.copies - found.pinned_copies) / copies,
        "upmap_items": pairs, "planned_upmap_items": pairs + added,
        "unpinned": sorted(groups.values(),
                           key=lambda group: (-group["shards"], group["reason"]))}
    if not found.remapped_pgs:
        return CommandAnswer(data, "nothing to freeze: no PG is remapped")
    what = (f"{plural(found.shards, 'shard')} of {plural(len(changes), 'PG')},"
            f" {format_bytes(found.bytes)}, to where they are")
    lines = wrap("", f"nothing of {plural(found.remapped_pgs, 'remapped PG')} can be pinned, so no"
                 " plan is made: they move on, but for what 'ceph osd set norebalance' holds up"
                 if not changes else f"would pin {what}" if name is None
                 else f"{name}: pins {what}", 0)
    lines += [*wrap("misplaced:", f"{format_percent(data['misplaced_ratio'])}% ->"
                    f" {format_percent(data['planned_misplaced_ratio'])}%"),
              *wrap("upmap items:", f"{pairs} -> {pairs + added}")]
    for group in data["unpinned"]:
        lines += wrap("go on:", f"{plural(group['shards'], 'shard')} of"
                      f" {plural(len(group['pgids']), 'PG')}, {format_bytes(group['bytes'])}:"
                      f" {group['reason']}")
    osds = f"osd.{again[0]} is" if len(again) == 1 else f"{len(again)} OSDs are"
    lines += [line for holds, text in (
        (goes_on and changes, "automatic balancing is on: it goes on from there, and moves what it"
         " has to step by step, within its limits ('ceph equilibrium off' before 'freeze' keeps"
         " everything where it is)"),
        (again, f"{osds} being drained: what is pinned there leaves again, and is copied from the"
         " beginning ('ceph equilibrium off' before 'freeze' pauses drains)"))
              if holds for line in wrap("then:", text)]
    lines += ["'ceph equilibrium status' shows how far it is"] * (name is not None)
    return CommandAnswer(data, "\n".join(lines))


#: PGs, and OSDs, that a group of what is not restored names.
_MOST_NAMES = 3


def report_undo(kind: str, title: str, name: Optional[str], stopped: Optional[str], dry_run: bool,
                result: UndoResult, snapshot: Snapshot, drains: DrainList, unknown: Optional[str],
                age_seconds: float) -> CommandAnswer:
    """The answer; in JSON bytes are bytes.

    `kind`: of plan/model.py. `title`: what is taken back. `name`: of the plan that does it, None
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
        "osdmap_epoch": snapshot.epoch, "age_seconds": age_seconds,
        "not_restored": [{"pgid": pgid, "reason": reason, "osd": reason.osd,
                          "action": _command([reason], drains.names) or None}
                         for pgid, reason in result.not_restored]},
        "\n".join(lines + _not_restored(result, drains)))


def _parts(kind: str, result: UndoResult) -> str:
    """What becomes of the PGs that are taken back."""
    plan = result.plan
    arrived = sum(change.shards > 0 for change in plan.changes)
    items = len(plan.changes) - result.not_begun - result.under_way - arrived
    return "; ".join([clause for count, clause in (
        (result.not_begun, f"{'at most ' if kind == CANCEL else ''}{plural(result.not_begun, 'PG')}"
         " of which nothing has been copied yet"
         f" {'stays where it is' if result.not_begun == 1 else 'stay where they are'}"),
        (result.under_way, f"{plural(result.under_way, 'PG')} that"
         f" {'is' if result.under_way == 1 else 'are'} being copied will not arrive"),
        (arrived, f"{plural(arrived, 'PG')} {'moves' if arrived == 1 else 'move'} back:"
         f" {plural(len(plan.moves), 'shard')}, {format_bytes(plan.bytes)}"),
        (items, f"{plural(items, 'PG')} {'gets' if items == 1 else 'get'} the upmap items of"
         " before"),
        (not arrived, "no data moves")) if count])


def _not_restored(result: UndoResult, drains: DrainList) -> List[str]:
    """The PGs that are left as they are, by the reason, with the command that lets each group."""
    groups = grouped(((reason, reason.command), (pgid, reason))
                     for pgid, reason in result.not_restored)
    lines = [f"not restored: {plural(len(result.not_restored), 'PG')}"] if groups else []
    for (text, _), rows in sorted(groups.items(), key=lambda group: -len(group[1])):
        osds = sorted({why.osd for _, why in rows if why.osd is not None})
        said = text if not osds else (
            f"{text} ({named_osds(osds, _MOST_NAMES)})")
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

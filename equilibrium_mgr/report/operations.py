"""What `drain ls`, `freeze`, `undo` and `cancel` answer.

`drain ls`: the OSDs that are being drained, how far they are, and the shards that cannot leave.
`freeze`: how much it can pin, and why it cannot pin the rest. `undo` and `cancel`: the costs, and
the PGs that they do not restore.
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
from .answer import CommandAnswer, Row, amount, largest_groups, render_table
from .cluster.cluster_tables import Columns, cells_of, class_figures, format_osd
from .explain.advice import state_action
from .explain.figures import excluding_option


NONE_DRAINED = "no OSD is being drained; 'ceph equilibrium drain add <osd>' empties one"


def drain_list(loop: BalancerStatus, settings: Settings, now: float,
               weighted: FrozenSet[int] = frozenset()) -> CommandAnswer:
    """Returns the list from the published status of the loop.

    `now`: seconds since the epoch. `weighted`: OSDs with a CRUSH weight.
    """
    status = loop.drains
    view = loop.view
    drains = status.drains
    progress = loop.progress
    rows = [_drain_row(osd, status, settings, weighted) for osd in sorted(drains.names)]
    left = sum([one.bytes for one in status.known_left])
    blocked = is_blocked(loop)
    epoch = age = seconds = plan = None
    if view is not None:
        epoch = view.snapshot.epoch
        age = max(0.0, now - view.snapshot.taken_at)
    if progress is not None and left and not drains.is_paused:
        if progress.name:
            plan = progress.name
        elif not blocked:
            seconds = progress.eta_seconds(now)
    data: Dict[str, Any] = {
        "osds": rows,
        "paused": drains.is_paused,
        "bytes": left,
        "shards": sum([one.shards for one in status.known_left]),
        "eta_seconds": seconds,
        "waits_for_plan": plan,
        "state": loop.state,
        "reason": loop.reason,
        "action": state_action(loop, view, settings, now),
        "safe_to_stop": status.are_safe,
        "not_safe_reason": status.not_safe_reason,
        "osdmap_epoch": epoch,
        "snapshot_age_seconds": age,
        "notes": [{"at": at, "note": note} for at, note in drains.notes]}
    return CommandAnswer(data, _drain_screen(data, loop, blocked))


def _drain_row(osd: int, status: DrainStatus, settings: Settings, weighted: FrozenSet[int]) -> Row:
    """Returns an OSD of the list; its figures are None if it is down or has not been seen yet."""
    shards = size = leaving = None
    if osd in status.remaining and osd not in status.down:
        shards, size, leaving = status.remaining[osd]
    # the last plan may be older than the snapshot, and an empty OSD has no stuck shard
    stuck = [one for one in status.stuck if one.osd == osd and shards != 0]
    stuck_shards: Optional[int] = sum(one.shards for one in stuck)
    if shards is None:
        stuck_shards = stuck_shards or None
    safe = status.is_safe(osd)
    return {
        "osd": osd,
        "given_as": status.drains.names[osd],
        "shards": shards,
        "bytes": size,
        "leaving_shards": leaving,
        "stuck_shards": stuck_shards,
        "stuck": [_stuck_json(one, settings) for one in stuck],
        "safe_to_stop": safe,
        "purge_moves_data": osd in weighted if safe else None}


def _stuck_json(one: StuckShards, settings: Settings) -> Row:
    return {
        "code": one.code,
        "shards": one.shards,
        "bytes": one.bytes,
        "example_pg": one.example,
        "reason": codes.REASONS[one.code].stuck,
        "action": stuck_action(one, settings)}


def is_blocked(status: BalancerStatus) -> bool:
    """Returns True if the reason of the state keeps all shards of the drains from being sent."""
    return status.drains.drains.is_running and status.state in (BLOCKED, WAITING)


def stuck_action(one: StuckShards, settings: Settings) -> str:
    """Returns what lets the shards leave."""
    option = None
    if one.code == codes.OSD_EXCLUDED:
        option = excluding_option(settings)
    return codes.action(one.code, {"osd": one.osd, "option": option})


_PURGE = ("'ceph osd purge' takes the CRUSH weight away as well, and Ceph then moves data of other"
          " OSDs again. These commands let it move nothing:")
_PURGE_ALONE = "stop the OSDs that are safe to stop, and take them away by 'ceph osd purge'"
_PURGE_HELD = (f"{_PURGE_ALONE}. Ceph then wants data of other OSDs elsewhere; equilibrium keeps it"
               " where it is, except what moves in the first half minute (hold_placement)")
_PURGE_LATER = "do not purge yet: at present nothing keeps data of other OSDs where it is"
_SAFE = {True: "yes", False: "no"}
_HEAD = "OSD<|GIVEN AS<|SHARDS|SIZE|LEAVING|STUCK|SAFE TO STOP"
_COLUMNS: Columns = {
    "osd": format_osd,
    "given_as": str,
    "shards": str,
    "bytes": format_bytes,
    "leaving_shards": str,
    "stuck_shards": str,
    "safe_to_stop": _SAFE.__getitem__}


def _drain_screen(data: Row, loop: BalancerStatus, blocked: bool) -> str:
    rows: List[Row] = data["osds"]
    notes: List[str] = []
    for note in data["notes"]:
        notes += _sentence(f"{format_time(note['at'])} UTC: {note['note']}")
    if not rows:
        return "\n".join([NONE_DRAINED, *notes])
    lines = [render_table(_HEAD, cells_of(rows, _COLUMNS)), ""]
    if blocked:
        lines += _sentence(f"{data['state']}: {data['reason']}")
        lines += wrap("do: ", str(data["action"]), 4)
    lines += _sentence(drain_sentence(loop.drains, data["eta_seconds"]))
    if data["paused"]:
        lines += _sentence("paused by 'ceph equilibrium off': 'ceph equilibrium on' or 'ceph"
                           " equilibrium drain add' goes on")
    plan = data["waits_for_plan"]
    if plan is not None:
        lines += _sentence(f"it goes on once plan '{plan}' is done; 'ceph equilibrium rm {plan}'"
                           " stops that")
    lines += _purge_lines(rows, loop) + _stuck_lines(rows)
    if data["osdmap_epoch"] is not None:
        lines.append(f"placement of osdmap e{data['osdmap_epoch']},"
                     f" {format_duration(data['snapshot_age_seconds'])} old")
    return "\n".join(lines + notes)


def _sentence(text: str) -> List[str]:
    """Returns the lines of a sentence without a label."""
    return wrap("", text, 0)


def _purge_lines(rows: Sequence[Row], loop: BalancerStatus) -> List[str]:
    """Returns how to purge the OSDs that are empty, so that next to nothing moves."""
    weights = [f"ceph osd crush reweight osd.{row['osd']} 0" for row in rows
               if row["purge_moves_data"]]
    if not any(row["safe_to_stop"] for row in rows):
        return []
    if loop.holds_placement and loop.steering_at is not None:
        return _sentence(_PURGE_LATER)
    if not weights:
        return _sentence(f"{_PURGE_ALONE}: that moves no data")
    if loop.plan_name:   # `freeze` is refused, and steering waits
        return _sentence(_PURGE_LATER)
    if loop.holds_placement:
        return _sentence(_PURGE_HELD)
    commands = ["ceph osd set norebalance", *weights, *PINS, "ceph osd unset norebalance"]
    return _sentence(_PURGE) + pasted(commands)


def _stuck_lines(rows: Sequence[Row]) -> List[str]:
    """Returns why shards cannot leave; one sentence for each reason."""
    lines: List[str] = []
    by_code = grouped((one["code"], one) for row in rows for one in row["stuck"])
    for _, found in sorted(by_code.items()):
        shards = sum(one["shards"] for one in found)
        size = sum(one["bytes"] for one in found)
        first = found[0]
        lines += _sentence(f"{plural(shards, 'shard')} ({format_bytes(size)}) cannot leave:"
                           f" {first['reason']}, such as pg {first['example_pg']};"
                           f" {first['action']}")
    return lines


def drain_sentence(status: DrainStatus, eta_seconds: Optional[float] = None) -> str:
    """Returns how far the drains are, as a clause for `status` and `drain ls`."""
    name = status.named
    left = status.known_left
    check = status.stop_check
    if not status.is_known:
        return f"{name}: not looked at yet"
    shards = sum(one.shards for one in left)
    if shards:
        text = f"{name}: {amount(shards, sum(one.bytes for one in left))} left"
        stuck = min(shards, sum(one.shards for one in status.stuck))
        if stuck:
            text += f", of which {stuck} cannot leave"
        if eta_seconds:
            text += f", about {format_duration(eta_seconds)}"
        if status.down:
            text += f"; {status.down_sentence}"
        return text
    if status.down:
        return status.down_sentence
    if check is None or status.is_old:
        return f"{name}: no shard left; {status.not_safe_reason}"
    if check.is_safe:
        return f"{name}: no shard left, safe to stop"
    return f"{name}: no shard left, not safe to stop: {check.reason}"


def drains_json(status: DrainStatus) -> Row:
    """Returns the drains in the JSON of `status`."""
    drains = status.drains
    sentence = ""
    size = sum(one.bytes for one in status.remaining.values())
    if drains.is_paused:
        sentence = f"{status.named}: paused by 'ceph equilibrium off'"
        if status.left_shards:
            sentence += f"; {amount(status.left_shards, size)} left"
    elif drains.names:
        sentence = drain_sentence(status)
    return {
        "osds": sorted(drains.osds),
        "paused": drains.is_paused,
        "shards": status.left_shards,
        "bytes": size,
        "safe_to_stop": status.are_safe,
        "sentence": sentence}


def _outcome(name: Optional[str], dry_run: bool) -> str:
    """Returns the `state` of an answer. `name`: the plan that is executed; None: nothing to do."""
    if dry_run:
        return "dry-run"
    return "executing" if name else "completed"


def report_freeze(name: Optional[str], dry_run: bool, found: Freeze, snapshot: Snapshot,
                  goes_on: bool, draining: FrozenSet[int]) -> CommandAnswer:
    """Returns the answer; in JSON ratios run from 0 to 1.

    `name`: the plan that pins; None if none is executed. `snapshot`: the cluster whose PGs
    are pinned. `goes_on`: automatic balancing is on, which moves data again. `draining`: the
    OSDs of drains that are not paused.
    """
    changes = found.plan.changes
    copies = max(1, snapshot.object_copies)
    pairs = sum(map(len, snapshot.upmap_items.values()))
    added = sum(len(change.items) - len(snapshot.items_of(change.pgid)) for change in changes)
    gained: FrozenSet[int] = frozenset().union(*[change.gained_by for change in changes])
    data: Dict[str, Any] = {
        "plan": name,
        "state": _outcome(name, dry_run),
        "drained_again_osds": sorted(draining & gained),
        "osdmap_epoch": snapshot.epoch,
        "pinned_pgs": len(changes),
        "shards": found.shards,
        "bytes": found.bytes,
        "misplaced_ratio": found.copies / copies,
        "planned_misplaced_ratio": (found.copies - found.pinned_copies) / copies,
        "upmap_items": pairs,
        "planned_upmap_items": pairs + added,
        "unpinned": _unpinned_json(found)}
    return CommandAnswer(data, _freeze_screen(data, found, goes_on))


def _unpinned_json(found: Freeze) -> List[Row]:
    """Returns the shards that go on moving, by reason; the largest group first."""
    rows = []
    groups = grouped((one.obstacle, one) for one in found.unpinned)
    for obstacle, left in groups.items():
        row = {
            "reason_code": obstacle.code,
            "reason": obstacle,
            "shards": sum(one.shards for one in left),
            "bytes": sum(one.bytes for one in left),
            "pgids": [one.pgid for one in left]}
        rows.append(row)
    return sorted(rows, key=lambda group: (-group["shards"], group["reason"]))


def _freeze_screen(data: Row, found: Freeze, goes_on: bool) -> str:
    name = data["plan"]
    again = data["drained_again_osds"]
    remapped = found.remapped_pgs
    if not remapped:
        return "nothing to freeze: no PG is remapped"
    pinned = len(found.plan.changes)
    what = (f"{plural(found.shards, 'shard')} of {plural(pinned, 'PG')},"
            f" {format_bytes(found.bytes)}, to where they are")
    first = f"{name}: pins {what}"
    if name is None:
        first = f"would pin {what}"
    if not pinned:
        first = (f"nothing of {plural(remapped, 'remapped PG')} can be pinned, so no plan is made:"
                 " they move on, except those that 'ceph osd set norebalance' holds up")
    lines = _sentence(first)
    misplaced = data["misplaced_ratio"]
    after = data["planned_misplaced_ratio"]
    lines += wrap("misplaced:", f"{format_percent(misplaced)}% -> {format_percent(after)}%")
    lines += wrap("upmap items:", f"{data['upmap_items']} -> {data['planned_upmap_items']}")
    for group in data["unpinned"]:
        shards = plural(group["shards"], "shard")
        pgs = plural(len(group["pgids"]), "PG")
        lines += wrap("go on:", f"{shards} of {pgs}, {format_bytes(group['bytes'])}:"
                      f" {group['reason']}")
    if goes_on and pinned:
        lines += wrap("then:", "automatic balancing is on: it goes on from there, and moves what it"
                      " has to step by step, within its limits ('ceph equilibrium off' before"
                      " 'freeze' keeps everything where it is)")
    if again:
        lines += wrap("then:", f"what is pinned on {named_osds(again, _MOST_NAMES)} leaves again,"
                      " to drain it, and is copied from the beginning ('ceph equilibrium off'"
                      " before 'freeze' pauses drains)")
    if name is not None:
        lines.append("'ceph equilibrium status' shows how far it is")
    return "\n".join(lines)


#: PGs, and OSDs, that a group of PGs that are not restored names.
_MOST_NAMES = 3


def report_undo(kind: str, title: str, name: Optional[str], stopped: Optional[str], dry_run: bool,
                result: UndoResult, snapshot: Snapshot, drains: DrainList, unknown: Optional[str],
                age_seconds: float) -> CommandAnswer:
    """Returns the answer.

    `kind`: of plan/model.py. `title`: the moves that are taken back. `name`: the plan that does it;
    None if none is executed. `stopped`: the plan whose execution was stopped for it. `result`: its
    plan with figures, if it changes anything. `unknown`: a clause about entries that the log has
    dropped. `snapshot`: the cluster that the figures are of, `age_seconds` old.
    """
    plan = result.plan
    data: Dict[str, Any] = {
        "plan": name,
        "kind": kind,
        "of": title,
        "state": _outcome(name, dry_run),
        "stopped_plan": stopped,
        "pgs": len(plan.changes),
        "shards": len(plan.moves),
        "bytes": plan.bytes,
        "not_begun_pgs": result.not_begun,
        "under_way_pgs": result.under_way,
        "classes": _undo_classes(result),
        "unknown": unknown,
        "osdmap_epoch": snapshot.epoch,
        "age_seconds": age_seconds,
        "not_restored": [_not_restored_json(pgid, reason, drains)
                         for pgid, reason in result.not_restored]}
    lines = []
    if stopped:
        lines.append(f"the execution of plan '{stopped}' was stopped")
    lines += _sentence(_undo_text(data, result))
    if plan.moves:
        for row in data["classes"]:
            lines += wrap("highest:", _highest_text(row, snapshot.nearfull_ratio))
    if result.not_begun or result.under_way:   # the figures change until they are taken back
        rest = "what has arrived since then moves back, within all limits"
        if kind == CANCEL:
            rest = "what has begun to be copied since then goes on"
        lines += wrap("looked at:", f"{format_duration(age_seconds)} ago; {rest}")
    if unknown:
        lines += _sentence(unknown)
    if name:
        lines += ["'ceph equilibrium status' shows how far it is",
                  f"'ceph equilibrium rm {name}' stops it"]
    return CommandAnswer(data, "\n".join(lines + _not_restored_lines(result, drains)))


def _undo_text(data: Row, result: UndoResult) -> str:
    """Returns what the plan takes back, and what happens to its PGs."""
    title = data["of"]
    if not data["pgs"]:
        if data["kind"] == CANCEL:
            return f"nothing waits to be moved of {title}"
        return f"nothing is left to be taken back of {title}"
    text = f"takes back {title}: {_parts(data['kind'], result)}"
    if data["plan"]:
        return f"{data['plan']}: {text}"
    if data["state"] == "dry-run":
        return f"would do this: {text}"
    return text


def _undo_classes(result: UndoResult) -> List[Row]:
    before = result.plan.before.classes
    after = result.plan.after.classes
    return [{"device_class": name,
             **class_figures("", before[name]),
             **class_figures("planned_", after[name])}
            for name in sorted(before.keys() & after.keys())]


def _highest_text(row: Row, nearfull: float) -> str:
    """Returns how full a class gets by the data that moves back."""
    before = row["max_utilization"]
    after = row["planned_max_utilization"]
    text = (f"{format_percent(before)}% -> {format_percent(after)}%"
            f" (osd.{row['planned_fullest_osd']}, class {row['device_class']})")
    if after > max(before, nearfull):
        text += (" at most, above nearfull: what is left for an OSD that is nearfull by then is"
                 " left out")
    return text


def _parts(kind: str, result: UndoResult) -> str:
    """Returns what becomes of the PGs that are taken back."""
    moves = result.plan.moves
    changes = result.plan.changes
    size = result.plan.bytes
    not_begun = result.not_begun
    under_way = result.under_way
    arrived = sum(change.shards > 0 for change in changes)
    items = len(changes) - not_begun - under_way - arrived
    clauses = []
    if not_begun:
        most = "at most " if kind == CANCEL else ""
        stay = "stays where it is" if not_begun == 1 else "stay where they are"
        clauses.append(
            f"{most}{plural(not_begun, 'PG')} of which nothing has been copied yet {stay}")
    if under_way:
        pgs = plural(under_way, "PG that is", "PGs that are")
        clauses.append(f"{pgs} being copied will not arrive")
    if arrived:
        clauses.append(f"{plural(arrived, 'PG moves', 'PGs move')} back:"
                       f" {amount(len(moves), size)}")
    if items:
        clauses.append(f"{plural(items, 'PG gets', 'PGs get')} the upmap items of before")
    if not arrived:
        clauses.append("no data moves")
    return "; ".join(clauses)


def _not_restored_json(pgid: str, reason: Obstacle, drains: DrainList) -> Row:
    return {
        "pgid": pgid,
        "reason": reason,
        "osd": reason.osd,
        "action": _command([reason], drains.names) or None}


def _not_restored_lines(result: UndoResult, drains: DrainList) -> List[str]:
    """Returns the PGs that are left as they are, by reason, with the command that lets each group
    be restored; the largest group first."""
    if not result.not_restored:
        return []
    groups = largest_groups(((reason, reason.command), (pgid, reason))
                            for pgid, reason in result.not_restored)
    lines = [f"not restored: {plural(len(result.not_restored), 'PG')}"]
    for (obstacle, _), rows in groups:
        text: str = obstacle
        pgids, reasons = zip(*rows)
        osds = _osds(reasons)
        command = _command(reasons, drains.names)
        if osds:
            text = f"{text} ({named_osds(osds, _MOST_NAMES)})"
        text += f": {named(pgids, _MOST_NAMES)}"
        if command:
            them = "it" if len(rows) == 1 else "them"
            text += f"; '{command}' lets {them}"
        lines += wrap(f"  {plural(len(rows), 'PG')}:", text)
    return lines


def _osds(reasons: Sequence[Obstacle]) -> List[int]:
    return sorted({reason.osd for reason in reasons if reason.osd is not None})


def _command(reasons: Sequence[Obstacle], names: Mapping[int, str]) -> str:
    """Returns the whole command that lets PGs of one reason be restored; empty without one.

    `names`: OSD that is being drained → the name that `drain add` got.
    """
    command = reasons[0].command
    if not command:
        return ""
    osds = _osds(reasons)
    words = [str(osd) for osd in osds]
    if reasons[0] == DRAINED:   # one name may stand for several OSDs
        words = sorted({names.get(osd, str(osd)) for osd in osds})
    return " ".join([command, *words])

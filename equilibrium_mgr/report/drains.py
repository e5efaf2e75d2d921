"""`drain ls`: the OSDs that are being drained, how far that is, and what cannot leave them."""
from __future__ import annotations

from typing import Any, Dict, FrozenSet, List, Optional

from ..control.status import BalancerStatus
from ..drain.status import DrainStatus
from ..observation.states import BLOCKED, WAITING
from ..plan.model import StuckShards
from ..runtime.formatting import (
    format_bytes, format_duration, format_time, plural, wrap)
from ..settings import Settings
from ..snapshot import reason_codes as codes
from ..snapshot.reason_codes import REASONS, action
from .command_answer import CommandAnswer
from .explain.help import state_action
from .table import Column, render_table

NONE_DRAINED = "no OSD is being drained; 'ceph equilibrium drain add <osd>' empties one"
_COLUMNS = (Column("OSD", is_name=True), Column("GIVEN AS", is_name=True), Column("SHARDS"),
            Column("SIZE"), Column("LEAVING"), Column("STUCK"), Column("SAFE TO STOP"))


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
                "example_pg": one.example, "reason": REASONS[one.code].stuck,
                "action": stuck_action(one, settings)}
                for one in status.held if one.osd == osd],
            "cooling_shards": 0 if is_empty else status.cooling(osd), "safe_to_stop": safe,
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
        "waits_for_plan": (
            loop.plan_name if left and status.drains.is_running else None),
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
    return status.drains.drains.is_running and status.state in (BLOCKED, WAITING) and (
        status.reason_code != codes.COOLDOWN)


def stuck_action(one: StuckShards, settings: Settings) -> str:
    """What lets the shards leave."""
    option = "not_buckets" if settings.to_buckets is None else "to_buckets"
    return action(one.code, {"osd": one.osd,
                             **({"option": option} if one.code == codes.OSD_EXCLUDED else {})})


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
    lines = [render_table(_COLUMNS, cells), ""]
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
    lines += wrap("", status.cooling_sentence, 0) if status.cooling_sentence else ()
    commands = [f"  ceph osd crush reweight osd.{row['osd']} 0" for row in rows
                if row["purge_moves_data"]]
    lines += [*wrap("", "'ceph osd purge' takes the CRUSH weight away as well, which moves data"
                    " again. For a purge that moves nothing run these at first, and wait until it"
                    " is safe to stop here again:", 0), *commands] if commands else []
    stuck_by_code: Dict[str, List[Dict[str, Any]]] = {}
    for row in rows:
        for one in row["stuck"]:
            stuck_by_code.setdefault(one["code"], []).append(one)
    for _, found in sorted(stuck_by_code.items()):
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
    left = [one for osd, one in status.remaining.items() if osd not in status.down]
    if not status.is_known:
        return f"{status.named}: not looked at yet"
    shards, check = sum(one.shards for one in left), status.stop_check
    if shards:
        text = (f"{status.named}: {plural(shards, 'shard')},"
                f" {format_bytes(sum(one.bytes for one in left))} left")
        stuck = min(shards, sum(one.shards for one in status.held))
        text += f", of which {stuck} cannot leave" if stuck else ""
        text += f"; {status.down_sentence}" if status.down else ""
        return text + (f", about {format_duration(eta_seconds)}" if eta_seconds else "")
    if status.down:
        return status.down_sentence
    if check is None or status.is_old:
        return f"{status.named}: no shard left; {status.not_safe_reason}"
    return f"{status.named}: no shard left, " + (
        "safe to stop" if check.is_safe else f"not safe to stop: {check.reason}")


def drains_json(status: DrainStatus) -> Dict[str, Any]:
    """The drains in the JSON of `status`."""
    return {"osds": sorted(status.drains.osds), "paused": status.drains.is_paused,
            "shards": sum(one.shards for one in status.remaining.values()),
            "bytes": sum(one.bytes for one in status.remaining.values()),
            "safe_to_stop": bool(status.drains.names) and all(
                status.is_safe(osd) for osd in status.drains.names),
            "stuck_shards": sum(one.shards for one in status.held),
            "sentence": "" if not status.drains.names else (
                f"{status.named}: paused by 'ceph equilibrium off'" if status.drains.is_paused
                else drain_sentence(status))}

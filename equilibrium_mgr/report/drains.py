"""`drain ls`: the OSDs that are being drained, how far that is, and what cannot leave them."""
from __future__ import annotations

from typing import Any, Dict, FrozenSet, List, NamedTuple, Optional, Sequence

from ..control.status import BalancerStatus
from ..drain.status import DrainStatus
from ..observation.cluster_view import ClusterView
from ..observation.states import BLOCKED, WAITING
from ..plan.model import StuckShards
from ..runtime.formatting import (
    format_bytes, format_duration, format_time, plural, wrap)
from ..settings import Settings, default_settings
from ..snapshot import reason_codes as codes
from ..snapshot.reason_codes import REASONS, action
from .command_answer import CommandAnswer
from .explain.help import state_action
from .table import Column, render_table

NONE_DRAINED = "no OSD is being drained; 'ceph equilibrium drain add <osd>' empties one"
_COLUMNS = (Column("OSD", is_name=True), Column("GIVEN AS", is_name=True), Column("SHARDS"),
            Column("SIZE"), Column("LEAVING"), Column("STUCK"), Column("SAFE TO STOP"))


class Loop(NamedTuple):
    """What the list tells of the loop that carries drains out."""

    status: BalancerStatus = BalancerStatus()
    settings: Settings = default_settings()
    now: float = 0.0   # seconds since the epoch
    weighted: FrozenSet[int] = frozenset()   # OSDs with a CRUSH weight


def drain_list(status: DrainStatus, view: Optional[ClusterView],
               loop: Loop = Loop()) -> CommandAnswer:
    """The list, from what the loop has published. `view`: None before the first look."""
    rate = view.rates.ours_now.per_second if view is not None else 0.0
    rows = [_row(osd, name, status, loop)
            for osd, name in sorted(status.drains.names.items())]
    left = sum(row["bytes"] or 0 for row in rows)
    data: Dict[str, Any] = {
        "osds": rows, "paused": status.drains.is_paused, "bytes": left,
        "shards": sum(row["shards"] or 0 for row in rows),
        "bytes_per_second": rate or None,
        "eta_seconds": _eta_seconds(status, loop) if left else None,
        "waits_for_plan": (
            loop.status.plan_name if left and status.drains.is_running else None),
        "state": loop.status.state, "reason": loop.status.reason,
        "action": state_action(loop.status, view, loop.settings, loop.now),
        "safe_to_stop": bool(rows) and all(row["safe_to_stop"] is True for row in rows),
        "not_safe_reason": status.not_safe_reason,
        "osdmap_epoch": view.snapshot.epoch if view is not None else None,
        "snapshot_age_seconds": (
            max(0.0, loop.now - view.snapshot.taken_at) if view is not None else None),
        "notes": [{"at": at, "note": note} for at, note in status.drains.notes]}
    return CommandAnswer(data, _screen(data, status, is_blocked(loop.status)))


def is_blocked(status: BalancerStatus) -> bool:
    """True where nothing that drains is sent for now, for a reason that the state has."""
    return status.drains.drains.is_running and status.state in (BLOCKED, WAITING) and (
        status.reason_code != codes.COOLDOWN)


def _eta_seconds(status: DrainStatus, loop: Loop) -> Optional[float]:
    """The time left that `status` has; None where it is not known, or nothing is sent."""
    progress = loop.status.progress
    if progress is None or progress.name or status.drains.is_paused or is_blocked(loop.status):
        return None
    return progress.eta_seconds(loop.now)


def _row(osd: int, name: str, status: DrainStatus, loop: Loop) -> Dict[str, Any]:
    left = status.remaining.get(osd) if osd not in status.down else None
    is_empty = left is not None and not left.shards
    return {"osd": osd, "given_as": name,
            "shards": None if left is None else left.shards,
            "bytes": None if left is None else left.bytes,
            "leaving_shards": None if left is None else left.leaving,
            "stuck": [] if is_empty else [
                _stuck(one, loop.settings) for one in status.held if one.osd == osd],
            "cooling_shards": 0 if is_empty else status.cooling(osd),
            "safe_to_stop": status.is_safe(osd),
            "purge_moves_data": osd in loop.weighted if status.is_safe(osd) else None}


def _stuck(one: StuckShards, settings: Settings) -> Dict[str, Any]:
    return {"code": one.code, "shards": one.shards, "bytes": one.bytes, "example_pg": one.example,
            "reason": REASONS[one.code].stuck, "action": stuck_action(one, settings)}


def stuck_action(one: StuckShards, settings: Settings) -> str:
    """What lets the shards leave."""
    option = "not_buckets" if settings.to_buckets is None else "to_buckets"
    return action(one.code, {"osd": one.osd,
                             **({"option": option} if one.code == codes.OSD_EXCLUDED else {})})


def _screen(data: Dict[str, Any], status: DrainStatus, blocked: bool) -> str:
    rows: List[Dict[str, Any]] = data["osds"]
    lines = [render_table(_COLUMNS, [_cells(row) for row in rows])] if rows else [NONE_DRAINED]
    if rows:
        lines += ["", *_obstacle(data if blocked else {}), *wrap("", _summary(data, status), 0)]
        plan = data["waits_for_plan"]
        lines += wrap("", f"it goes on once plan '{plan}' is done; 'ceph equilibrium rm {plan}'"
                      " stops that", 0) if plan is not None else ()
        lines += wrap("", status.cooling_sentence, 0) if status.cooling_sentence else ()
    commands = [f"  ceph osd crush reweight osd.{row['osd']} 0" for row in rows
                if row["purge_moves_data"]]
    lines += [*wrap("", "'ceph osd purge' takes the CRUSH weight away as well, which moves data"
                    " again. For a purge that moves nothing run these at first, and wait until it"
                    " is safe to stop here again:", 0), *commands] if commands else []
    for code in sorted({stuck["code"] for row in rows for stuck in row["stuck"]}):
        found = [stuck for row in rows for stuck in row["stuck"] if stuck["code"] == code]
        shards = sum(stuck["shards"] for stuck in found)
        size = format_bytes(sum(stuck["bytes"] for stuck in found))
        lines += wrap("", f"{plural(shards, 'shard')} ({size}) cannot leave: {REASONS[code].stuck},"
                      f" such as pg {found[0]['example_pg']}; {found[0]['action']}", 0)
    if rows and data["osdmap_epoch"] is not None:
        lines.append(f"placement of osdmap e{data['osdmap_epoch']},"
                     f" {format_duration(data['snapshot_age_seconds'])} old")
    for note in data["notes"]:
        lines += wrap("", f"{format_time(note['at'])} UTC: {note['note']}", 0)
    return "\n".join(lines)


def _obstacle(data: Dict[str, Any]) -> List[str]:
    """What holds everything up, and what to do about it; nothing of no data."""
    return [*wrap("", f"{data['state']}: {data['reason']}", 0),
            *wrap("do: ", str(data["action"]), 4)] if data else []


def _cells(row: Dict[str, Any]) -> Sequence[str]:
    stuck, safe = sum(one["shards"] for one in row["stuck"]), row["safe_to_stop"]
    return (f"osd.{row['osd']}", row["given_as"],
            "" if row["shards"] is None else str(row["shards"]),
            "" if row["bytes"] is None else format_bytes(row["bytes"]),
            "" if row["leaving_shards"] is None else str(row["leaving_shards"]),
            "" if row["shards"] is None and not stuck else str(stuck),
            "" if safe is None else "yes" if safe else "no")


def _summary(data: Dict[str, Any], status: DrainStatus) -> str:
    if data["paused"]:
        return (f"paused by 'ceph equilibrium off': {plural(data['shards'], 'shard')} left;"
                " 'ceph equilibrium on' or 'ceph equilibrium drain add' goes on"
                + (f"; {status.down_sentence}" if status.down else ""))
    return drain_sentence(status, data["eta_seconds"])


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

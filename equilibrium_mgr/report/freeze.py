"""What `freeze` answers: how much can be pinned, and what cannot and why."""
from __future__ import annotations

from typing import Any, Dict, FrozenSet, NamedTuple, Optional

from ..freeze.freeze_plan import Freeze
from ..runtime.formatting import format_bytes, format_percent, plural, wrap
from ..snapshot.model import Snapshot
from .command_answer import CommandAnswer

_INDENT = 13


class FreezeReport(NamedTuple):
    """What is shown."""

    name: Optional[str]   # of the plan that pins; None where none is executed
    dry_run: bool
    found: Freeze
    snapshot: Snapshot    # that the pins were found in
    goes_on: bool = False   # whether automatic balancing is on, which moves data again
    draining: FrozenSet[int] = frozenset()   # OSDs that are being drained, of drains under way


def report_freeze(report: FreezeReport) -> CommandAnswer:
    """The answer; in JSON bytes are bytes and ratios run from 0 to 1."""
    found, snapshot, changes = report.found, report.snapshot, report.found.plan.changes
    pairs = sum(map(len, snapshot.upmap_items.values()))
    added = sum(len(change.items) - len(snapshot.upmap_items.get(change.pgid, ()))
                for change in changes)
    copies = max(1, snapshot.object_copies)
    pinned = {osd for change in changes for osd in change.up_after if osd not in change.up_before}
    again = sorted(pinned & report.draining)
    groups: Dict[str, Dict[str, Any]] = {}   # what goes on moving, by reason
    for left in found.unpinned:
        group = groups.setdefault(left.obstacle, {
            "reason_code": left.obstacle.code, "reason": left.obstacle, "shards": 0,
            "bytes": 0, "pgids": []})
        group["shards"] += left.shards
        group["bytes"] += left.bytes
        group["pgids"].append(left.pgid)
    data: Dict[str, Any] = {
        "plan": report.name,
        "state": "dry-run" if report.dry_run else "executing" if report.name else "completed",
        "automatic_goes_on": report.goes_on, "drained_again_osds": again,
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
    lines = wrap("", f"nothing of {plural(found.remapped_pgs, 'remapped PG')} can be pinned"
                 if not changes else f"would pin {what}" if report.name is None
                 else f"{report.name}: pins {what}", 0)
    lines += [f"{'misplaced:':<{_INDENT}}{format_percent(data['misplaced_ratio'])}% ->"
              f" {format_percent(data['planned_misplaced_ratio'])}%",
              f"{'upmap items:':<{_INDENT}}{pairs} -> {pairs + added}"]
    for group in data["unpinned"]:
        lines += wrap("go on:", f"{plural(group['shards'], 'shard')} of"
                      f" {plural(len(group['pgids']), 'PG')}, {format_bytes(group['bytes'])}:"
                      f" {group['reason']}", _INDENT)
    if report.goes_on and changes:
        lines += wrap("then:", "automatic balancing is on: it goes on from there, and moves what it"
                      " has to step by step, within its limits ('ceph equilibrium off' before"
                      " 'freeze' keeps everything where it is)", _INDENT)
    if again:
        osds = f"osd.{again[0]} is" if len(again) == 1 else f"{len(again)} OSDs are"
        lines += wrap("then:", f"{osds} being drained: what is pinned"
                      " there leaves again, and is copied from the beginning ('ceph equilibrium"
                      " off' before 'freeze' pauses drains)", _INDENT)
    if report.name is not None:
        lines += ["'ceph equilibrium status' shows how far it is"]
    return CommandAnswer(data, "\n".join(lines))

"""What `freeze` answers: how much can be pinned, and what cannot and why."""
from __future__ import annotations

from typing import Any, Dict, FrozenSet, Optional

from ..freeze.freeze_plan import Freeze
from ..runtime.formatting import format_bytes, format_percent, plural, wrap
from ..snapshot.model import Snapshot
from .command_answer import CommandAnswer

_INDENT = 13


def report_freeze(name: Optional[str], dry_run: bool, found: Freeze, snapshot: Snapshot,
                  goes_on: bool, draining: FrozenSet[int]) -> CommandAnswer:
    """The answer; in JSON bytes are bytes and ratios run from 0 to 1.

    `name`: of the plan that pins, None where none is executed. `snapshot`: that the pins were found
    in. `goes_on`: automatic balancing is on, which moves data again. `draining`: OSDs that are
    being drained, of drains under way.
    """
    changes = found.plan.changes
    pairs = sum(map(len, snapshot.upmap_items.values()))
    added = sum(len(change.items) - len(snapshot.upmap_items.get(change.pgid, ()))
                for change in changes)
    copies = max(1, snapshot.object_copies)
    pinned = {osd for change in changes for osd in change.up_after if osd not in change.up_before}
    again = sorted(pinned & draining)
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
        "automatic_goes_on": goes_on, "drained_again_osds": again,
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
                 if not changes else f"would pin {what}" if name is None
                 else f"{name}: pins {what}", 0)
    lines += [f"{'misplaced:':<{_INDENT}}{format_percent(data['misplaced_ratio'])}% ->"
              f" {format_percent(data['planned_misplaced_ratio'])}%",
              f"{'upmap items:':<{_INDENT}}{pairs} -> {pairs + added}"]
    for group in data["unpinned"]:
        lines += wrap("go on:", f"{plural(group['shards'], 'shard')} of"
                      f" {plural(len(group['pgids']), 'PG')}, {format_bytes(group['bytes'])}:"
                      f" {group['reason']}", _INDENT)
    if goes_on and changes:
        lines += wrap("then:", "automatic balancing is on: it goes on from there, and moves what it"
                      " has to step by step, within its limits ('ceph equilibrium off' before"
                      " 'freeze' keeps everything where it is)", _INDENT)
    if again:
        osds = f"osd.{again[0]} is" if len(again) == 1 else f"{len(again)} OSDs are"
        lines += wrap("then:", f"{osds} being drained: what is pinned"
                      " there leaves again, and is copied from the beginning ('ceph equilibrium"
                      " off' before 'freeze' pauses drains)", _INDENT)
    if name is not None:
        lines += ["'ceph equilibrium status' shows how far it is"]
    return CommandAnswer(data, "\n".join(lines))

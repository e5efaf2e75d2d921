"""What `freeze` answers: how much can be pinned, and what cannot and why."""
from __future__ import annotations

from typing import Any, Dict, FrozenSet, List, NamedTuple, Optional, Tuple

from ..freeze.freeze_plan import Freeze, Unpinned
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
    data = _figures(report)
    if not report.found.remapped_pgs:
        return CommandAnswer(data, "nothing to freeze: no PG is remapped")
    lines = wrap("", _sentence(report), 0)
    lines += [f"{'misplaced:':<{_INDENT}}{format_percent(data['misplaced_ratio'])}% ->"
              f" {format_percent(data['planned_misplaced_ratio'])}%",
              f"{'upmap items:':<{_INDENT}}{data['upmap_items']} ->"
              f" {data['planned_upmap_items']}"]
    for group in data["unpinned"]:
        lines += wrap("go on:", f"{plural(group['shards'], 'shard')} of"
                      f" {plural(len(group['pgids']), 'PG')}, {format_bytes(group['bytes'])}:"
                      f" {group['reason']}", _INDENT)
    if report.goes_on and report.found.plan.changes:
        lines += wrap("then:", "automatic balancing is on: it goes on from there, and moves what it"
                      " has to step by step, within its limits ('ceph equilibrium off' before"
                      " 'freeze' keeps everything where it is)", _INDENT)
    if data["drained_again_osds"]:
        lines += wrap("then:", f"{_named(data['drained_again_osds'])} being drained: what is pinned"
                      " there leaves again, and is copied from the beginning ('ceph equilibrium"
                      " off' before 'freeze' pauses drains)", _INDENT)
    if report.name is not None:
        lines += ["'ceph equilibrium status' shows how far it is"]
    return CommandAnswer(data, "\n".join(lines))


def _figures(report: FreezeReport) -> Dict[str, Any]:
    found, snapshot = report.found, report.snapshot
    changes = found.plan.changes
    pairs = sum(map(len, snapshot.upmap_items.values()))
    added = sum(len(change.items) - len(snapshot.upmap_items.get(change.pgid, ()))
                for change in changes)
    copies = max(1, snapshot.object_copies)
    pinned = {osd for change in changes for osd in change.up_after if osd not in change.up_before}
    state = "dry-run" if report.dry_run else "executing" if report.name else "completed"
    return {
        "plan": report.name, "state": state, "automatic_goes_on": report.goes_on,
        "drained_again_osds": sorted(pinned & report.draining),
        "osdmap_epoch": snapshot.epoch,
        "remapped_pgs": found.remapped_pgs, "pinned_pgs": len(changes), "shards": found.shards,
        "bytes": found.bytes, "misplaced_ratio": found.copies / copies,
        "planned_misplaced_ratio": (found.copies - found.pinned_copies) / copies,
        "upmap_items": pairs, "planned_upmap_items": pairs + added,
        "unpinned": _groups(found.unpinned)}


def _named(osds: List[int]) -> str:
    return f"osd.{osds[0]} is" if len(osds) == 1 else f"{len(osds)} OSDs are"


def _groups(unpinned: Tuple[Unpinned, ...]) -> List[Dict[str, Any]]:
    """What goes on moving, by reason, the most shards first."""
    groups: Dict[str, Dict[str, Any]] = {}
    for left in unpinned:
        group = groups.setdefault(left.obstacle, {
            "reason_code": left.obstacle.code, "reason": left.obstacle, "shards": 0,
            "bytes": 0, "pgids": []})
        group["shards"] += left.shards
        group["bytes"] += left.bytes
        group["pgids"].append(left.pgid)
    return sorted(groups.values(), key=lambda group: (-group["shards"], group["reason"]))


def _sentence(report: FreezeReport) -> str:
    found = report.found
    shards, pgs = plural(found.shards, "shard"), plural(len(found.plan.changes), "PG")
    size = format_bytes(found.bytes)
    if not found.plan.changes:
        return f"nothing of {plural(found.remapped_pgs, 'remapped PG')} can be pinned"
    if report.name is None:
        return f"would pin {shards} of {pgs}, {size}, to where they are"
    return f"{report.name}: pins {shards} of {pgs}, {size}, to where they are"

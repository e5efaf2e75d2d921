"""What `undo` and `cancel` answer: what it costs, and what is not restored."""
from __future__ import annotations

from typing import List, NamedTuple, Optional

from ..plan.kinds import CANCEL
from ..runtime.formatting import format_bytes, plural, wrap
from ..undo.undo_plan import UndoResult
from .command_answer import CommandAnswer

#: PGs that are not restored, of which plain text has a line each.
_MOST_LINES = 20


class UndoReport(NamedTuple):
    """What is shown."""

    kind: str                # of plan/kinds.py
    title: str               # what is taken back
    name: Optional[str]      # of the plan that does it; None where none is executed
    stopped: Optional[str]   # the plan whose execution was stopped for it
    dry_run: bool
    result: UndoResult


def report_undo(report: UndoReport) -> CommandAnswer:
    """The answer; in JSON bytes are bytes."""
    result, plan = report.result, report.result.plan
    state = "dry-run" if report.dry_run else "executing" if report.name else "completed"
    lines = []
    if report.stopped:
        lines.append(f"the execution of plan '{report.stopped}' was stopped")
    lines += wrap("", _what(report), 0)
    if report.name:
        lines += ["'ceph equilibrium status' shows how far it is",
                  f"'ceph equilibrium rm {report.name}' stops it"]
    return CommandAnswer({
        "plan": report.name, "kind": report.kind, "of": report.title, "state": state,
        "stopped_plan": report.stopped, "pgs": len(plan.changes), "shards": len(plan.moves),
        "bytes": plan.bytes, "not_begun_pgs": result.not_begun,
        "under_way_pgs": result.under_way,
        "not_restored": [{"pgid": pgid, "reason": reason}
                         for pgid, reason in result.not_restored]},
        "\n".join(lines + _not_restored(report)))


def _what(report: UndoReport) -> str:
    result, plan = report.result, report.result.plan
    begin = f"{report.name}: " if report.name else "would do this: " if report.dry_run else ""
    if not plan.changes:
        nothing = ("nothing waits to be moved" if report.kind == CANCEL
                   else "nothing is left to be taken back")
        return f"{nothing} of {report.title}"
    arrived = len(plan.changes) - result.not_begun - result.under_way
    parts = []
    if result.not_begun:
        parts.append(f"{plural(result.not_begun, 'PG')} of which nothing has been copied yet"
                     f" {'stays where it is' if result.not_begun == 1 else 'stay where they are'}")
    if result.under_way:
        parts.append(f"{plural(result.under_way, 'PG')} that {_is(result.under_way)} being copied"
                     " will not arrive")
    if arrived:
        parts.append(f"{plural(arrived, 'PG')} {'moves' if arrived == 1 else 'move'} back:"
                     f" {plural(len(plan.moves), 'shard')}, {format_bytes(plan.bytes)}")
    return f"{begin}takes back {report.title}: " + "; ".join(parts)


def _is(count: int) -> str:
    return "is" if count == 1 else "are"


def _not_restored(report: UndoReport) -> List[str]:
    rows = report.result.not_restored
    if not rows:
        return []
    lines = [f"not restored: {plural(len(rows), 'PG')}"]
    for pgid, reason in rows[:_MOST_LINES]:
        lines += wrap(f"  {pgid}", reason)
    if len(rows) > _MOST_LINES:
        lines.append(f"  and {len(rows) - _MOST_LINES} more; --format json has all")
    return lines

"""`show` and `dump`: plans as shell commands and in full."""
from __future__ import annotations

from typing import Any, Dict, List

from ..plan.model import Plan
from ..runtime.formatting import format_bytes, table
from .command_answer import CommandAnswer


def show_plan(name: str, plan: Plan) -> CommandAnswer:
    """The plan as shell commands that an operator can read, keep and run."""
    commands = [change.command() for change in plan.changes]
    return CommandAnswer({"plan": name, "aim": plan.aim, "osdmap_epoch": plan.epoch,
                   "moves": moves_json(plan), "bytes": plan.bytes,
                   "gained_bytes": plan.gained_bytes, "commands": commands},
                  "\n".join(_comment(name, plan) + commands))


def dump_plan(name: str, plan: Plan) -> CommandAnswer:
    """Everything that the plan holds as JSON, its moves as a table."""
    data = {
        "plan": name, "aim": plan.aim, "osdmap_epoch": plan.epoch,
        "stop_reason": plan.stop_reason, "bounds": plan.bounds,
        "moves": moves_json(plan), "bytes": plan.bytes, "gained_bytes": plan.gained_bytes,
        "upmap_items": {c.pgid: [list(pair) for pair in c.items] for c in plan.changes},
        "raw": {c.pgid: list(c.raw) for c in plan.changes},
        "up_before": {c.pgid: list(c.up_before) for c in plan.changes},
        "predicted_up": {c.pgid: list(c.up_after) for c in plan.changes},
        "before": _usage(plan.to_dict()["before"]), "after": _usage(plan.to_dict()["after"]),
        "skipped": plan.skipped}
    return CommandAnswer(data, "\n".join(_comment(name, plan) + _detail(plan)))


def moves_json(plan: Plan) -> List[Dict[str, Any]]:
    """The moves, JSON-ready; utilizations are ratios."""
    return [{"pgid": m.pgid, "from": m.source, "to": m.target, "bytes": m.bytes,
             "objects": m.objects,
             "from_utilization_before": m.source_before, "from_utilization_after": m.source_after,
             "to_utilization_before": m.target_before, "to_utilization_after": m.target_after}
            for m in plan.moves]


def _comment(name: str, plan: Plan) -> List[str]:
    lines = [f"# plan {name}, aim {plan.aim}, made at osdmap epoch {plan.epoch}:"
             f" {len(plan.moves)} moves, {format_bytes(plan.bytes)}"]
    for device_class, after in plan.after.classes.items():
        before = plan.before.classes[device_class]
        lines.append(f"# class {device_class}: highest utilisation {before.max:.4f} ->"
                     f" {after.max:.4f}, stddev {before.stddev:.4f} -> {after.stddev:.4f}")
    lines.append(f"# predicted pool space gained: {format_bytes(plan.gained_bytes)}")
    return lines


def _detail(plan: Plan) -> List[str]:
    rows = [[m.pgid, f"osd.{m.source}", f"osd.{m.target}", format_bytes(m.bytes),
             f"{m.source_before:.4f} -> {m.source_after:.4f}",
             f"{m.target_before:.4f} -> {m.target_after:.4f}"] for m in plan.moves]
    return [table(["PG", "FROM", "TO", "BYTES", "FROM UTILISATION", "TO UTILISATION"], rows)]


def _usage(dump: Dict[str, Any]) -> Dict[str, Any]:
    for device_class in dump["classes"].values():
        device_class["histogram"] = list(device_class["histogram"])
    return dump

"""`show`, `dump` and `ls`: plans as shell commands, in full, and as a list."""
from __future__ import annotations

import time
from typing import Any, Dict, Iterable, List, Optional

from ..plan.model import Plan
from ..plan.store import PlanHead
from ..plan_service.plan_queue import PlanProgress
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


def list_plans(heads: Iterable[PlanHead], in_progress: Dict[str, PlanProgress],
               executing: Optional[str]) -> CommandAnswer:
    """Kept plans and plans in progress. `executing`: name of the plan that is executed."""
    plans: List[Dict[str, Any]] = []
    for head in sorted(heads, key=lambda h: h.name):
        state = "executing" if head.name == executing else "ready"
        if head.name in in_progress:
            state = "planning"
        plans.append({"plan": head.name, "state": state, "aim": head.aim, "moves": head.moves,
                      "bytes": head.bytes, "gained_bytes": head.gained_bytes,
                      "osdmap_epoch": head.osdmap_epoch,
                      "created": _date(head.created_at)})
    kept = {plan["plan"] for plan in plans}
    for progress in in_progress.values():
        if progress.plan and progress.plan not in kept:
            plans.append({"plan": progress.plan, "state": "planning", "aim": progress.aim,
                          "moves": progress.moves, "bytes": None, "gained_bytes": None,
                          "osdmap_epoch": None, "created": _date(progress.started_at)})
    rows = [[p["plan"], p["state"], p["aim"], str(p["moves"]), _size(p["bytes"]),
             _size(p["gained_bytes"]), str(p["osdmap_epoch"] or ""), p["created"]] for p in plans]
    plain = table(["PLAN", "STATE", "AIM", "MOVES", "BYTES", "GAINED", "EPOCH", "CREATED"], rows,
                  left=3) if rows else ""
    return CommandAnswer({"plans": plans}, plain)


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


def _date(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def _size(count: Optional[int]) -> str:
    return "" if count is None else format_bytes(count)

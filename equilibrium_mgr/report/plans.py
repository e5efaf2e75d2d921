"""`show` and `dump`: plans as shell commands and in full."""
from __future__ import annotations

from typing import Any, Dict, List

from ..plan.kinds import BALANCE
from ..plan.model import Plan
from ..runtime.formatting import format_bytes, format_percent, plural
from .command_answer import CommandAnswer
from .table import Column, render_table


def show_plan(name: str, plan: Plan) -> CommandAnswer:
    """The plan as shell commands that an operator can read, keep and run."""
    commands = [change.command() for change in plan.changes]
    return CommandAnswer({"plan": name, "aim": plan.aim, "osdmap_epoch": plan.epoch,
                   "moves": moves_json(plan), "bytes": plan.bytes, "commands": commands},
                  "\n".join(_comment(name, plan) + commands))


def dump_plan(name: str, plan: Plan) -> CommandAnswer:
    """Everything that the plan holds as JSON, its moves as a table."""
    data = {
        "plan": name, "aim": plan.aim, "osdmap_epoch": plan.epoch,
        "stop_reason": plan.stop_reason, "bounds": plan.bounds,
        "moves": moves_json(plan), "bytes": plan.bytes,
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
    aim = f"aim {plan.aim}" if plan.kind == BALANCE else plan.kind
    lines = [f"# plan {name}, {aim}, made at osdmap epoch {plan.epoch}:",
             f"# {plural(len(plan.moves), 'shard')}, {format_bytes(plan.bytes)}"]
    for device_class, after in plan.after.classes.items():
        before = plan.before.classes[device_class]
        lines.append(f"# class {device_class}: max utilization {format_percent(before.max)}% ->"
                     f" {format_percent(after.max)}%, stddev {format_percent(before.stddev)} ->"
                     f" {format_percent(after.stddev)}")
    room, later = plan.before.room, plan.after.room
    if room is not None and later is not None:   # plans that are made for no gain have none
        lines.append(f"# room if all pools grow alike: {format_bytes(room.bytes)} ->"
                     f" {format_bytes(later.bytes)}")
    return lines


_MOVES = (Column("PG", is_name=True), Column("FROM"), Column("TO"), Column("SIZE"),
          Column("FROM %USE"), Column("TO %USE"))


def _detail(plan: Plan) -> List[str]:
    rows = [[m.pgid, f"osd.{m.source}", f"osd.{m.target}", format_bytes(m.bytes),
             f"{format_percent(m.source_before)} -> {format_percent(m.source_after)}",
             f"{format_percent(m.target_before)} -> {format_percent(m.target_after)}"]
            for m in plan.moves]
    return [render_table(_MOVES, rows)]


def _usage(dump: Dict[str, Any]) -> Dict[str, Any]:
    for device_class in dump["classes"].values():
        device_class["histogram"] = list(device_class["histogram"])
    return dump

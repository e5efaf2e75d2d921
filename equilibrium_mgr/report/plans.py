"""`ls`, `show` and `dump`: the plans and what has become of them, as shell commands, in full."""
from __future__ import annotations

from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence

from ..control.journal import COMPLETED, outcome_code
from ..gateway.cluster_summary import ClusterSummary
from ..plan.model import BALANCE, MOTIONLESS, Plan, topology_mark
from ..plan.store import PlanHead
from ..plan_service.plan_service import PlanProgress
from ..runtime.formatting import format_bytes, format_percent, format_time, plural, wrap
from .answer import CommandAnswer, render_table

READY, PLANNING, EXECUTING, OUTDATED = "ready", "planning", "executing", "outdated"
NO_PLANS = "no plans; 'ceph equilibrium optimize <name>' makes one"


def show_plan(name: str, plan: Plan) -> CommandAnswer:
    """The plan as shell commands that an operator can read, keep and run."""
    commands = [change.command() for change in plan.changes]
    return CommandAnswer({"plan": name, "aim": plan.aim, "osdmap_epoch": plan.epoch,
                   "moves": moves_json(plan), "bytes": plan.bytes, "commands": commands},
                  "\n".join(_comment(name, plan) + commands))


def dump_plan(name: str, plan: Plan) -> CommandAnswer:
    """Everything that the plan holds as JSON, its moves as a table."""
    usages = plan.to_dict()
    table = render_table("PG<|FROM|TO|SIZE|FROM %USE|TO %USE", [
        [m.pgid, f"osd.{m.source}", f"osd.{m.target}", format_bytes(m.bytes),
         f"{format_percent(m.source_before)} -> {format_percent(m.source_after)}",
         f"{format_percent(m.target_before)} -> {format_percent(m.target_after)}"]
        for m in plan.moves])
    data = {
        "plan": name, "aim": plan.aim, "osdmap_epoch": plan.epoch,
        "stop_reason": plan.stop_reason, "bounds": plan.bounds,
        "moves": moves_json(plan), "bytes": plan.bytes,
        "upmap_items": {c.pgid: [list(pair) for pair in c.items] for c in plan.changes},
        "raw": {c.pgid: list(c.raw) for c in plan.changes},
        "up_before": {c.pgid: list(c.up_before) for c in plan.changes},
        "predicted_up": {c.pgid: list(c.up_after) for c in plan.changes},
        "before": usages["before"], "after": usages["after"],
        "skipped": plan.skipped}
    return CommandAnswer(data, "\n".join([*_comment(name, plan), table]))


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


def list_plans(heads: Iterable[PlanHead], in_progress: Mapping[str, PlanProgress] = {},
               executing: Optional[str] = None, history: Sequence[Mapping[str, Any]] = (),
               summary: Optional[ClusterSummary] = None) -> CommandAnswer:
    """Kept plans by name, and then those that are being made for the first time. `executing`: the
    name of the plan that is executed; `history`: entries of the history; `summary`: None where it
    is not known what is outdated."""
    plans: List[Dict[str, Any]] = []
    for head in sorted(heads, key=lambda head: head.name):
        reason = outdated_reason(head, summary)
        state = (PLANNING if head.name in in_progress else EXECUTING if head.name == executing
                 else COMPLETED if any(_completed(head, entry) for entry in history)
                 else READY if reason is None else OUTDATED)
        plans.append({
            "plan": head.name, "state": state, "kind": head.kind, "aim": head.aim,
            "shards": head.moves, "bytes": head.bytes, "gained_bytes": head.gained_bytes,
            # what moves nothing gains nothing: it only changes what was still to come
            "room_gained_bytes": None if head.kind in MOTIONLESS else head.room_gained_bytes,
            "osdmap_epoch": head.osdmap_epoch, "created_at": head.created_at,
            "outdated_reason": reason if state == OUTDATED else None})
    kept = {plan["plan"] for plan in plans}
    plans += [{"plan": progress.plan, "state": PLANNING, "kind": BALANCE, "aim": progress.aim,
               "shards": progress.moves, "bytes": None, "gained_bytes": None,
               "room_gained_bytes": None, "osdmap_epoch": None, "created_at": progress.started_at,
               "outdated_reason": None} for progress in in_progress.values()
              if progress.plan and progress.plan not in kept]
    if not plans:
        return CommandAnswer({"plans": []}, NO_PLANS)
    rows: List[List[str]] = []
    outdated: List[str] = []
    for plan in plans:
        size, room, epoch = plan["bytes"], plan["room_gained_bytes"], plan["osdmap_epoch"]
        rows.append([
            plan["state"], plan["aim"] if plan["kind"] == BALANCE else plan["kind"],
            str(plan["shards"]), "" if size is None else format_bytes(size),
            "" if room is None else ("+" if room >= 0 else "") + format_bytes(room),
            "" if epoch is None else str(epoch), format_time(plan["created_at"]), plan["plan"]])
        if plan["state"] == OUTDATED:
            outdated += wrap("", f"{plan['plan']} is outdated: {plan['outdated_reason']}; 'ceph"
                             f" equilibrium optimize {plan['plan']} --replace' makes it anew", 2)
    table = render_table("STATE<|AIM<|SHARDS|SIZE|ROOM|EPOCH|CREATED (UTC)|PLAN<", rows)
    return CommandAnswer({"plans": plans}, "\n".join([table, *outdated]))


def outdated_reason(head: PlanHead, summary: Optional[ClusterSummary]) -> Optional[str]:
    """What has changed of the cluster so that the plan, or a part of it, is void; None where
    nothing has, or that is not known."""
    if summary is None:
        return None
    if head.topology != topology_mark(summary.crush_version, (
            (osd, found.is_in, found.reweight) for osd, found in summary.osds.items())):
        return "the CRUSH map or the weight of an OSD has changed"
    for name, pgs in head.pool_pgs.items():
        pool = summary.pools.get(int(name))
        if pool is None:
            return f"pool {name} is gone"
        if pool.pg_num != pgs:
            return f"pool {name} has {pool.pg_num} PGs instead of {pgs}"
    return None


def _completed(head: PlanHead, entry: Mapping[str, Any]) -> bool:
    """True where the history tells that the plan, as it was made last, was carried out."""
    started, outcome = entry.get("started_at"), entry.get("outcome")
    return (entry.get("plan") == head.name and not entry.get("automatic", False)
            and isinstance(started, (int, float)) and started >= head.created_at
            and isinstance(outcome, str) and outcome_code(outcome) == COMPLETED)

"""`ls`: the plans that are kept or in the making, and what has become of them."""
from __future__ import annotations

from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence

from ..control.episodes.outcomes import COMPLETED, outcome_code
from ..gateway.cluster_summary import ClusterSummary
from ..plan.kinds import BALANCE, MOTIONLESS
from ..plan.store import PlanHead
from ..plan.topology import topology_mark
from ..plan_service.plan_queue import PlanProgress
from ..runtime.formatting import format_bytes, format_time, wrap
from .command_answer import CommandAnswer
from .table import Column, render_table

READY, PLANNING, EXECUTING, OUTDATED = "ready", "planning", "executing", "outdated"
NO_PLANS = "no plans; 'ceph equilibrium optimize <name>' makes one"
_COLUMNS = (Column("STATE", is_name=True), Column("AIM", is_name=True), Column("SHARDS"),
            Column("SIZE"), Column("ROOM"), Column("EPOCH"), Column("CREATED (UTC)"),
            Column("PLAN", is_name=True))


class PlansNow(NamedTuple):
    """What the state of plans depends on."""

    in_progress: Mapping[str, PlanProgress] = {}     # by name
    executing: Optional[str] = None                  # name of the plan that is executed
    history: Sequence[Mapping[str, Any]] = ()        # entries of the history
    summary: Optional[ClusterSummary] = None         # None: what is outdated is not known


def list_plans(heads: Iterable[PlanHead], now: PlansNow) -> CommandAnswer:
    """Kept plans by name, and then those that are being made for the first time."""
    plans = [_kept(head, now) for head in sorted(heads, key=lambda head: head.name)]
    kept = {plan["plan"] for plan in plans}
    plans += [_in_progress(progress) for progress in now.in_progress.values()
              if progress.plan and progress.plan not in kept]
    if not plans:
        return CommandAnswer({"plans": []}, NO_PLANS)
    lines = [render_table(_COLUMNS, [_row(plan) for plan in plans])]
    for plan in plans:
        if plan["state"] == OUTDATED:
            lines += wrap("", f"{plan['plan']} is outdated: {plan['outdated_reason']}; 'ceph"
                          f" equilibrium optimize {plan['plan']} --replace' makes it anew", 2)
    return CommandAnswer({"plans": plans}, "\n".join(lines))


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


def _kept(head: PlanHead, now: PlansNow) -> Dict[str, Any]:
    reason = outdated_reason(head, now.summary)
    if head.name in now.in_progress:
        state = PLANNING
    elif head.name == now.executing:
        state = EXECUTING
    elif any(_completed(head, entry) for entry in now.history):
        state = COMPLETED
    else:
        state = READY if reason is None else OUTDATED
    return {"plan": head.name, "state": state, "kind": head.kind, "aim": head.aim,
            "shards": head.moves, "bytes": head.bytes, "gained_bytes": head.gained_bytes,
            # what moves nothing gains nothing: it only changes what was still to come
            "room_gained_bytes": None if head.kind in MOTIONLESS else head.room_gained_bytes,
            "osdmap_epoch": head.osdmap_epoch,
            "created_at": head.created_at,
            "outdated_reason": reason if state == OUTDATED else None}


def _completed(head: PlanHead, entry: Mapping[str, Any]) -> bool:
    """True where the history tells that the plan, as it was made last, was carried out."""
    started, outcome = entry.get("started_at"), entry.get("outcome")
    return (entry.get("plan") == head.name and not entry.get("automatic", False)
            and isinstance(started, (int, float)) and started >= head.created_at
            and isinstance(outcome, str) and outcome_code(outcome) == COMPLETED)


def _in_progress(progress: PlanProgress) -> Dict[str, Any]:
    return {"plan": progress.plan, "state": PLANNING, "kind": BALANCE, "aim": progress.aim,
            "shards": progress.moves, "bytes": None, "gained_bytes": None,
            "room_gained_bytes": None, "osdmap_epoch": None, "created_at": progress.started_at,
            "outdated_reason": None}


def _row(plan: Mapping[str, Any]) -> List[str]:
    room = plan["room_gained_bytes"]
    aim = plan["aim"] if plan["kind"] == BALANCE else plan["kind"]
    return [plan["state"], aim, str(plan["shards"]), _size(plan["bytes"]),
            "" if room is None else ("+" if room >= 0 else "") + format_bytes(room),
            "" if plan["osdmap_epoch"] is None else str(plan["osdmap_epoch"]),
            format_time(plan["created_at"]), plan["plan"]]


def _size(count: Optional[int]) -> str:
    return "" if count is None else format_bytes(count)

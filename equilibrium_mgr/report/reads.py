"""What a plan that evens out primaries does, pool by pool."""
from __future__ import annotations

from typing import Any, Dict, List

from ..plan.kinds import READ_BALANCE
from ..plan.model import Plan
from ..runtime.formatting import format_bytes, plural, wrap
from .command_answer import CommandAnswer


def plan_content(plan: Plan) -> str:
    """What the plan does, in a few words."""
    if plan.kind == READ_BALANCE:
        count = len(plan.changes)
        return (f"{plural(count, 'PG')} {'gets' if count == 1 else 'get'} another primary; no data"
                " moves")
    return f"{plural(len(plan.moves), 'shard')}, {format_bytes(plan.bytes)}"


def reads_lines(plan: Plan) -> List[str]:
    """A line for each pool whose primaries change."""
    return [f"pool {row.name}: {plural(row.pgs, 'PG')}, at most {row.most_before} ->"
            f" {row.most_after} primaries on an OSD, score {row.score_before:.2f} ->"
            f" {row.score_after:.2f}" for row in plan.reads if row.pgs]


def reads_json(plan: Plan) -> Dict[str, Any]:
    """The primaries that a plan sets, and what for; empty where it moves shards."""
    return {"primaries": {change.pgid: change.primary for change in plan.changes
                          if change.primary is not None},
            "reads": [row._asdict() for row in plan.reads]}


def report_reads(name: str, plan: Plan) -> CommandAnswer:
    """The answer to the command that has made the plan."""
    lines = [f"{name}: {plan_content(plan)}"] if plan.changes else [
        f"{name}: no primary is to be changed"]
    lines += reads_lines(plan)
    for reason, count in plan.skipped.items():
        lines += wrap("", f"left as they are: {plural(count, 'PG')}: {reason}", 0)
    if plan.changes:
        lines.append(f"'ceph equilibrium execute {name}' changes them")
    return CommandAnswer({
        "plan": name, "state": "ready", "kind": plan.kind, "pgs": len(plan.changes),
        **reads_json(plan), "skipped": [{"reason": reason, "count": count}
                                        for reason, count in plan.skipped.items()]},
        "\n".join(lines))

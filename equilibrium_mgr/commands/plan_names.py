"""Plans that commands make themselves: their names, such as `undo-1`, and their figures."""
from __future__ import annotations

import errno
from typing import Optional

from ..observation.cluster_view import ClusterView
from ..observation.planned_placement import planned_usage
from ..plan.model import Plan
from ..plan.store import MAX_PLANS
from ..plan.topology import pool_pgs, topology_of
from ..report.command_answer import CommandError
from ..snapshot.model import pool_of
from .module_parts import ModuleParts


def refuse_empty_name(plan: Optional[str]) -> None:
    """Raises CommandError for an empty name, as a shell variable that is not set leaves it: without
    a name a command is about other plans."""
    if plan is not None and not plan.strip():
        raise CommandError(errno.EINVAL, "the name of the plan is empty")


def name_of_plan(parts: ModuleParts, kind: str) -> str:
    """The next free name of a kind. Raises CommandError where too many plans are kept."""
    taken = set(parts.plan_store.heads()).union(parts.plan_service.plans_in_progress())
    if len(taken) >= MAX_PLANS:
        raise CommandError(errno.ENOSPC, f"{len(taken)} plans are kept already; remove some with"
                           " 'ceph equilibrium rm'")
    numbers = [int(number) for kept, _, number in (name.rpartition("-") for name in taken)
               if kept == kind and number.isdigit()]
    return f"{kind}-{max(numbers, default=0) + 1}"


def keep_and_execute(parts: ModuleParts, kind: str, plan: Plan) -> str:
    """Keeps a plan under the next free name of its kind, begins to execute it, and returns the
    name. Waits for the key-value store, as `execute` does. Raises CommandError where too many plans
    are kept, and where another plan has just begun to be executed; then this one is not kept."""
    name = name_of_plan(parts, kind)
    parts.plan_store.put(name, plan, parts.clock())
    if not parts.balancer.execute(name, plan):
        parts.plan_store.remove(name)
        raise CommandError(errno.EBUSY, "another plan has just begun to be executed")
    return name


def with_figures(plan: Plan, view: ClusterView) -> Plan:
    """The plan with the usage that the view has and the plan leads to, and what it rests on."""
    snapshot = view.snapshot
    pools = {pool_of(change.pgid) for change in plan.changes}
    return plan._replace(
        before=view.usage, after=planned_usage(view, plan.changes), bounds=view.bounds,
        topology=topology_of(snapshot),
        pool_pgs=pool_pgs((pool, snapshot.pools[pool].pg_num) for pool in pools))

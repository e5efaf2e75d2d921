"""Names of the plans that commands make themselves: `undo-1`, `freeze-2`."""
from __future__ import annotations

import errno

from ..plan.model import Plan
from ..plan.store import MAX_PLANS
from ..report.command_answer import CommandError
from .module_parts import ModuleParts


def keep_plan(parts: ModuleParts, kind: str, plan: Plan) -> str:
    """Keeps a plan under the next free name of its kind and returns that. Waits for the key-value
    store, as `execute` does. Raises CommandError where too many plans are kept."""
    taken = set(parts.plan_store.heads()).union(parts.plan_service.plans_in_progress())
    if len(taken) >= MAX_PLANS:
        raise CommandError(errno.ENOSPC, f"{len(taken)} plans are kept already; remove some with"
                           " 'ceph equilibrium rm'")
    numbers = [int(number) for kept, _, number in (name.rpartition("-") for name in taken)
               if kept == kind and number.isdigit()]
    name = f"{kind}-{max(numbers, default=0) + 1}"
    parts.plan_store.put(name, plan, parts.clock())
    return name

"""`df`, `osds` and `moves`."""
from __future__ import annotations

import errno
from typing import Optional

from ..report.cluster.pools import report_df
from ..report.cluster.moves import report_moves, select
from ..report.cluster.osds import OsdSelection, report_osds
from ..report.command_answer import CommandAnswer, CommandError
from .current_view import CurrentView
from .module_parts import ModuleParts
from .plan_commands import PlanCommands
from .pool_names import find_pool


class TableCommands:
    """Tables of pools and of OSDs. They raise CommandError for what they do not find."""

    def __init__(self, parts: ModuleParts, plans: PlanCommands) -> None:
        self._parts = parts
        self._plans = plans
        self._view = CurrentView(parts)

    def df(self, plan: Optional[str], sort: Optional[str], limit: Optional[int]) -> CommandAnswer:
        """The free space of pools: now, and with a kept plan or the one that is executed."""
        look = self._view.look(self._plans.plan(plan) if plan is not None else None)
        return report_df(look.view, look.age_seconds, look.space, plan, look.wanted, sort, limit)

    def osds(self, selection: OsdSelection) -> CommandAnswer:
        """How full OSDs are and will be."""
        look = self._view.look()
        return report_osds(look.view, look.age_seconds, look.wanted, selection)

    def moves(self, what: Optional[str], limit: Optional[int]) -> CommandAnswer:
        """The shards in flight: all, or those of an OSD, a pool or a PG."""
        view, age = self._view.required()
        pool = find_pool(what, self._parts.gateway.pool_ids_by_name()) if what else None
        selection = select(what, pool, view.snapshot)
        if selection is None:
            raise CommandError(errno.ENOENT, f"'{what}' is no OSD, no pool and no PG")
        execution = self._parts.balancer.execution
        return report_moves(view, age, selection,
                            execution.remaining_moves if execution is not None else 0, limit)

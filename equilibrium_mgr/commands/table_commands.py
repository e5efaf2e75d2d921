"""`df`, `growth`, `osds` and `moves`."""
from __future__ import annotations

import errno
from typing import Optional, Sequence

from ..plan.model import PgChange
from ..report.cluster.df import report_df
from ..report.cluster.evaluation import Look
from ..report.cluster.growth import GrowthSources, report_growth
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
        wanted = self._wanted() if plan is None else self._plans.plan(plan).changes
        view, age = self._view.required()
        return report_df(view, age, self._parts.gateway.pool_space(), plan, wanted, sort, limit)

    def growth(self, plan: Optional[str]) -> CommandAnswer:
        """How fast the data grows, and when OSDs are nearfull: now, and with a kept plan or the
        one that is executed."""
        wanted = self._wanted() if plan is None else self._plans.plan(plan).changes
        is_started = self._view.request_if_old()
        view, age = self._view.required()
        parts = self._parts
        return report_growth(GrowthSources(
            Look(view, age, parts.gateway.pool_space(), is_started, wanted), parts.growth(), plan,
            parts.gateway.max_pg_shards()[0], parts.clock()))

    def osds(self, selection: OsdSelection) -> CommandAnswer:
        """How full OSDs are and will be."""
        view, age = self._view.required()
        return report_osds(view, age, self._wanted(), selection)

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

    def _wanted(self) -> Optional[Sequence[PgChange]]:
        """The changes of the execution that are still to be sent; None where there is none."""
        execution = self._parts.balancer.execution
        return execution.wanted if execution is not None else None

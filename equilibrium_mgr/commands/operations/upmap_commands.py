"""`upmap ls` and `upmap cleanup`."""
from __future__ import annotations

import errno

from ...plan.kinds import CLEAN_UP
from ...report.command_answer import CommandAnswer, CommandError
from ...report.upmap import CleanupReport, report_cleanup, report_upmaps
from ...upmap_cleanup.cleanup_plan import cleanup_plan
from ..current_view import CurrentView
from ..module_parts import ModuleParts
from ..plan_commands import refuse_old_clients
from ..plan_names import keep_and_execute, with_figures


class UpmapCommands:
    """They raise CommandError where the cluster has not been looked at; `cleanup` also where that
    was too long ago, or a plan is executed."""

    def __init__(self, parts: ModuleParts) -> None:
        self._parts = parts
        self._view = CurrentView(parts)

    def list(self) -> CommandAnswer:
        """What the upmap items of the map come to."""
        view, age = self._view.required()
        _, not_cleaned, found = cleanup_plan(view.snapshot)
        return report_upmaps(found, not_cleaned, view.snapshot.epoch, age)

    def cleanup(self, dry_run: bool) -> CommandAnswer:
        """Removes what PGs can do without."""
        executing = self._parts.executing()
        if executing is not None and not dry_run:
            raise CommandError(errno.EBUSY, f"plan '{executing}' is being executed; 'ceph"
                               f" equilibrium rm {executing}' stops it")
        view = self._view.to_act_on()
        plan, not_cleaned, found = cleanup_plan(view.snapshot)
        name = None
        if plan.changes and not dry_run:
            refuse_old_clients(self._parts.gateway)
            plan = with_figures(plan, view)
            name = keep_and_execute(self._parts, CLEAN_UP, plan)
        return report_cleanup(CleanupReport(name, dry_run, plan, not_cleaned, found))

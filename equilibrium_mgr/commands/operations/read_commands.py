"""`optimize --read-balance`."""
from __future__ import annotations

import errno
from typing import List

from ...read_balance.read_plan import read_plan
from ...report.command_answer import CommandAnswer, CommandError
from ...report.reads import report_reads
from ..current_view import OLDEST_AT_REST_SECONDS, CurrentView
from ..module_parts import ModuleParts
from ..plan_arguments import PlanArguments, plan_options
from ..plan_commands import PlanCommands, refuse_primaries
from ..plan_names import with_figures


class ReadCommands:
    """Plans that even out primaries. Raises CommandError where these may not be set."""

    def __init__(self, parts: ModuleParts) -> None:
        self._parts = parts
        self._view = CurrentView(parts)

    def optimize(self, name: str, arguments: PlanArguments, replace: bool) -> CommandAnswer:
        """Makes such a plan at once, and keeps it."""
        PlanCommands(self._parts).refuse_name(name, replace)
        if arguments != _of_pools(arguments.pools):
            raise CommandError(errno.EINVAL, "--read-balance goes with pools and with no other"
                               " option")
        refuse_primaries(self._parts)
        options = plan_options(arguments, self._parts.settings(), self._parts.gateway)
        # the execution looks again anyway
        view = self._view.to_act_on(oldest=OLDEST_AT_REST_SECONDS)
        plan = with_figures(read_plan(view.snapshot, options), view)
        self._parts.plan_store.put(name, plan, self._parts.clock())
        return report_reads(name, plan)


def _of_pools(pools: List[str]) -> PlanArguments:
    """The arguments where nothing else is given."""
    return PlanArguments(pools, None, None, None, None)

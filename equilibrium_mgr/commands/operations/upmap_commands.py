"""`upmap ls` and `upmap cleanup`."""
from __future__ import annotations

import errno

from ...plan.kinds import CLEAN_UP
from ...report.command_answer import CommandAnswer, CommandError
from ...report.upmap import report_cleanup, report_upmaps
from ...upmap_cleanup.cleanup_plan import cleanup_plan
from ..module_parts import ModuleParts, with_figures


def list_upmaps(parts: ModuleParts) -> CommandAnswer:
    """What the upmap items of the map come to."""
    view, age = parts.required()
    _, not_cleaned, found = cleanup_plan(view.snapshot)
    return report_upmaps(found, not_cleaned, view.snapshot.epoch, age)


def clean_up(parts: ModuleParts, dry_run: bool) -> CommandAnswer:
    """Removes what PGs can do without."""
    executing = parts.executing()
    if executing is not None and not dry_run:
        raise CommandError(errno.EBUSY, f"plan '{executing}' is being executed; 'ceph"
                           f" equilibrium rm {executing}' stops it")
    view, name = parts.to_act_on(), None
    plan, not_cleaned, found = cleanup_plan(view.snapshot)
    if plan.changes and not dry_run:
        parts.refuse_old_clients()
        name = parts.keep_and_execute(CLEAN_UP, with_figures(plan, view))
    return report_cleanup(name, dry_run, plan, not_cleaned, found)

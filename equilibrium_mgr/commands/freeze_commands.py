"""`freeze`: pins what is remapped to where its data is."""
from __future__ import annotations

import errno

from ..freeze.freeze_plan import freeze
from ..plan.kinds import FREEZE
from ..plan.topology import topology_mark, topology_of
from ..report.command_answer import CommandAnswer, CommandError
from ..report.freeze import report_freeze
from .module_parts import ModuleParts, with_figures


def pin(parts: ModuleParts, dry_run: bool) -> CommandAnswer:
    """Pins all remapped PGs as far as they can be, or only shows how far that is. Raises
    CommandError where the newest view does not know of all that is remapped."""
    execution = parts.balancer.execution
    stops = "" if execution is None else f"; 'ceph equilibrium rm {execution.name}' stops it"
    if execution is not None and execution.kind == FREEZE:
        raise CommandError(errno.EAGAIN, f"plan '{execution.name}' is sending its pins; try"
                           f" again in some seconds{stops}")
    if not dry_run:
        parts.refuse_old_clients()
        if execution is not None and execution.name:
            raise CommandError(errno.EBUSY, f"plan '{execution.name}' is being executed{stops}")
    view, summary = parts.to_act_on(), parts.gateway.summary()
    if topology_of(view.snapshot) != topology_mark(summary.crush_version, (
            (osd, found.is_in, found.reweight) for osd, found in summary.osds.items())):
        raise parts.outdated("the cluster has changed since it was last looked at")
    if view.snapshot.unsettled_seconds > 0.0:
        raise parts.outdated("PGs have just been remapped, and do not show yet where their"
                             " data is")
    found, name = freeze(view.snapshot), None
    if found.plan.changes and not dry_run:
        name = parts.keep_and_execute(FREEZE, with_figures(found.plan, view))
    drains = parts.balancer.drains.status.drains
    return report_freeze(name, dry_run, found, view.snapshot, parts.settings().active,
                         drains.osds if drains.is_running else frozenset())

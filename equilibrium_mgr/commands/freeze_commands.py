"""`freeze`."""
from __future__ import annotations

import errno

from ..freeze.freeze_plan import Freeze, freeze
from ..gateway.cluster_summary import ClusterSummary
from ..observation.cluster_view import ClusterView
from ..observation.planned_placement import planned_usage
from ..plan.kinds import FREEZE
from ..plan.model import Plan
from ..plan.topology import pool_pgs, topology_mark, topology_of
from ..report.command_answer import CommandAnswer, CommandError
from ..report.freeze import FreezeReport, report_freeze
from ..snapshot.model import Snapshot, pool_of
from .current_view import CurrentView
from .module_parts import ModuleParts
from .plan_commands import refuse_old_clients
from .plan_names import keep_and_execute


class FreezeCommands:
    """Pins what is remapped to where its data is. Raises CommandError where that is not known."""

    def __init__(self, parts: ModuleParts) -> None:
        self._parts = parts
        self._view = CurrentView(parts)

    def freeze(self, dry_run: bool) -> CommandAnswer:
        """Pins all remapped PGs as far as they can be, or only shows how far that is."""
        execution = self._parts.balancer.execution
        stops = "" if execution is None else f"; 'ceph equilibrium rm {execution.name}' stops it"
        if execution is not None and execution.kind == FREEZE:
            raise CommandError(errno.EAGAIN, f"plan '{execution.name}' is sending its pins; try"
                               f" again in some seconds{stops}")
        if not dry_run:
            refuse_old_clients(self._parts.gateway)
            if execution is not None and execution.name:
                raise CommandError(errno.EBUSY, f"plan '{execution.name}' is being executed{stops}")
        view = self._present_view()
        found = freeze(view.snapshot)
        name = None
        if found.plan.changes and not dry_run:
            name = keep_and_execute(self._parts, FREEZE, _with_figures(found, view))
        drains = self._parts.balancer.drains.status.drains
        return report_freeze(FreezeReport(
            name, dry_run, found, view.snapshot, self._parts.settings().active,
            drains.osds if drains.is_running else frozenset()))

    def _present_view(self) -> ClusterView:
        """The newest view, where it knows of all that is remapped. Raises CommandError where not,
        and has the cluster looked at."""
        view = self._view.to_act_on()
        if not _is_same_map(view.snapshot, self._parts.gateway.summary()):
            raise self._view.outdated("the cluster has changed since it was last looked at")
        if view.snapshot.unsettled_seconds > 0.0:
            raise self._view.outdated("PGs have just been remapped, and do not show yet where their"
                                      " data is")
        return view


def _is_same_map(snapshot: Snapshot, summary: ClusterSummary) -> bool:
    """True where CRUSH and the weights of all OSDs are as they were."""
    return topology_of(snapshot) == topology_mark(summary.crush_version, (
        (osd, found.is_in, found.reweight) for osd, found in summary.osds.items()))


def _with_figures(found: Freeze, view: ClusterView) -> Plan:
    snapshot, changes = view.snapshot, found.plan.changes
    pools = {pool_of(change.pgid) for change in changes}
    return found.plan._replace(
        before=view.usage, after=planned_usage(view, changes), bounds=view.bounds,
        topology=topology_of(snapshot),
        pool_pgs=pool_pgs((pool, snapshot.pools[pool].pg_num) for pool in pools))

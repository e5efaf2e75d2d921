"""`undo` and `cancel`. They raise CommandError where there is nothing to take back, or it must not
be now; with --dry-run where the command itself would.

`freeze`, which pins what is remapped to where its data is.
"""
from __future__ import annotations

import errno
import math
from typing import Optional, Tuple

from ..control.journal import AUTOMATIC, COMPLETED, STOPPED
from ..execution.guards import CURE_BUILTIN
from ..freeze.freeze import freeze
from ..observation.cluster_view import ClusterView
from ..plan.model import (
    CANCEL, DRAIN, FREEZE, KINDS, TAKE_BACK, UNDO, command_of, topology_of)
from ..report.answer import CommandAnswer, CommandError
from ..report.operations import report_freeze, report_undo
from ..runtime.formatting import format_time, named, parse_span
from ..snapshot.model import Snapshot
from ..undo.change_log import MOST_ROWS, ChangeLog, Chosen
from ..undo.undo_plan import UndoResult, cancel_plan, undo_plan
from .base import OLDEST_AT_REST_SECONDS, ModuleParts, with_figures


#: Names of drained OSDs that a sentence has before it only counts the rest.
_MOST_NAMES = 3
_DROPPED = f"(the log has the last {MOST_ROWS:,} changes)"


def take_back(parts: ModuleParts, kind: str, plan: Optional[str], since: Optional[str],
              dry_run: bool) -> CommandAnswer:
    """`undo` takes back what a plan, the last episode, or everything since a while ago changed,
    `cancel` what has been sent and of which nothing has been copied yet; the `kind` is that of the
    plan which does so.

    Stops the execution that the command is about, but for a dry run. Raises CommandError where
    something else is under way that would come in between, where what is taken back would be sent
    again, or cannot be, and where the plan could not be kept.
    """
    if plan is not None and not plan.strip():   # as a shell variable that is not set leaves it
        raise CommandError(errno.EINVAL, "the name of the plan is empty")
    balancer, name = parts.balancer, None
    # first: a new mgr goes on with what the last one was executing
    log = balancer.changes()
    executing = parts.balancer.plan_name
    chosen, begin, title, about, unknown = _scope(log, kind, plan, since, parts.clock())

    def taking(snapshot: Snapshot) -> UndoResult:
        return (cancel_plan(snapshot, log.newest_first, chosen) if kind == CANCEL
                else undo_plan(snapshot, log.rows(begin), chosen))
    if parts.settings().active:
        raise CommandError(errno.EPERM, "automatic balancing is on and would make these moves"
                           " again; run 'ceph equilibrium off' first")
    if executing is not None and about not in (None, executing):
        raise parts.busy(executing)
    parts.refuse_old_clients()
    drains = balancer.drains.status
    if drains.drains.is_running and (drains.left_shards or not drains.is_known):
        if taking(_fresh_view(parts, kind, "").snapshot).onto_drained:
            names, is_one = sorted(drains.drains.by_name()), len(drains.drains.osds) == 1
            raise CommandError(
                errno.EPERM, f"{named(names, _MOST_NAMES)} {'is' if is_one else 'are'} being"
                " drained and would be emptied again; run 'ceph equilibrium drain rm"
                f" {' '.join(names)}' first")
    parts.next_name(kind)   # raises where no other plan can be kept
    stopped = None if dry_run or not executing else _stop(parts, executing, kind)
    said = f"the execution of plan '{stopped}' was stopped; " if stopped else ""
    if balancer.changes().is_sending(parts.clock()):
        raise CommandError(errno.EAGAIN, f"{said}a batch is on its way to the monitors; try again"
                           " in some seconds")
    view = _fresh_view(parts, kind, said)
    result = taking(view.snapshot)
    if kind == UNDO and result.plan.changes and parts.gateway.builtin_balancer_active():
        raise CommandError(errno.EPERM, f"{said}the built-in balancer is active; run"
                           f" '{CURE_BUILTIN}' first")
    if result.plan.changes:
        result = result._replace(plan=with_figures(result.plan, view))
        if not dry_run:
            name = parts.keep_and_execute(kind, result.plan)
    return report_undo(kind, title, name, stopped, dry_run, result, view.snapshot,
                       balancer.drains.status.drains, unknown, parts.age(view))


def _stop(parts: ModuleParts, executing: str, kind: str) -> Optional[str]:
    """Stops the execution of a plan; returns its name, or None where it was through: what moves
    nothing has nothing on its way."""
    execution = parts.balancer.execution
    is_through = execution is not None and execution.is_motionless and not execution.wanted
    ended = parts.balancer.stop_plan(
        executing, COMPLETED if is_through else f"{STOPPED}: by {command_of(kind)}")
    return executing if ended is not None and not is_through else None


def _fresh_view(parts: ModuleParts, kind: str, begin: str) -> ClusterView:
    """The newest view, by the present list of drained OSDs: a command may have changed it since.
    Raises CommandError, which begins with `begin`, for one that is too old."""
    # cancel does not wait for a look: its plan leaves alone what has begun to move since
    view = (parts.to_act_on(begin, OLDEST_AT_REST_SECONDS) if kind == CANCEL
            else parts.to_act_on(begin))
    drained = parts.balancer.drains.status.drains.osds
    return view._replace(snapshot=view.snapshot._replace(osds={
        osd.id: osd._replace(drained=osd.id in drained) for osd in view.snapshot.osds.values()}))


def _scope(log: ChangeLog, kind: str, plan: Optional[str], since: Optional[str],
           now: float) -> Tuple[Chosen, float, str, Optional[str], Optional[str]]:
    """Everything since a while ago, the last execution of a plan, or, without these, all that was
    sent (`cancel`) or the last plan or episode that put data elsewhere: (the rows of the log, none
    of them earlier than this, what it is called, the plan whose execution it concerns, None for
    any, what of it the log has dropped)."""
    first = log.first_known
    if since is not None:
        if plan is not None:
            raise CommandError(errno.EINVAL, "give a plan or --since, not both")
        seconds = parse_span(since)
        if seconds is None:
            raise CommandError(errno.EINVAL, f"--since '{since}' is no span of time; write it like"
                               " 6h, 90m or 2d")
        begin = now - seconds
        return (lambda row: row.at >= begin and not row.takes_back, begin,
                f"all changes since {format_time(begin)} UTC", None,
                None if first is None or first.at < begin else
                f"what was changed before {format_time(first.at)} UTC is not known {_DROPPED}")
    if plan is None and kind == CANCEL:
        return (lambda row: True, -math.inf, "what was sent", None, None)
    wanted = "" if plan == AUTOMATIC else plan
    fitting = frozenset(KINDS) - TAKE_BACK if wanted is None else {wanted}
    last = next((row for row in log.newest_first(fitting) if not row.takes_back and (
        row.kind if wanted is None else row.plan) in fitting), None)
    if last is None:
        raise CommandError(errno.ENOENT, "nothing that equilibrium has changed is known"
                           if plan is None else
                           f"nothing that plan '{plan}' has changed is known")
    name, begun_at = last.plan, last.begun_at
    title = f"plan '{name}'" if name else (
        f"{'draining' if last.kind == DRAIN else 'automatic balancing'} of"
        f" {format_time(begun_at)} UTC")
    return (lambda row: (row.plan, row.begun_at) == (name, begun_at) and not row.takes_back,
            min(begun_at, last.at), title, name,   # a clock may have been set back
            f"its beginning is not known {_DROPPED}" if first is not None and (
                first.plan, first.begun_at) == (name, begun_at) else None)


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
    then, now = [{pool.id: pool.shape for pool in snapshot.pools.values()} for snapshot in (
        view.snapshot, parts.gateway.at_newest_map(view.snapshot))]
    if then != now or topology_of(view.snapshot.crush_version, view.snapshot.osds) != topology_of(
            summary.crush_version, summary.osds):
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

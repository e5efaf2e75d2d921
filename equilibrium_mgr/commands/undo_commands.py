"""`undo` and `cancel`, which take changes back, and `freeze`, which keeps remapped PGs by upmap
where their data is.

Each raises CommandError if it must not be done now. `undo` and `cancel` also do so if the change
log has no such plan or episode; their --dry-run raises the same errors.
"""
from __future__ import annotations

from errno import EAGAIN, EINVAL, ENOENT, EPERM
import math
from typing import Dict, NamedTuple, Optional, Tuple

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
from ..undo.change_log import MOST_ROWS, ChangeLog, ChangeRow, Chosen
from ..undo.undo_plan import UndoResult, cancel_plan, undo_plan
from .base import OLDEST_AT_REST_SECONDS, ModuleParts, with_figures


#: Names of drained OSDs that a sentence has before it only counts the others.
_MOST_NAMES = 3
_DROPPED = f"(the log has the last {MOST_ROWS:,} changes)"


class _Scope(NamedTuple):
    """The changes that a command takes back."""

    chosen: Chosen                   # returns True for their rows of the log
    begin: float                     # none of the rows is earlier: seconds since the epoch
    title: str                       # for people
    about: Optional[str] = None      # the plan whose execution it concerns; None for any
    unknown: Optional[str] = None    # what of it the log has dropped, for people


def take_back(parts: ModuleParts, kind: str, plan: Optional[str], since: Optional[str],
              dry_run: bool) -> CommandAnswer:
    """Takes changes back by a plan of this `kind`. `undo` takes back the changes of a plan, of the
    last episode, or all changes of the time `since`. `cancel` takes back moves that have been sent
    and have not begun to copy.

    Stops the execution that the command is about, unless `dry_run`. Raises CommandError if another
    execution would interfere, if the changes would be made again, and if the plan cannot be kept.
    """
    if plan is not None and not plan.strip():   # as an unset variable of a shell
        raise CommandError(EINVAL, "the name of the plan is empty")
    balancer = parts.balancer
    name = None
    said = ""
    log = balancer.changes()   # first: a new mgr continues the execution of the last one
    executing = balancer.plan_name
    scope = _scope(log, kind, plan, since, parts.clock())
    if parts.settings().active:
        raise CommandError(EPERM, "automatic balancing is on and would make these moves"
                           " again; run 'ceph equilibrium off' first")
    if executing is not None and scope.about not in (None, executing):
        raise parts.busy(executing)
    parts.refuse_old_clients()
    _refuse_onto_drained(parts, kind, log, scope)
    parts.next_name(kind)   # raises if no other plan can be kept
    stopped = None
    if executing and not dry_run:
        stopped = _stop(parts, executing, kind)
    if stopped:
        said = f"the execution of plan '{stopped}' was stopped; "
    if balancer.changes().is_sending(parts.clock()):
        raise CommandError(EAGAIN, f"{said}a batch is on its way to the monitors; try again"
                           " in some seconds")
    view = _fresh_view(parts, kind, said)
    result = _taken_back(kind, log, scope, view.snapshot)
    if result.plan.changes:
        if kind == UNDO and parts.gateway.builtin_balancer_active():
            raise CommandError(EPERM, f"{said}the built-in balancer is active; run"
                               f" '{CURE_BUILTIN}' first")
        result = result._replace(plan=with_figures(result.plan, view))
        if not dry_run:
            name = parts.keep_and_execute(kind, result.plan)
    return report_undo(kind, scope.title, name, stopped, dry_run, result, view.snapshot,
                       balancer.drains.status.drains, scope.unknown, parts.age(view))


def _taken_back(kind: str, log: ChangeLog, scope: _Scope, snapshot: Snapshot) -> UndoResult:
    """Returns the plan that takes the changes back."""
    if kind == CANCEL:
        return cancel_plan(snapshot, log.newest_first, scope.chosen)
    return undo_plan(snapshot, log.rows(scope.begin), scope.chosen)


def _refuse_onto_drained(parts: ModuleParts, kind: str, log: ChangeLog, scope: _Scope) -> None:
    """Raises CommandError if shards would go back to OSDs that are being drained."""
    status = parts.balancer.drains.status
    is_done = status.is_known and not status.left_shards
    if is_done or not status.drains.is_running:
        return
    snapshot = _fresh_view(parts, kind, "").snapshot
    if _taken_back(kind, log, scope, snapshot).onto_drained:
        names = sorted(status.drains.by_name())
        are = "is" if len(status.drains.osds) == 1 else "are"
        raise CommandError(
            EPERM, f"{named(names, _MOST_NAMES)} {are} being drained and would be emptied"
            f" again; run 'ceph equilibrium drain rm {' '.join(names)}' first")


def _stop(parts: ModuleParts, executing: str, kind: str) -> Optional[str]:
    """Stops the execution of a plan and returns its name. Returns None if the plan was complete: a
    plan that copies no data is complete when all of it is sent."""
    execution = parts.balancer.execution
    outcome = f"{STOPPED}: by {command_of(kind)}"
    is_complete = execution is not None and execution.is_motionless and not execution.wanted
    if is_complete:
        outcome = COMPLETED
    ended = parts.balancer.stop_plan(executing, outcome)
    return executing if ended is not None and not is_complete else None


def _fresh_view(parts: ModuleParts, kind: str, begin: str) -> ClusterView:
    """Returns the newest view, with the current list of drained OSDs, which commands change too.
    Raises CommandError, which begins with `begin`, if the view is too old."""
    if kind == CANCEL:   # its plan leaves out PGs that have begun to move since
        view = parts.to_act_on(begin, OLDEST_AT_REST_SECONDS)
    else:
        view = parts.to_act_on(begin)
    drained = parts.balancer.drains.status.drains.osds
    osds = {osd.id: osd._replace(drained=osd.id in drained)
            for osd in view.snapshot.osds.values()}
    return view._replace(snapshot=view.snapshot._replace(osds=osds))


def _scope(log: ChangeLog, kind: str, plan: Optional[str], since: Optional[str],
           now: float) -> _Scope:
    """Returns which changes an operator means. Without a plan or `since` that is everything sent
    (`cancel`), or the last plan or episode that took nothing back (`undo`)."""
    if since is not None:
        if plan is not None:
            raise CommandError(EINVAL, "give a plan or --since, not both")
        return _since(log, since, now)
    if plan is None and kind == CANCEL:
        return _Scope(lambda row: True, -math.inf, "what was sent")
    return _last_execution(log, plan)


def _since(log: ChangeLog, since: str, now: float) -> _Scope:
    """Returns all changes of a span of time."""
    seconds = parse_span(since)
    first = log.first_known
    unknown = None
    if seconds is None:
        raise CommandError(EINVAL, f"--since '{since}' is no span of time; write it like"
                           " 6h, 90m or 2d")
    begin = now - seconds
    if first is not None and first.at >= begin:
        unknown = f"what was changed before {format_time(first.at)} UTC is not known {_DROPPED}"
    return _Scope(lambda row: row.at >= begin and not row.cancels_withheld, begin,
                  f"all changes since {format_time(begin)} UTC", None, unknown)


def _last_execution(log: ChangeLog, plan: Optional[str]) -> _Scope:
    """Returns the changes of the last execution of `plan`. Without a name: of the last one that was
    neither an undo nor a cancel."""
    last = _last_row(log, plan)
    first = log.first_known
    unknown = None
    if last is None:
        what = "equilibrium" if plan is None else f"plan '{plan}'"
        raise CommandError(ENOENT, f"nothing that {what} has changed is known")
    execution = last.plan, last.begun_at
    if first is not None and (first.plan, first.begun_at) == execution:
        unknown = f"its beginning is not known {_DROPPED}"
    if last.plan:
        title = f"plan '{last.plan}'"
    else:
        what = "draining" if last.kind == DRAIN else "automatic balancing"
        title = f"{what} of {format_time(last.begun_at)} UTC"
    begin = min(last.begun_at, last.at)   # if somebody has set the clock back
    return _Scope(lambda row: (row.plan, row.begun_at) == execution and not row.cancels_withheld,
                  begin, title, last.plan, unknown)


def _last_row(log: ChangeLog, plan: Optional[str]) -> Optional[ChangeRow]:
    """Returns the newest row of a plan, or None; without a name, the newest row of all plans except
    those of `undo` and `cancel`."""
    kinds = frozenset(KINDS) - TAKE_BACK
    wanted = "" if plan == AUTOMATIC else plan
    for row in log.newest_first(kinds if wanted is None else {wanted}):
        fits = row.kind in kinds if wanted is None else row.plan == wanted
        if fits and not row.cancels_withheld:
            return row
    return None


def freeze_pgs(parts: ModuleParts, dry_run: bool) -> CommandAnswer:
    """Keeps remapped PGs by upmap where their data is, as far as possible, or with `dry_run` shows
    how far that is. Raises CommandError if the newest view does not know all remapped PGs."""
    execution = parts.balancer.execution
    name = None
    executing = parts.balancer.plan_name
    if execution is not None and execution.kind == FREEZE:
        raise CommandError(EAGAIN, f"plan '{execution.name}' is sending its pins; try again in some"
                           f" seconds; 'ceph equilibrium rm {execution.name}' stops it")
    if not dry_run:
        parts.refuse_old_clients()
        if executing is not None:
            raise parts.busy(executing)
    view = parts.to_act_on()
    snapshot = view.snapshot
    _refuse_changed(parts, snapshot)
    if snapshot.unsettled_seconds > 0.0:
        raise parts.outdated("PGs have just been remapped, and do not show yet where their"
                             " data is")
    found = freeze(snapshot)
    if found.plan.changes and not dry_run:
        name = parts.keep_and_execute(FREEZE, with_figures(found.plan, view))
    drains = parts.balancer.drains.status.drains
    drained = drains.osds if drains.is_running else frozenset()
    return report_freeze(name, dry_run, found, snapshot, parts.settings().active, drained)


def _refuse_changed(parts: ModuleParts, snapshot: Snapshot) -> None:
    """Raises CommandError if CRUSH, an OSD's weight or a pool is not as in the snapshot."""
    summary = parts.gateway.summary()
    newest = parts.gateway.at_newest_map(snapshot)
    then = _shapes(snapshot)
    now = _shapes(newest)
    topology = topology_of(snapshot.crush_version, snapshot.osds)
    if then != now or topology != topology_of(summary.crush_version, summary.osds):
        raise parts.outdated("the cluster has changed since it was last looked at")


def _shapes(snapshot: Snapshot) -> Dict[int, Tuple[object, ...]]:
    return {pool.id: pool.shape for pool in snapshot.pools.values()}

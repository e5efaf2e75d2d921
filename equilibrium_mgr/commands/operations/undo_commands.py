"""`undo` and `cancel`."""
from __future__ import annotations

import errno
from typing import Callable, FrozenSet, NamedTuple, Optional

from ...control.episodes.episode import AUTOMATIC
from ...control.episodes.outcomes import COMPLETED, STOPPED, because
from ...execution.guards import CURE_BUILTIN
from ...observation.cluster_view import ClusterView
from ...plan.kinds import CANCEL, CLEAN_UP, DRAIN, UNDO, command_of
from ...report.command_answer import CommandAnswer, CommandError
from ...report.undo import UndoReport, drained_again, report_undo
from ...runtime.formatting import format_time, parse_span
from ...snapshot.model import Snapshot
from ...undo.change_log import MOST_ROWS, ChangeLog, Chosen
from ...undo.undo_plan import UndoResult, cancel_plan, undo_plan
from ..current_view import OLDEST_AT_REST_SECONDS, CurrentView
from ..module_parts import ModuleParts
from ..plan_commands import refuse_old_clients
from ..plan_names import keep_and_execute, name_of_plan, refuse_empty_name, with_figures

#: Kinds of plans that nobody means by "the last plan": they take back, or tidy up.
_NOT_LAST = (UNDO, CANCEL, CLEAN_UP)
_DROPPED = f"(the log has the last {MOST_ROWS:,} changes)"


class _Scope(NamedTuple):
    """The rows of the log that a command is about."""

    chosen: Chosen
    title: str                 # "plan 'p'"
    plan: Optional[str]        # whose execution it concerns; None: any
    unknown: Optional[str] = None   # what of it the log has dropped


class UndoCommands:
    """They raise CommandError where there is nothing to take back, or it must not be now; with
    --dry-run where the command itself would."""

    def __init__(self, parts: ModuleParts) -> None:
        self._parts = parts
        self._view = CurrentView(parts)

    def undo(self, plan: Optional[str], since: Optional[str], dry_run: bool) -> CommandAnswer:
        """Takes back what a plan, the last episode, or everything since a while ago changed."""
        refuse_empty_name(plan)
        if plan is not None and since is not None:
            raise CommandError(errno.EINVAL, "give a plan or --since, not both")
        log = self._parts.balancer.changes()
        scope = self._since(since, log) if since is not None else _of_plan(log, plan)

        def make(snapshot: Snapshot) -> UndoResult:
            return undo_plan(snapshot, log.rows(), scope.chosen)
        stopped = self._stop(scope, UNDO, dry_run, make)
        view = self._fresh_view(UNDO, stopped)
        result = make(view.snapshot)
        if result.plan.changes and self._parts.gateway.builtin_balancer_active():
            raise CommandError(errno.EPERM, _said(stopped) + "the built-in balancer is active; run"
                               f" '{CURE_BUILTIN}' first")
        return self._answer(UNDO, scope, result, view, stopped, dry_run)

    def cancel(self, plan: Optional[str], dry_run: bool) -> CommandAnswer:
        """Takes back what has been sent and of which nothing has been copied yet."""
        refuse_empty_name(plan)
        log = self._parts.balancer.changes()
        scope = (_of_plan(log, plan) if plan is not None
                 else _Scope(lambda row: True, "what was sent", None))

        def make(snapshot: Snapshot) -> UndoResult:
            return cancel_plan(snapshot, log.rows(), scope.chosen)
        stopped = self._stop(scope, CANCEL, dry_run, make)
        view = self._fresh_view(CANCEL, stopped)
        return self._answer(CANCEL, scope, make(view.snapshot), view, stopped, dry_run)

    def _since(self, span: str, log: ChangeLog) -> _Scope:
        seconds = parse_span(span)
        if seconds is None:
            raise CommandError(errno.EINVAL, f"--since '{span}' is no span of time; write it like"
                               " 6h, 90m or 2d")
        begin, first = self._parts.clock() - seconds, log.first_known
        return _Scope(lambda row: row.at >= begin, f"all changes since {format_time(begin)} UTC",
                      None, None if first is None or first.at < begin else
                      f"what was changed before {format_time(first.at)} UTC is not known"
                      f" {_DROPPED}")

    def _stop(self, scope: _Scope, kind: str, dry_run: bool,
              make: Callable[[Snapshot], UndoResult]) -> Optional[str]:
        """Stops the execution that the command is about, unless this is a dry run; returns the name
        of its plan. Raises CommandError where something else is under way that would come in
        between, or the plan could not be kept."""
        executing = self._parts.executing()
        self._refuse(scope, executing)
        self._refuse_drained(kind, make)
        name_of_plan(self._parts, kind)   # raises where no other plan can be kept
        stopped = None if dry_run or not executing else self._stopped(executing, kind)
        if self._parts.balancer.changes().is_sending(self._parts.clock()):
            raise CommandError(errno.EAGAIN, _said(stopped) + "a batch is on its way to the"
                               " monitors; try again in some seconds")
        return stopped

    def _stopped(self, executing: str, kind: str) -> Optional[str]:
        """Stops the execution of a plan; returns its name, or None where it was through: what moves
        nothing has nothing on its way."""
        execution = self._parts.balancer.execution
        is_through = execution is not None and execution.is_motionless and not execution.wanted
        ended = self._parts.balancer.stop_plan(
            executing, COMPLETED if is_through else because(STOPPED, f"by {command_of(kind)}"))
        return executing if ended is not None and not is_through else None

    def _refuse(self, scope: _Scope, executing: Optional[str]) -> None:
        """Raises CommandError where what is taken back would be sent again, or cannot be."""
        if self._parts.settings().active:
            raise CommandError(errno.EPERM, "automatic balancing is on and would make these moves"
                               " again; run 'ceph equilibrium off' first")
        if executing is not None and scope.plan not in (None, executing):
            raise CommandError(errno.EBUSY, f"plan '{executing}' is being executed; 'ceph"
                               f" equilibrium rm {executing}' stops it")
        refuse_old_clients(self._parts.gateway)

    def _refuse_drained(self, kind: str, make: Callable[[Snapshot], UndoResult]) -> None:
        """Raises CommandError where a drain under way would send away again what is taken back."""
        status = self._parts.balancer.drains.status
        if status.drains.is_running and (
                not status.is_known or any(left.shards for left in status.remaining.values())):
            if make(self._fresh_view(kind).snapshot).onto_drained:
                raise CommandError(errno.EPERM, drained_again(status.drains))

    def _fresh_view(self, kind: str, stopped: Optional[str] = None) -> ClusterView:
        # cancel does not wait for a look: its plan leaves alone what has begun to move since
        view = (self._view.to_act_on(_said(stopped), OLDEST_AT_REST_SECONDS) if kind == CANCEL
                else self._view.to_act_on(_said(stopped)))
        return view._replace(snapshot=_with_drained(
            view.snapshot, self._parts.balancer.drains.status.drains.osds))

    def _answer(self, kind: str, scope: _Scope, result: UndoResult, view: ClusterView,
                stopped: Optional[str], dry_run: bool) -> CommandAnswer:
        name, nearfull = None, view.snapshot.nearfull_ratio
        if result.plan.changes:
            result = result._replace(plan=with_figures(result.plan, view))
            if not dry_run:
                name = keep_and_execute(self._parts, kind, result.plan)
        return report_undo(UndoReport(
            kind, scope.title, name, stopped, dry_run, result, nearfull,
            self._parts.balancer.drains.status.drains, scope.unknown, view.snapshot.epoch,
            self._view.age(view)))


def _with_drained(snapshot: Snapshot, drained: FrozenSet[int]) -> Snapshot:
    """The snapshot by the present list of drained OSDs: a command may have changed it since."""
    return snapshot._replace(osds={osd.id: osd._replace(drained=osd.id in drained)
                                   for osd in snapshot.osds.values()})


def _said(stopped: Optional[str]) -> str:
    return f"the execution of plan '{stopped}' was stopped; " if stopped else ""


def _of_plan(log: ChangeLog, plan: Optional[str]) -> _Scope:
    """The last execution of a plan, or of the last plan or episode that put data elsewhere."""
    last = next((row for row in reversed(log.rows()) if (
        row.kind not in _NOT_LAST if plan is None
        else row.plan == ("" if plan == AUTOMATIC else plan))), None)
    if last is None:
        raise CommandError(errno.ENOENT, "nothing that equilibrium has changed is known"
                           if plan is None else
                           f"nothing that plan '{plan}' has changed is known")
    name, begun_at, first = last.plan, last.begun_at, log.first_known
    title = f"plan '{name}'" if name else (
        f"{'draining' if last.kind == DRAIN else 'automatic balancing'} of"
        f" {format_time(begun_at)} UTC")
    return _Scope(lambda row: (row.plan, row.begun_at) == (name, begun_at), title, name,
                  f"its beginning is not known {_DROPPED}" if first is not None and (
                      first.plan, first.begun_at) == (name, begun_at) else None)

"""`undo` and `cancel`."""
from __future__ import annotations

import errno
from typing import List, NamedTuple, Optional

from ...control.episodes.episode import AUTOMATIC
from ...control.episodes.outcomes import STOPPED, because
from ...execution.guards import CURE_BUILTIN
from ...observation.cluster_view import ClusterView
from ...plan.kinds import CANCEL, DRAIN, UNDO, command_of
from ...report.command_answer import CommandAnswer, CommandError
from ...report.undo import UndoReport, report_undo
from ...runtime.formatting import format_time, parse_span
from ...runtime.time_slice import TimeSlice
from ...undo.change_log import ChangeRow, Chosen
from ...undo.undo_plan import UndoResult, cancel_plan, undo_plan
from ..current_view import CurrentView
from ..module_parts import ModuleParts
from ..plan_commands import refuse_old_clients
from ..plan_names import keep_plan, with_figures

#: A look that is older than this is not decided on: seconds. The execution looks again anyway.
_OLDEST_SECONDS = 900.0


class _Scope(NamedTuple):
    """The rows of the log that a command is about."""

    chosen: Chosen
    title: str             # "plan 'p'"
    plan: Optional[str]    # whose execution it concerns; None: any


class UndoCommands:
    """They raise CommandError where there is nothing to take back, or it must not be now."""

    def __init__(self, parts: ModuleParts) -> None:
        self._parts = parts
        self._view = CurrentView(parts)

    def undo(self, plan: Optional[str], since: Optional[str], dry_run: bool) -> CommandAnswer:
        """Takes back what a plan, the last episode, or everything since a while ago changed."""
        if plan is not None and since is not None:
            raise CommandError(errno.EINVAL, "give a plan or --since, not both")
        rows = self._parts.balancer.changes().rows(TimeSlice())
        scope = self._since(since) if since is not None else _of_plan(rows, plan)
        stopped = None if dry_run else self._stop(scope, UNDO)
        view = self._fresh_view(stopped)
        result = undo_plan(view.snapshot, self._parts.balancer.changes().rows(TimeSlice()),
                           scope.chosen, TimeSlice())
        if not dry_run and result.plan.changes and self._parts.gateway.builtin_balancer_active():
            raise CommandError(errno.EPERM,
                               f"the built-in balancer is active; run '{CURE_BUILTIN}' first")
        return self._answer(UNDO, scope, result, view, stopped, dry_run)

    def cancel(self, plan: Optional[str], dry_run: bool) -> CommandAnswer:
        """Takes back what has been sent and of which nothing has been copied yet."""
        rows = self._parts.balancer.changes().rows(TimeSlice())
        scope = (_of_plan(rows, plan) if plan is not None
                 else _Scope(lambda row: True, "what was sent", None))
        stopped = None if dry_run else self._stop(scope, CANCEL)
        view = self._fresh_view(stopped)
        result = cancel_plan(view.snapshot, self._parts.balancer.changes().rows(TimeSlice()),
                             scope.chosen, TimeSlice())
        return self._answer(CANCEL, scope, result, view, stopped, dry_run)

    def _since(self, span: str) -> _Scope:
        seconds = parse_span(span)
        if seconds is None:
            raise CommandError(errno.EINVAL, f"--since '{span}' is no span of time; write it like"
                               " 6h, 90m or 2d")
        begin = self._parts.clock() - seconds
        return _Scope(lambda row: row.at >= begin,
                      f"all changes since {format_time(begin)} UTC", None)

    def _stop(self, scope: _Scope, kind: str) -> Optional[str]:
        """Stops the execution that the command is about; returns the name of its plan. Raises
        CommandError where something else is under way that would come in between."""
        if self._parts.settings().active:
            raise CommandError(errno.EPERM, "automatic balancing is on and would make these moves"
                               " again; run 'ceph equilibrium off' first")
        executing = self._parts.executing()
        if executing is not None and scope.plan not in (None, executing):
            raise CommandError(errno.EBUSY, f"plan '{executing}' is being executed; 'ceph"
                               f" equilibrium rm {executing}' stops it")
        refuse_old_clients(self._parts.gateway)
        by = because(STOPPED, f"by {command_of(kind)}")
        stopped = executing if executing and self._parts.balancer.stop_plan(executing, by) else None
        if self._parts.balancer.changes().is_sending(self._parts.clock()):
            raise CommandError(errno.EAGAIN, _said(stopped) + "a batch is on its way to the"
                               " monitors; try again in some seconds")
        return stopped

    def _fresh_view(self, stopped: Optional[str]) -> ClusterView:
        view, age = self._view.required()
        if age > _OLDEST_SECONDS:
            raise CommandError(errno.EAGAIN, _said(stopped) + f"the last look at the cluster is"
                               f" {int(age)} s old; a new one has been started, try again")
        return view

    def _answer(self, kind: str, scope: _Scope, result: UndoResult, view: ClusterView,
                stopped: Optional[str], dry_run: bool) -> CommandAnswer:
        name = None
        if result.plan.changes and not dry_run:
            plan = with_figures(result.plan, view)
            name = keep_plan(self._parts, kind, plan)
            if not self._parts.balancer.execute(name, plan):
                raise CommandError(errno.EBUSY, "another plan has just begun to be executed")
        return report_undo(UndoReport(kind, scope.title, name, stopped, dry_run, result))


def _said(stopped: Optional[str]) -> str:
    return f"the execution of plan '{stopped}' was stopped; " if stopped else ""


def _of_plan(rows: List[ChangeRow], plan: Optional[str]) -> _Scope:
    """The last execution of a plan, or of the last plan or episode that took nothing back."""
    last = next((row for row in reversed(rows) if (
        row.kind not in (UNDO, CANCEL) if plan is None
        else row.plan == ("" if plan == AUTOMATIC else plan))), None)
    if last is None:
        raise CommandError(errno.ENOENT, "nothing that equilibrium has changed is known"
                           if plan is None else
                           f"nothing that plan '{plan}' has changed is known")
    title = f"plan '{last.plan}'" if last.plan else (
        f"{'draining' if last.kind == DRAIN else 'automatic balancing'} of"
        f" {format_time(last.begun_at)} UTC")
    return _Scope(lambda row: (row.plan, row.begun_at) == (last.plan, last.begun_at), title,
                  last.plan)


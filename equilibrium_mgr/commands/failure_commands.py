"""`eval --fail` and `eval --worst-failure`."""
from __future__ import annotations

import errno
from typing import List, Optional

from ..plan.store import PlanHead
from ..plan_service.failure_service import FailureAnswer, FailureQuestion
from ..report.cluster.failures import FailureReport, worst_line
from ..report.command_answer import CommandAnswer, CommandError
from ..runtime.formatting import format_duration, plural
from ..what_if.failure import Failure, find_failure
from .current_view import CurrentView
from .module_parts import ModuleParts
from .plan_commands import PlanCommands

#: Jobs begin within less where nothing else is planned or computed.
_SHOWN_SECONDS = 2.0


class FailureCommands:
    """What failures lead to, of the present placement or with a plan carried out. Raises
    CommandError where that is not known yet: a job computes it meanwhile."""

    def __init__(self, parts: ModuleParts, plans: PlanCommands) -> None:
        self._parts = parts
        self._plans = plans
        self._view = CurrentView(parts)

    def evaluate(self, plan: Optional[str], fail: Optional[str],
                 worst_failure: bool) -> CommandAnswer:
        """The failure of what `fail` names, or the worst one."""
        if fail is not None and worst_failure:
            raise CommandError(errno.EINVAL, "--fail and --worst-failure exclude each other")
        head = None if plan is None else self._head(plan)
        failure = None if fail is None else self._failure(fail)
        question = _question(failure, head)
        answer = self._parts.failure_service.ask(question)
        if answer is None:
            raise self._not_yet(question)
        report = FailureReport(answer, plan, max(0.0, self._parts.clock() - answer.made_at),
                               self._parts.gateway.pool_space())
        if answer.worst is not None:
            return report.worst(answer.worst)
        assert answer.figures is not None
        return report.failure(answer.figures)

    def lines_of_plan(self, plan: str) -> List[str]:
        """The worst failure before and after a plan, where that has been computed."""
        head = self._parts.plan_store.heads().get(plan)
        now = self._known(None)
        return [] if head is None else worst_line(now, self._known(head), plan)

    def _not_yet(self, question: FailureQuestion) -> CommandError:
        service = self._parts.failure_service
        reason, waited = service.pop_reason(question), service.queued_seconds(question)
        state = (f"could not be computed ({reason})" if reason is not None
                 else f"has waited {format_duration(waited)} for what is being planned"
                 if waited >= _SHOWN_SECONDS else "is being computed")
        return CommandError(errno.EAGAIN, f"what the failure leads to {state}; ask again")

    def _known(self, head: Optional[PlanHead]) -> Optional[FailureAnswer]:
        return self._parts.failure_service.known(_question(None, head))

    def _head(self, plan: str) -> PlanHead:
        self._plans.plan(plan)   # raises where it is being made, unknown or damaged
        head = self._parts.plan_store.heads().get(plan)
        if head is None:
            raise CommandError(errno.ENOENT, f"no plan is named '{plan}'")
        return head

    def _failure(self, text: str) -> Failure:
        view, _ = self._view.required()
        failure = find_failure(view.snapshot, text)
        if failure is None:
            raise CommandError(errno.ENOENT, f"--fail '{text}' is neither an OSD (3 or osd.3) nor a"
                               " bucket of the CRUSH map")
        if not failure.osds:
            raise CommandError(errno.EINVAL, f"no OSD of '{text}' is in: nothing more would fail")
        if len(failure.osds) == sum(osd.is_in for osd in view.snapshot.osds.values()):
            raise CommandError(errno.EINVAL, f"'{text}' has all"
                               f" {plural(len(failure.osds), 'OSD')} that are in")
        return failure


def _question(failure: Optional[Failure], head: Optional[PlanHead]) -> FailureQuestion:
    if head is None:
        return FailureQuestion(failure)
    return FailureQuestion(failure, head.name, head.generation)

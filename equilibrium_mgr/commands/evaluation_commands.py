"""`eval`."""
from __future__ import annotations

import errno
from typing import Optional

from ..plan.kinds import BALANCE
from ..report.cluster.evaluation import (
    EvaluatedPlan, evaluate_cluster, evaluate_plan, evaluate_pool)
from ..report.command_answer import CommandAnswer, CommandError
from .current_view import CurrentView
from .failure_commands import FailureCommands
from .module_parts import ModuleParts
from .plan_arguments import present_options
from .plan_commands import PlanCommands
from .plan_names import refuse_empty_name
from .pool_names import find_pool

#: In front of a plan's name where it could be taken for a pool.
_PLAN_PREFIX = "plan/"


class EvaluationCommands:
    """Evaluates the placement, a plan or a pool. Raises CommandError for what it does not find."""

    def __init__(self, parts: ModuleParts, plans: PlanCommands) -> None:
        self._parts = parts
        self._plans = plans
        self._view = CurrentView(parts)
        self._failures = FailureCommands(parts, plans)

    def evaluate(self, option: Optional[str], fail: Optional[str] = None,
                 worst_failure: bool = False, aims: bool = False) -> CommandAnswer:
        """The present placement, a plan (its name or plan/NAME) or a pool (its name, id or
        pool/NAME); a plan goes before a pool. Or what failures lead to, of the first two. With
        `aims` a plan is compared with plans of the other aims."""
        refuse_empty_name(option)
        if aims and (option is None or fail is not None or worst_failure):
            raise CommandError(errno.EINVAL, "--aims is for a plan, without --fail and"
                               " --worst-failure")
        if fail is not None or worst_failure:
            return self._failures.evaluate(_plan_name(option) if option is not None else None, fail,
                                           worst_failure)
        if option is None:
            return evaluate_cluster(self._view.look())
        plan = _plan_name(option)
        service = self._parts.plan_service
        if plan in self._parts.plan_store.heads() or plan in service.plans_in_progress():
            answer = self._evaluate_plan(plan, aims)
            if plan == option and self._find_pool(option) is not None:
                return answer._replace(note=f"'{option}' is a plan and a pool; 'ceph equilibrium"
                                       f" eval pool/{option}' shows the pool")
            return answer
        if service.last_failure(plan):
            self._plans.plan(plan)   # raises with the failure
        pool = self._find_pool(option)
        if pool is not None and aims:
            raise CommandError(errno.EINVAL, f"'{option}' is a pool; --aims is for a plan")
        if pool is not None:
            look = self._view.look()
            if pool in look.view.usage.pools:
                return evaluate_pool(pool, look)
            raise self._view.newer_pool(pool)
        raise CommandError(errno.ENOENT, f"'{option}' is neither a plan nor a pool")

    def _evaluate_plan(self, name: str, aims: bool) -> CommandAnswer:
        plan, settings, parts = self._plans.plan(name), self._parts.settings(), self._parts
        head = parts.plan_store.heads().get(name)
        created = head.created_at if head is not None else None
        look = self._view.look(plan)
        comparison = None if not aims or plan.kind != BALANCE else parts.plan_service.compare(
            name, present_options(settings, parts.gateway), settings.max_plan_seconds)
        return evaluate_plan(EvaluatedPlan(
            name, plan, created, None if created is None else max(0.0, parts.clock() - created),
            parts.gateway.epoch(), name == parts.executing(), aims, comparison,
            tuple(self._failures.lines_of_plan(name)), self._plans.outdated_reason(name)), look)

    def _find_pool(self, text: str) -> Optional[str]:
        return find_pool(text, self._parts.gateway.pool_ids_by_name())


def _plan_name(option: str) -> str:
    return option[len(_PLAN_PREFIX):] if option.startswith(_PLAN_PREFIX) else option

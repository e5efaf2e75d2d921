"""`eval`, of the placement, a plan or a pool, and of what failures lead to. They raise CommandError
for what they do not find, and where it is not known yet: a job computes it meanwhile."""
from __future__ import annotations

import errno
from typing import Optional

from ..plan.kinds import BALANCE
from ..plan_service.failure_service import FailureQuestion
from ..report.cluster.evaluation import evaluate_cluster, evaluate_plan, evaluate_pool
from ..report.cluster.failures import report_failure, worst_line
from ..report.command_answer import CommandAnswer, CommandError
from ..runtime.formatting import format_duration, plural
from ..what_if.failure import Failure, find_failure
from .module_parts import ModuleParts, refuse_empty_name
from .plan_commands import present_options

#: In front of a plan's name where it could be taken for a pool.
_PLAN_PREFIX = "plan/"
#: Jobs begin within less where nothing else is planned or computed.
_SHOWN_SECONDS = 2.0


def evaluate(parts: ModuleParts, option: Optional[str], fail: Optional[str], worst_failure: bool,
             aims: bool) -> CommandAnswer:
    """The present placement, a plan (its name or plan/NAME) or a pool (its name, id or
    pool/NAME); a plan goes before a pool. Or what failures lead to, of the first two. With
    `aims` a plan is compared with plans of the other aims."""
    refuse_empty_name(option)
    plan = option[len(_PLAN_PREFIX):] if option and option.startswith(_PLAN_PREFIX) else option
    if aims and (option is None or fail is not None or worst_failure):
        raise CommandError(errno.EINVAL, "--aims is for a plan, without --fail and"
                           " --worst-failure")
    if fail is not None or worst_failure:
        return _failure(parts, plan, fail, worst_failure)
    if option is None or plan is None:
        return evaluate_cluster(parts.look())
    if plan in parts.plan_store.heads() or plan in parts.plan_service.plans_in_progress():
        answer = _plan(parts, plan, aims)
        if plan == option and parts.find_pool(option) is not None:
            return answer._replace(note=f"'{option}' is a plan and a pool; 'ceph equilibrium"
                                   f" eval pool/{option}' shows the pool")
        return answer
    if parts.plan_service.last_failure(plan):
        parts.plan(plan)   # raises with the failure
    pool = parts.find_pool(option)
    if pool is None:
        raise CommandError(errno.ENOENT, f"'{option}' is neither a plan nor a pool")
    if aims:
        raise CommandError(errno.EINVAL, f"'{option}' is a pool; --aims is for a plan")
    look = parts.look()
    if pool not in look.view.usage.pools:
        raise parts.newer_pool(pool)
    return evaluate_pool(pool, look)


def _plan(parts: ModuleParts, name: str, aims: bool) -> CommandAnswer:
    plan, settings, known = parts.plan(name), parts.settings(), parts.failure_service.known
    head, look = parts.plan_store.heads().get(name), parts.look(plan)
    comparison = None if not aims or plan.kind != BALANCE else parts.plan_service.compare(
        name, present_options(settings, parts.gateway), settings.max_plan_seconds)
    created = head.created_at if head is not None else None
    return evaluate_plan(
        name, plan, look, parts.gateway.epoch(), created,
        None if created is None else max(0.0, parts.clock() - created), name == parts.executing(),
        aims, comparison, () if head is None else worst_line(
            known(FailureQuestion(None)),
            known(FailureQuestion(None, name, head.generation)), name),
        parts.outdated_reason(name))


def _failure(parts: ModuleParts, plan: Optional[str], fail: Optional[str],
             worst_failure: bool) -> CommandAnswer:
    """The failure of what `fail` names, or the worst one, of the present placement or with a plan
    carried out."""
    if fail is not None and worst_failure:
        raise CommandError(errno.EINVAL, "--fail and --worst-failure exclude each other")
    generation = 0
    if plan is not None:
        parts.plan(plan)   # raises where it is being made, unknown or damaged
        generation = parts.plan_store.heads()[plan].generation
    question = FailureQuestion(None if fail is None else _named(parts, fail), plan, generation)
    service = parts.failure_service
    answer = service.ask(question)
    if answer is None:
        reason, waited = service.pop_reason(question), service.queued_seconds(question)
        state = (f"could not be computed ({reason})" if reason is not None
                 else f"has waited {format_duration(waited)} for what is being planned"
                 if waited >= _SHOWN_SECONDS else "is being computed")
        raise CommandError(errno.EAGAIN, f"what the failure leads to {state}; ask again")
    return report_failure(answer, plan, max(0.0, parts.clock() - answer.made_at),
                          parts.gateway.pool_space())


def _named(parts: ModuleParts, text: str) -> Failure:
    snapshot = parts.required()[0].snapshot
    failure = find_failure(snapshot, text)
    if failure is None:
        raise CommandError(errno.ENOENT, f"--fail '{text}' is neither an OSD (3 or osd.3) nor a"
                           " bucket of the CRUSH map")
    if not failure.osds:
        raise CommandError(errno.EINVAL, f"no OSD of '{text}' is in: nothing more would fail")
    if len(failure.osds) == sum(osd.is_in for osd in snapshot.osds.values()):
        raise CommandError(errno.EINVAL, f"'{text}' has all"
                           f" {plural(len(failure.osds), 'OSD')} that are in")
    return failure

"""Commands that only read: `status`, `explain`, `history`, `metrics`, `report`, `dump-state`, the
tables `df`, `osds` and `moves`, and `eval`, of the placement, a plan or a pool, and of what
failures and changes lead to. They raise CommandError for what they do not find, and where it is
not known yet: a job computes it meanwhile.
"""
from __future__ import annotations

import errno
from typing import Optional, Sequence

from ..plan.options import osds_named
from ..plan_service.plan_service import ChangeAnswer, FailureAnswer, FailureQuestion
from ..report.answer import CommandAnswer, CommandError
from ..report.cluster.changes import report_changes
from ..report.cluster.df import report_df
from ..report.cluster.evaluation import evaluate_cluster, evaluate_plan, evaluate_pool
from ..report.cluster.failures import report_failure
from ..report.cluster.moves import report_moves, report_moves_by_osd
from ..report.cluster.osds import report_osds
from ..report.explain.context import ExplainContext
from ..report.explain.explain import explain
from ..report.explain.pair import explain_pair
from ..report.history import report_history
from ..report.metrics import report_metrics
from ..report.page import report_page
from ..report.state_dump import dump_state
from ..report.status import brief_line, options_json, report_status
from ..runtime.formatting import plural, wrap
from ..what_if.change import parse_changes
from ..what_if.failure import find_failure
from .base import ModuleParts


_NEWER = " is newer than the last look at the cluster"
#: A view that is older than this is replaced for `metrics`: seconds.
_METRICS_SECONDS = 3600.0


def show_status(parts: ModuleParts, brief: bool = False) -> CommandAnswer:
    """What equilibrium does and why; `brief`: in one line."""
    look_started = parts.request_if_old()
    view, status = parts.newest()
    known = parts.balancer.status.view
    options = options_json(parts.options.value, known.snapshot if known is not None else None)
    answer = report_status(status, parts.plan_service, parts.settings(), parts.clock(), view,
                           options, look_started)
    return answer._replace(plain=brief_line(answer.data, parts.health())) if brief else answer


def explain_what(parts: ModuleParts, what: Optional[str], osd: Optional[str]) -> CommandAnswer:
    """Why the cluster, an OSD, a pool or a PG is not better off; or why a PG is not on `osd`."""
    (view, age), settings = parts.required(), parts.settings()
    context = ExplainContext(
        view, parts.newest()[1], settings,
        parts.balancer.dispatcher.excluded(view.snapshot, settings),
        parts.gateway.max_pg_shards(), parts.clock(), parts.plan_service.pg_num)
    if osd is not None:
        return explain_pair(what or "", osd, context, parts.balancer.dispatcher.next_round(
            view.snapshot, settings, view.max_misplaced_ratio), age)
    pool = parts.find_pool(what) if what else None
    answer = explain(what, pool, context, age)
    if answer is None and pool is not None:
        raise parts.outdated(f"pool '{pool}'{_NEWER}")
    return answer or _explain_bucket(what or "", context, age)


def _explain_bucket(name: str, context: ExplainContext, age: float) -> CommandAnswer:
    """Why the fullest OSD of a host or of another bucket is not better off."""
    view = context.view
    osds = (osds_named(name, view.snapshot.crush) or frozenset()).intersection(view.snapshot.osds)
    if not osds:
        raise CommandError(errno.ENOENT, f"'{name}' is no OSD, no host, no pool and no PG")
    fullest = max(osds, key=lambda osd: (view.utilization_now(osd), -osd))
    answer = explain(f"osd.{fullest}", None, context, age)
    assert answer is not None   # it is in the snapshot
    said = f"{name} has {plural(len(osds), 'OSD')}; osd.{fullest} is the fullest:"
    return answer._replace(plain="\n".join([*wrap("", said, 0), answer.plain]))


def show_metrics(parts: ModuleParts) -> CommandAnswer:
    """The figures for Prometheus, of now as far as they cost little. However often they are
    asked for, the cluster is looked at for them once an hour at most."""
    view, status = parts.newest(with_map=False)
    if view is None or parts.age(view) > _METRICS_SECONDS:
        parts.balancer.request_observation()
    return report_metrics(status, parts.balancer.totals, parts.clock(), parts.settings().active,
                          view, parts.last_round_at())


def show_history(parts: ModuleParts, limit: Optional[int]) -> CommandAnswer:
    """What has been moved."""
    status = parts.balancer.status
    return report_history(status.history, status.episode, parts.clock(), limit)


def write_page(parts: ModuleParts, plan: Optional[str]) -> CommandAnswer:
    """The page about the cluster, or about a kept plan."""
    kept = parts.plan(plan) if plan is not None else None
    look = parts.look(kept)
    reading, epoch = parts.gateway.last_reading, parts.gateway.epoch()
    evaluated = evaluate_cluster(look) if plan is None or kept is None else evaluate_plan(
        plan, kept, look, epoch, is_executing=plan == parts.balancer.plan_name,
        outdated_reason=parts.outdated_reason(plan, parts.summary()))
    failures = {"": FailureQuestion(None)}
    if plan is not None:
        failures[plan] = FailureQuestion(None, plan, parts.plan_store.heads()[plan].to_json())
    return report_page(
        evaluated.data, show_status(parts).data, look.view.snapshot, kept,
        str(reading.osd_map.get("fsid", "")) if reading is not None else "",
        parts.gateway.ceph_version(), epoch, parts.clock(),
        {name: parts.plan_service.known_failure(question)
         for name, question in failures.items()})


def write_state(parts: ModuleParts, anonymous: bool) -> CommandAnswer:
    """The cluster's state at the last reading, which has its time in it."""
    reading = parts.gateway.last_reading
    parts.request_if_old()
    return dump_state(reading, anonymous)


def df(parts: ModuleParts, plan: Optional[str], sort: Optional[str],
       limit: Optional[int]) -> CommandAnswer:
    """Shows the free space of pools: now, and with a kept plan or the one that is executed."""
    kept = parts.plan(plan) if plan is not None else None
    return report_df(parts.look(kept), plan, sort, limit)


def osds(parts: ModuleParts, names: Sequence[str], sort: Optional[str],
         limit: Optional[int]) -> CommandAnswer:
    """Shows how full OSDs are and will be: all, or those of these names."""
    return report_osds(parts.look(), names, sort, limit)


def moves(parts: ModuleParts, what: Optional[str], limit: Optional[int],
          by_osd: bool) -> CommandAnswer:
    """The shards in flight: all, or those of an OSD, a host, a pool or a PG; or what comes to each
    OSD and leaves it."""
    (view, age), execution = parts.required(), parts.balancer.execution
    pool = parts.find_pool(what) if what else None
    if by_osd:
        return report_moves_by_osd(view, age, what, pool, limit)
    return report_moves(view, age, what, pool,
                        execution.remaining_moves if execution is not None else 0, limit)


#: In front of a plan's name where it could be taken for a pool.
_PLAN_PREFIX = "plan/"


def evaluate(parts: ModuleParts, option: Optional[str], fail: Optional[str], worst_failure: bool,
             changes: Sequence[Sequence[str]] = ()) -> CommandAnswer:
    """The present placement, a plan (its name or plan/NAME) or a pool (its name, id or
    pool/NAME); a plan goes before a pool. Or what failures lead to, of the first two.
    `changes`: of --add, --remove, --resize and --pg-num, instead of all that."""
    if any(changes):
        if option is not None or fail is not None or worst_failure:
            raise CommandError(errno.EINVAL, "--add, --remove, --resize and --pg-num are of the"
                               " present placement, without another option")
        return _changes(parts, changes)
    plan = option[len(_PLAN_PREFIX):] if option and option.startswith(_PLAN_PREFIX) else option
    is_plan = plan in parts.plan_store.heads() or plan in parts.plan_service.plans_in_progress()
    if fail is not None or worst_failure:
        return _failure(parts, plan, fail, worst_failure)
    if option is None or plan is None:
        return evaluate_cluster(parts.look())
    if is_plan:
        return _plan(parts, plan)
    if parts.plan_service.last_failure(plan):
        parts.plan(plan)   # raises with the failure
    pool = parts.find_pool(option)
    if pool is None:
        raise CommandError(errno.ENOENT, f"'{option}' is neither a plan nor a pool")
    look = parts.look()
    if pool not in look.view.usage.pools:
        raise parts.outdated(f"pool '{pool}'{_NEWER}")
    return evaluate_pool(pool, look)


def _changes(parts: ModuleParts, texts: Sequence[Sequence[str]]) -> CommandAnswer:
    view, _ = parts.required()
    try:
        changes = parse_changes(view.snapshot, *texts)
    except (LookupError, ValueError) as bad:
        raise CommandError(errno.ENOENT if isinstance(bad, LookupError) else errno.EINVAL,
                           str(bad)) from None
    answer = parts.plan_service.changes(changes, view.snapshot)
    if not isinstance(answer, ChangeAnswer):
        raise _not_yet("the change leads to", answer, "")
    return report_changes(changes, answer.figures, view, answer.epoch,
                          max(0.0, parts.clock() - answer.taken_at))


def _not_yet(what: str, failure: Optional[str], progress: str) -> CommandError:
    state = "is being computed" + progress if failure is None else (
        f"could not be computed ({failure})")
    return CommandError(errno.EAGAIN, f"what {what} {state}; ask again")


def _plan(parts: ModuleParts, name: str) -> CommandAnswer:
    plan = parts.plan(name)
    head, look = parts.plan_store.heads().get(name), parts.look(plan)
    return evaluate_plan(
        name, plan, look, parts.gateway.epoch(),
        None if head is None else max(0.0, parts.clock() - head.created_at),
        name == parts.balancer.plan_name, parts.outdated_reason(name, parts.summary()))


def _failure(parts: ModuleParts, plan: Optional[str], fail: Optional[str],
             worst_failure: bool) -> CommandAnswer:
    """The failure of what `fail` names, or the worst one, of the present placement or with a plan
    carried out."""
    if fail is not None and worst_failure:
        raise CommandError(errno.EINVAL, "--fail and --worst-failure exclude each other")
    head, failure = "", None
    if plan is not None:
        parts.plan(plan)   # raises where it is being made, unknown or damaged
        head = parts.plan_store.heads()[plan].to_json()
    if fail is not None:
        snapshot = parts.required()[0].snapshot
        failure = find_failure(snapshot, fail)
        if failure is None:
            raise CommandError(errno.ENOENT, f"--fail '{fail}' is neither an OSD (3 or osd.3) nor a"
                               " bucket of the CRUSH map")
        if not failure.osds:
            raise CommandError(errno.EINVAL, f"no OSD of '{fail}' is in: nothing more would fail")
        if len(failure.osds) == sum(osd.is_in for osd in snapshot.osds.values()):
            raise CommandError(errno.EINVAL, f"'{fail}' has all"
                               f" {plural(len(failure.osds), 'OSD')} that are in")
    answer = parts.plan_service.failure(FailureQuestion(failure, plan, head))
    if not isinstance(answer, FailureAnswer):
        computed = parts.plan_service.computed_failures
        raise _not_yet("the failure leads to", answer, f" ({plural(computed, 'failure')} so far)"
                       * bool(worst_failure and computed))
    return report_failure(answer, plan, max(0.0, parts.clock() - answer.made_at),
                          parts.gateway.pool_space())

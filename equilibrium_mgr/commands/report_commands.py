"""Commands that only read: `status`, `explain`, `history`, `metrics`, `report`, `dump-state`, `df`,
`osds`, `moves` and `eval`.

They raise CommandError for names that do not exist, and for figures that are not known yet. A job
computes these in the meantime.
"""
from __future__ import annotations

from errno import EAGAIN, EINVAL, ENOENT
from typing import Optional, Sequence

from ..control.balancing_scope import automatic_options
from ..plan.model import Plan
from ..plan.options import Steering, osds_named
from ..plan_service.plan_service import ChangeAnswer, FailureAnswer, FailureQuestion
from ..report.answer import CommandAnswer, CommandError
from ..report.cluster.changes import report_changes
from ..report.cluster.cluster_tables import text_of
from ..report.cluster.df import report_df
from ..report.cluster.evaluation import Look, evaluate_cluster, evaluate_plan, evaluate_pool
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
from ..what_if.failure import Failure, find_failure
from .base import ModuleParts


_NEWER = " is newer than the last look at the cluster"
#: `metrics` requests a refresh if the view is older than this: seconds.
_METRICS_SECONDS = 3600.0
#: In front of the name of a plan that a pool has too.
_PLAN_PREFIX = "plan/"


def show_status(parts: ModuleParts, brief: bool = False) -> CommandAnswer:
    """Shows what equilibrium does and why. `brief`: in one line."""
    view, status, look_started = parts.refreshed()
    seen = parts.balancer.status.view
    snapshot = None
    if seen is not None:
        snapshot = seen.snapshot
    options = options_json(parts.options.value, snapshot)
    answer = report_status(status, parts.plan_service, parts.settings(), parts.clock(), view,
                           options, look_started)
    if brief:
        return answer._replace(plain=brief_line(answer.data, parts.health()))
    return answer


def explain_what(parts: ModuleParts, what: Optional[str], osd: Optional[str]) -> CommandAnswer:
    """Explains why the cluster, an OSD, a pool or a PG is not better off, or why a PG is not on
    `osd`."""
    name = what or ""
    view, age, status, _ = parts.required()
    settings = parts.settings()
    dispatcher = parts.balancer.dispatcher
    context = ExplainContext(
        view, status, settings, dispatcher.excluded(view.snapshot, settings),
        parts.gateway.max_pg_shards(), parts.clock(), parts.plan_service.pg_num,
        parts.balancer.changes())
    if osd is not None:
        next_round = dispatcher.next_round(view.snapshot, settings, view.max_misplaced_ratio)
        return explain_pair(name, osd, context, next_round, age)
    pool = parts.find_pool(name)
    answer = explain(what, pool, context, age)
    if answer is not None:
        return answer
    if pool is not None:
        raise parts.outdated(f"pool '{pool}'{_NEWER}")
    return _explain_bucket(name, context, age)


def _explain_bucket(name: str, context: ExplainContext, age: float) -> CommandAnswer:
    """Explains why the fullest OSD of a host or of another bucket is not better off."""
    view = context.view
    named = osds_named(name, view.snapshot.crush) or frozenset()
    osds = named.intersection(view.snapshot.osds)
    if not osds:
        raise CommandError(ENOENT, f"'{name}' is no OSD, no host, no pool and no PG")
    fullest = max(osds, key=lambda osd: (view.utilization_now(osd), -osd))
    answer = explain(f"osd.{fullest}", None, context, age)
    assert answer is not None   # the snapshot has the OSD
    said = f"{name} has {plural(len(osds), 'OSD')}; osd.{fullest} is the fullest:"
    return answer._replace(plain=text_of([*wrap("", said, 0), answer.plain]))


def show_metrics(parts: ModuleParts) -> CommandAnswer:
    """Returns the figures for Prometheus. Those that cost little are current. However often they
    are read, they cause a refresh only once the view is older than an hour."""
    view, status = parts.newest(with_map=False)
    if view is None or parts.age(view) > _METRICS_SECONDS:
        parts.balancer.request_observation()
    return report_metrics(status, parts.balancer.totals, parts.clock(), parts.settings().active,
                          view, parts.last_round_at())


def show_history(parts: ModuleParts, limit: Optional[int]) -> CommandAnswer:
    """Shows the moves of the past."""
    status = parts.balancer.status
    return report_history(status.history, status.episode, parts.clock(), limit)


def write_page(parts: ModuleParts, plan: Optional[str]) -> CommandAnswer:
    """Writes the page about the cluster, or about a kept plan."""
    gateway = parts.gateway
    kept = None
    fsid = ""
    if plan is None:
        look = parts.look()
        evaluated = evaluate_cluster(look)
    else:
        kept = parts.plan(plan)
        look = parts.look(kept)
        evaluated = _evaluated_plan(parts, plan, kept, look)
    questions = {"": _failure_question(parts, None, None)}
    if plan is not None:
        questions[plan] = _failure_question(parts, None, plan)
    if gateway.last_reading is not None:
        fsid = str(gateway.last_reading.osd_map.get("fsid", ""))
    failures = {name: parts.plan_service.known_failure(question)
                for name, question in questions.items()}
    return report_page(evaluated.data, show_status(parts).data, look.view.snapshot, kept, fsid,
                       gateway.ceph_version(), gateway.epoch(), parts.clock(), failures)


def write_state(parts: ModuleParts, anonymous: bool) -> CommandAnswer:
    """Writes the cluster's state at the last reading, with the time of the reading."""
    reading = parts.gateway.last_reading
    parts.refreshed()
    return dump_state(reading, anonymous)


def show_df(parts: ModuleParts, plan: Optional[str], sort: Optional[str],
            limit: Optional[int]) -> CommandAnswer:
    """Shows the free space of pools: now, and after a kept plan or the one that is executed."""
    kept = parts.plan(plan) if plan is not None else None
    return report_df(parts.look(kept), plan, sort, limit)


def show_osds(parts: ModuleParts, names: Optional[Sequence[str]], sort: Optional[str],
              limit: Optional[int]) -> CommandAnswer:
    """Shows how full OSDs are and will be: all, or those of `names`."""
    return report_osds(parts.look(), names, sort, limit)


def show_moves(parts: ModuleParts, what: Optional[str], limit: Optional[int],
               by_osd: bool) -> CommandAnswer:
    """Shows the shards in flight: all, or those of an OSD, a host, a pool or a PG. `by_osd`: the
    sums of each OSD."""
    view, age, _, _ = parts.required()
    execution = parts.balancer.execution
    waiting = 0
    pool = parts.find_pool(what or "")
    if by_osd:
        return report_moves_by_osd(view, age, what, pool, limit)
    if execution is not None:
        waiting = execution.remaining_moves
    return report_moves(view, age, what, pool, waiting, limit, parts.balancer.status.steered)


def evaluate(parts: ModuleParts, option: Optional[str], fail: Optional[str], worst_failure: bool,
             changes: Sequence[Optional[Sequence[str]]]) -> CommandAnswer:
    """Evaluates the current placement, a plan (its name or plan/NAME) or a pool (its name, id or
    pool/NAME). A plan goes before a pool of the same name. `fail`, `worst_failure`: what a failure
    does to the placement or the plan. `changes`: the texts of --add, --remove, --resize and
    --pg-num."""
    asks_failure = fail is not None or worst_failure
    if any(changes):
        if asks_failure or option is not None:
            raise CommandError(EINVAL, "--add, --remove, --resize and --pg-num are of the"
                               " present placement, without another option")
        return _changes(parts, changes)
    plan = None
    if option is not None:
        plan = option.removeprefix(_PLAN_PREFIX)
    if asks_failure:
        return _failure(parts, plan, fail, worst_failure)
    if option is None or plan is None:
        return evaluate_cluster(parts.look())
    service = parts.plan_service
    is_made = plan in service.plans_in_progress() or service.last_failure(plan) is not None
    if is_made or plan in parts.plan_store.heads():
        kept = parts.plan(plan)   # raises if it is being made or could not be made
        return _evaluated_plan(parts, plan, kept, parts.look(kept))
    return _evaluated_pool(parts, option)


def _evaluated_plan(parts: ModuleParts, name: str, plan: Plan, look: Look) -> CommandAnswer:
    head = parts.plan_store.heads().get(name)
    if head is None:   # it was cancelled while its job wrote it
        raise CommandError(ENOENT, f"no plan is named '{name}'")
    return evaluate_plan(
        name, plan, look, parts.gateway.epoch(), parts.since(head.created_at),
        name == parts.balancer.plan_name, parts.outdated_reason(name, parts.summary()))


def _evaluated_pool(parts: ModuleParts, text: str) -> CommandAnswer:
    pool = parts.find_pool(text)
    if pool is None:
        raise CommandError(ENOENT, f"'{text}' is neither a plan nor a pool")
    look = parts.look()
    if pool not in look.view.usage.pools:
        raise parts.outdated(f"pool '{pool}'{_NEWER}")
    return evaluate_pool(pool, look)


def _changes(parts: ModuleParts, given: Sequence[Optional[Sequence[str]]]) -> CommandAnswer:
    """Shows what changes of the cluster lead to."""
    view = parts.required()[0]
    texts = [one or () for one in given]
    try:
        changes = parse_changes(view.snapshot, *texts)
    except LookupError as unknown:
        raise CommandError(ENOENT, str(unknown)) from None
    except ValueError as bad:
        raise CommandError(EINVAL, str(bad)) from None
    answer = parts.plan_service.changes(changes, view.snapshot)
    if not isinstance(answer, ChangeAnswer):
        raise _not_yet("the change leads to", answer, "")
    return report_changes(changes, answer.figures, view, answer.epoch,
                          parts.since(answer.taken_at))


def _not_yet(what: str, failure: Optional[str], progress: str) -> CommandError:
    """Returns the error for figures that a job still computes. `failure`: why the job failed, if it
    did. `progress`: how far it is."""
    state = f"is being computed{progress}"
    if failure is not None:
        state = f"could not be computed ({failure})"
    return CommandError(EAGAIN, f"what {what} {state}; ask again")


def _failure(parts: ModuleParts, plan: Optional[str], fail: Optional[str],
             worst_failure: bool) -> CommandAnswer:
    """Shows the failure that `fail` names, or the worst ones, in the current placement or after a
    plan."""
    if fail is not None and worst_failure:
        raise CommandError(EINVAL, "--fail and --worst-failure exclude each other")
    if plan is not None:
        parts.plan(plan)   # raises if it is being made, unknown or damaged
    failure = _named_failure(parts, fail) if fail is not None else None
    answer = parts.plan_service.failure(_failure_question(parts, failure, plan))
    if not isinstance(answer, FailureAnswer):
        computed = parts.plan_service.computed_failures
        progress = ""
        if worst_failure and computed:
            progress = f" ({plural(computed, 'failure')} so far)"
        raise _not_yet("the failure leads to", answer, progress)
    return report_failure(answer, plan, parts.since(answer.made_at), parts.gateway.pool_space())


def _failure_question(parts: ModuleParts, failure: Optional[Failure],
                      plan: Optional[str]) -> FailureQuestion:
    """Returns the question about a failure, with the options that hold when it happens."""
    settings = parts.settings()
    options = automatic_options(settings, parts.required()[0].snapshot, frozenset(),
                                parts.gateway.max_pg_shards())
    if settings.steers:
        options = options._replace(
            steering=Steering(settings.steer_recovery, settings.hold_placement))
    if plan is None:
        return FailureQuestion(failure, options)
    return FailureQuestion(failure, options, plan, parts.plan_store.heads()[plan].to_json())


def _named_failure(parts: ModuleParts, name: str) -> Failure:
    """Returns the failure of the OSD or bucket of a name. Raises CommandError if there is none, if
    nothing more would fail, and if no OSD would be left."""
    snapshot = parts.required()[0].snapshot
    failure = find_failure(snapshot, name)
    if failure is None:
        raise CommandError(ENOENT, f"--fail '{name}' is neither an OSD (3 or osd.3) nor a"
                           " bucket of the CRUSH map")
    count = len(failure.osds)
    if not count:
        raise CommandError(EINVAL, f"no OSD of '{name}' is in: nothing more would fail")
    if count == sum([osd.is_in for osd in snapshot.osds.values()]):
        raise CommandError(EINVAL, f"'{name}' has all {plural(count, 'OSD')} that are in")
    return failure

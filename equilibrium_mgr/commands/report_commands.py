"""`status`, `explain`, `history`, `metrics`, `report`, `dump-state`, and the tables `df`, `osds`
and `moves`: commands that only read. They raise CommandError for what they do not find."""
from __future__ import annotations

import errno
from typing import Optional

from ..report.cluster.evaluation import evaluate_cluster, evaluate_plan
from ..report.cluster.moves import report_moves
from ..report.cluster.osds import osd_figures, report_osds
from ..report.cluster.pools import report_df
from ..report.command_answer import CommandAnswer, CommandError
from ..report.explain.explain import explain
from ..report.explain.reason import ExplainContext
from ..report.history import report_history
from ..report.metrics import report_metrics
from ..report.page.page import report_page
from ..report.state_dump import dump_state
from ..report.status import options_json, report_status
from .module_parts import ModuleParts, refuse_empty_name

#: A view that is older than this is replaced for `metrics`: seconds.
_METRICS_SECONDS = 3600.0


def show_status(parts: ModuleParts) -> CommandAnswer:
    """What equilibrium does and why."""
    look_started = parts.request_if_old()
    view, status = parts.newest()
    known = parts.balancer.status.view
    options = options_json(parts.options.value, known.snapshot if known is not None else None)
    return report_status(status, parts.plan_service, parts.settings(), parts.clock(), view,
                         parts.next_round_at(), options, look_started)


def explain_what(parts: ModuleParts, what: Optional[str]) -> CommandAnswer:
    """Why the cluster, an OSD, a pool or a PG is not better off."""
    (view, age), settings = parts.required(), parts.settings()
    context = ExplainContext(
        view, parts.balancer.status, settings,
        parts.balancer.dispatcher.peek_excluded(view.snapshot, settings),
        parts.gateway.max_pg_shards(), parts.clock())
    answer = explain(what, context, age)
    pool = parts.find_pool(what) if what and answer is None else None
    if pool is not None:
        answer = explain(pool, context, age)
        if answer is None:
            raise parts.newer_pool(pool)
    if answer is None:
        raise CommandError(errno.ENOENT, f"'{what}' is no OSD, no pool and no PG")
    return answer


def show_metrics(parts: ModuleParts) -> CommandAnswer:
    """The figures for Prometheus, of now as far as they cost little. However often they are
    asked for, the cluster is looked at for them once an hour at most."""
    view, status = parts.newest()
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
    refuse_empty_name(plan)
    kept = parts.plan(plan) if plan is not None else None
    look = parts.look(kept)
    reading, epoch = parts.gateway.last_reading(), parts.gateway.epoch()
    evaluated = evaluate_cluster(look) if plan is None or kept is None else evaluate_plan(
        plan, kept, look, epoch, is_executing=plan == parts.executing(),
        outdated_reason=parts.outdated_reason(plan))
    return report_page(
        evaluated.data, show_status(parts).data, osd_figures(look.view, look.wanted),
        look.view.snapshot, kept,
        str(reading.osd_map.get("fsid", "")) if reading is not None else "",
        parts.gateway.ceph_version(), epoch, parts.clock())


def write_state(parts: ModuleParts, anonymous: bool) -> CommandAnswer:
    """The cluster's state at the last reading, which has its time in it."""
    reading = parts.gateway.last_reading()
    parts.request_if_old()
    return dump_state(reading, anonymous)


def df(parts: ModuleParts, plan: Optional[str], sort: Optional[str],
       limit: Optional[int]) -> CommandAnswer:
    """The free space of pools: now, and with a kept plan or the one that is executed."""
    look = parts.look(parts.plan(plan) if plan is not None else None)
    return report_df(look.view, look.age_seconds, look.space, plan, look.wanted, sort, limit)


def osds(parts: ModuleParts, sort: Optional[str], device_class: Optional[str],
         host: Optional[str], limit: Optional[int]) -> CommandAnswer:
    """How full OSDs are and will be."""
    look = parts.look()
    return report_osds(look.view, look.age_seconds, look.wanted, sort, device_class, host, limit)


def moves(parts: ModuleParts, what: Optional[str], limit: Optional[int]) -> CommandAnswer:
    """The shards in flight: all, or those of an OSD, a pool or a PG."""
    (view, age), execution = parts.required(), parts.balancer.execution
    return report_moves(view, age, what, parts.find_pool(what) if what else None,
                        execution.remaining_moves if execution is not None else 0, limit)

"""`status`, `explain`, `history`, `report` and `dump-state`."""
from __future__ import annotations

import errno
from typing import Any, Dict, Optional

from ..report.cluster.evaluation import EvaluatedPlan, evaluate_cluster, evaluate_plan
from ..report.cluster.osds import osd_figures
from ..report.command_answer import CommandAnswer, CommandError
from ..report.explain.explain import explain
from ..report.explain.reason import ExplainContext
from ..report.history import report_history
from ..report.metrics import MetricSources, report_metrics
from ..report.page.page import PageSources, report_page
from ..report.state_dump import dump_state
from ..report.status import Now, options_json, report_status
from .current_view import CurrentView
from .module_parts import ModuleParts
from .plan_commands import PlanCommands
from .plan_names import refuse_empty_name
from .pool_names import find_pool

#: A view that is older than this is replaced for `metrics`: seconds.
_METRICS_SECONDS = 3600.0


class ReportCommands:
    """Commands that only read. They raise CommandError for what they do not find."""

    def __init__(self, parts: ModuleParts, plans: PlanCommands) -> None:
        self._parts = parts
        self._plans = plans
        self._view = CurrentView(parts)

    def status(self) -> CommandAnswer:
        """What equilibrium does and why."""
        parts = self._parts
        look_started = self._view.request_if_old()
        view, status = self._view.newest()
        now = Now(parts.clock(), parts.next_round_at(), self._options(), look_started)
        return report_status(status, parts.plan_service, parts.settings(), now, view)

    def _options(self) -> Dict[str, Any]:
        view = self._parts.balancer.status.view
        return options_json(self._parts.options.value, view.snapshot if view is not None else None)

    def explain(self, what: Optional[str]) -> CommandAnswer:
        """Why the cluster, an OSD, a pool or a PG is not better off."""
        view, age = self._view.required()
        parts, settings = self._parts, self._parts.settings()
        context = ExplainContext(
            view, parts.balancer.status, settings,
            parts.balancer.dispatcher.peek_excluded(view.snapshot, settings),
            parts.gateway.max_pg_shards(), parts.clock())
        answer = explain(what, context, age)
        pool = self._find_pool(what) if what else None
        if answer is None and pool is not None:
            answer = explain(pool, context, age)
            if answer is None:
                raise self._view.newer_pool(pool)
        if answer is None:
            raise CommandError(errno.ENOENT, f"'{what}' is no OSD, no pool and no PG")
        return answer

    def metrics(self) -> CommandAnswer:
        """The figures for Prometheus, of now as far as they cost little. However often they are
        asked for, the cluster is looked at for them once an hour at most."""
        parts = self._parts
        view, status = self._view.newest()
        if view is None or self._view.age(view) > _METRICS_SECONDS:
            parts.balancer.request_observation()
        return report_metrics(MetricSources(
            status, parts.balancer.totals, parts.clock(), parts.settings().active, view,
            parts.last_round_at()))

    def history(self, limit: Optional[int] = None) -> CommandAnswer:
        """What has been moved."""
        status = self._parts.balancer.status
        return report_history(status.history, status.episode, self._parts.clock(), limit)

    def report(self, plan: Optional[str]) -> CommandAnswer:
        """The page about the cluster, or about a kept plan."""
        refuse_empty_name(plan)
        parts = self._parts
        kept = self._plans.plan(plan) if plan is not None else None
        look = self._view.look(kept)
        reading, epoch = parts.gateway.last_reading(), parts.gateway.epoch()
        evaluated = evaluate_cluster(look) if plan is None or kept is None else evaluate_plan(
            EvaluatedPlan(plan, kept, None, None, epoch, plan == parts.executing(),
                          outdated_reason=self._plans.outdated_reason(plan)), look)
        return report_page(PageSources(
            evaluated.data, self.status().data, osd_figures(look.view, look.wanted),
            look.view.snapshot, kept,
            str(reading.osd_map.get("fsid", "")) if reading is not None else "",
            parts.gateway.ceph_version(), epoch, parts.clock()))

    def dump_state(self, anonymous: bool) -> CommandAnswer:
        """The cluster's state at the last reading, which has its time in it."""
        reading = self._parts.gateway.last_reading()
        self._view.request_if_old()
        return dump_state(reading, anonymous)

    def _find_pool(self, text: str) -> Optional[str]:
        return find_pool(text, self._parts.gateway.pool_ids_by_name())

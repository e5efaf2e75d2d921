"""`status`: what equilibrium is doing and why."""
from __future__ import annotations

from typing import Any, Dict, List, Optional

from ..control.status import BalancerStatus
from ..execution.guards import pg_num_changes
from ..execution.rejections import LIFTED_BY
from ..execution.size_check.size_corrections import sentence
from ..observation.cluster_view import ClusterView
from ..observation.states import BALANCED, STUCK, WAITING
from ..observation.too_full import with_too_full
from ..plan_service.plan_service import PlanService
from ..runtime.formatting import format_bytes, format_duration, format_ratio
from .command_answer import CommandAnswer
from .evaluation import class_table, classes_json
from .options import option_lines


#: Stopped pools that the reason names; JSON has all of them.
_STOPPED_SHOWN = 3
_PG_NUM = " (a pg_num is changing: half of target_max_misplaced_ratio is left to that)"


def report_status(status: BalancerStatus, plan_service: PlanService, active: bool, now: float,
                  next_round_at: Optional[float],
                  options: Optional[Dict[str, Any]] = None, view: Optional[ClusterView] = None,
                  look_started: bool = False, change: Optional[str] = None) -> CommandAnswer:
    """Figures of the last round; reads nothing from the cluster. `options`: of options_json.

    `view`: the status's own, or that with figures of now. `look_started`: a newer one is being
    made. `change`: what has happened since that speaks against an idle state.
    """
    view = view if view is not None else status.view
    making = plan_service.plans_in_progress()
    data: Dict[str, Any] = {
        "state": status.state, "reason": status.reason, "active": active,
        "planning": [{"plan": p.plan or "automatic", "aim": p.aim, "moves": p.moves,
                      "seconds": max(0.0, now - p.started_at)} for p in making.values()],
        "last_plan": plan_service.last_plan, "last_execution": status.last_execution,
        "episode": status.episode,
        "rejected_upmaps": [{"pgid": pgid, "reason": item.reason, "lifted_by": LIFTED_BY}
                            for pgid, item in sorted(status.rejected.items())],
        "next_run_seconds": None if next_round_at is None else max(0.0, next_round_at - now)}
    if making and status.state == "off":
        data["reason"] += f"; {len(making)} plan is being made"
    data.update(options or {})
    if data.get("left_out") and status.state in (BALANCED, STUCK):
        data["reason"] += f"; left out: {'; '.join(data['left_out'])}"
    data["mispredicted"] = _mispredicted(status, view)
    data["reason"] = "; ".join([data["reason"]] + [
        entry["reason"] for entry in data["mispredicted"][:_STOPPED_SHOWN]])
    if view is not None:
        data["reason"] = with_too_full(status.state, data["reason"], view.snapshot,
                                       view.too_full)
    if change is not None:
        data["state"] = WAITING
        data["reason"] = "%s, which is looked at within ten minutes; before: %s (%s)" % (
            change, status.state, data["reason"])
    data.update(_cluster_figures(status, view, now), look_started=look_started)
    return CommandAnswer(data, _plain(data, view))


def _mispredicted(status: BalancerStatus, view: Optional[ClusterView]) -> List[Dict[str, Any]]:
    """Pools that are stopped, with bytes that an OSD took and was to take."""
    names = {} if view is None else {p.id: p.name for p in view.snapshot.pools.values()}
    return [{"pool_id": pool, "pool": names.get(pool, str(pool)), "osd": found.osd,
             "predicted_bytes": found.predicted_bytes, "measured_bytes": found.measured_bytes,
             "found_at": found.found_at, "reason": sentence(found, names.get(pool, str(pool)))}
            for pool, found in sorted(status.mispredicted.items())]


def _cluster_figures(status: BalancerStatus, view: Optional[ClusterView], now: float) -> Dict[str, Any]:
    progress = status.progress
    done = progress.summary if progress else {"remaining_moves": 0, "remaining_bytes": 0}
    figures: Dict[str, Any] = {
        "osdmap_epoch": None, "snapshot_age_seconds": None, "misplaced_ratio": None,
        "max_misplaced_ratio": None, "in_flight": {"moves": 0, "bytes": 0}, "classes": {},
        "too_full": [],
        "builtin_balancer_active": status.builtin_active,
        "remaining": {"moves": done["remaining_moves"], "bytes": done["remaining_bytes"],
                      "eta_seconds": progress.eta_seconds if progress else None},
        "execution": progress.summary if progress else None}
    if view is not None:
        figures.update({
            "osdmap_epoch": view.snapshot.epoch, "builtin_balancer_active": view.builtin_active,
            "snapshot_age_seconds": max(0.0, now - view.snapshot.taken_at),
            "misplaced_ratio": view.misplaced_ratio,
            "max_misplaced_ratio": view.max_misplaced_ratio,
            "in_flight": {"moves": view.in_flight_moves, "bytes": view.in_flight_bytes},
            "classes": classes_json(view.usage.classes, view.bounds, view.classes_now),
            "too_full": [entry.to_json(view.snapshot.full_ratio) for entry in view.too_full],
            "skipped": dict(view.snapshot.skipped)})
    return figures


def _plain(data: Dict[str, Any], view: Optional[ClusterView]) -> str:
    lines = [f"state: {data['state']} ({data['reason']})"]
    if data["look_started"]:
        age = data["snapshot_age_seconds"]
        lines.append("%s; a new look has been started" % (
            "the cluster has not been looked at yet" if age is None
            else "figures are %s old" % format_duration(age)))
    if data["misplaced_ratio"] is not None:
        lines.append("misplaced: %s of at most %s%s" % (
            format_ratio(data["misplaced_ratio"]), format_ratio(data["max_misplaced_ratio"]),
            _PG_NUM if view is not None and pg_num_changes(view.snapshot) else ""))
        flight = data["in_flight"]
        lines.append(f"in flight: {flight['moves']} moves, {format_bytes(flight['bytes'])}")
    remaining = data["remaining"]
    if data["execution"]:
        eta = format_duration(remaining["eta_seconds"])
        lines.append("remaining: %d moves, %s%s" % (
            remaining["moves"], format_bytes(remaining["bytes"]), eta and ", about %s" % eta))
        lines.append(_execution_line("plan", data["execution"]))
    for progress in data["planning"]:
        lines.append("planning: %s, %d moves so far, %s" % (
            progress["plan"], progress["moves"], format_duration(progress["seconds"])))
    if data["last_plan"]:
        lines.append("last plan made: %s, %d moves, %s (%s)" % (
            data["last_plan"]["plan"], data["last_plan"]["moves"],
            format_bytes(data["last_plan"]["bytes"]), data["last_plan"]["stop_reason"]))
    if data["last_execution"]:
        lines.append("%s, %s" % (_execution_line("last execution", data["last_execution"]),
                                 data["last_execution"]["outcome"]))
    lines += option_lines(data)
    lines += _rejected_lines(data["rejected_upmaps"])
    if data["builtin_balancer_active"]:
        lines.append("built-in balancer: active")
    if data["next_run_seconds"] is not None:
        lines.append(f"next round: in {format_duration(data['next_run_seconds'])}")
    if view is not None:
        lines += ["", class_table(view.usage.classes, view.bounds, view.classes_now)]
    return "\n".join(lines)


def _execution_line(what: str, execution: Dict[str, Any]) -> str:
    return "%s: %s, %d of %d moves sent, %d found done, %d dropped" % (
        what, execution["plan"], execution["sent_moves"], execution["planned_moves"],
        execution["done_moves"], execution["dropped_moves"])


def _rejected_lines(rejected: List[Dict[str, str]]) -> List[str]:
    if not rejected:
        return []
    shown = [f"  {r['pgid']}: {r['reason']}" for r in rejected[:10]]
    return [f"rejected upmaps: {len(rejected)}, until {LIFTED_BY}"] + shown

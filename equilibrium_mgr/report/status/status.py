"""`status`: what equilibrium does, and why."""
from __future__ import annotations

from typing import Any, Dict, List, Optional

from ...control.status import BalancerStatus
from ...execution.guards import pg_num_changes
from ...execution.rejections import LIFTED_BY
from ...execution.size_check.size_corrections import sentence
from ...observation.cluster_view import ClusterView
from ...observation.states import BALANCED, STUCK, WAITING
from ...observation.too_full import with_too_full
from ...plan_service.plan_service import PlanService
from ...runtime.formatting import format_bytes, format_duration, format_ratio
from ..command_answer import CommandAnswer
from ..cluster.evaluation import class_table, classes_json
from ..options import option_lines

#: Stopped pools in the reason; JSON has all of them.
_STOPPED_SHOWN = 3
_PG_NUM = " (a pg_num is changing: half of target_max_misplaced_ratio is left to that)"


def report_status(status: BalancerStatus, plan_service: PlanService, active: bool, now: float,
                  next_round_at: Optional[float],
                  options: Optional[Dict[str, Any]] = None, view: Optional[ClusterView] = None,
                  look_started: bool = False, change: Optional[str] = None) -> CommandAnswer:
    """The figures of the last round; reads nothing from the cluster.

    `now` and `next_round_at` are in seconds since the epoch. `options`: see options_json. `view`:
    that of the status, or one with present figures. `look_started`: a newer view is on its way.
    `change`: a change of the cluster since then that ends an idle state.
    """
    view = view if view is not None else status.view
    in_progress = plan_service.plans_in_progress()
    data: Dict[str, Any] = {
        "state": status.state, "reason": status.reason, "active": active,
        "planning": [{"plan": p.plan or "automatic", "aim": p.aim, "moves": p.moves,
                      "seconds": max(0.0, now - p.started_at)} for p in in_progress.values()],
        "last_plan": plan_service.last_plan, "last_execution": status.last_execution,
        "episode": status.episode,
        "rejected_upmaps": [{"pgid": pgid, "reason": item.reason, "lifted_by": LIFTED_BY}
                            for pgid, item in sorted(status.rejected.items())],
        "next_run_seconds": None if next_round_at is None else max(0.0, next_round_at - now)}
    if in_progress and status.state == "off":
        data["reason"] += f"; {len(in_progress)} plan is being made"
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
        data["reason"] = (f"{change}, which is looked at within ten minutes; before:"
                          f" {status.state} ({data['reason']})")
    data.update(_cluster_figures(status, view, now), look_started=look_started)
    return CommandAnswer(data, _plain(data, view))


def _mispredicted(status: BalancerStatus, view: Optional[ClusterView]) -> List[Dict[str, Any]]:
    """Pools that are stopped, with the predicted and the measured bytes of an OSD."""
    names = {} if view is None else {p.id: p.name for p in view.snapshot.pools.values()}
    return [{"pool_id": pool, "pool": names.get(pool, str(pool)), "osd": found.osd,
             "predicted_bytes": found.predicted_bytes, "measured_bytes": found.measured_bytes,
             "found_at": found.found_at, "reason": sentence(found, names.get(pool, str(pool)))}
            for pool, found in sorted(status.mispredicted.items())]


def _cluster_figures(status: BalancerStatus, view: Optional[ClusterView],
                     now: float) -> Dict[str, Any]:
    progress = status.progress
    done = progress.summary if progress else {"remaining_moves": 0, "remaining_bytes": 0}
    figures: Dict[str, Any] = {
        "osdmap_epoch": None, "snapshot_age_seconds": None, "misplaced_ratio": None,
        "max_misplaced_ratio": None, "in_flight": {"moves": 0, "bytes": 0}, "classes": {},
        "too_full": [],
        "builtin_balancer_active": status.builtin_active,
        "remaining": {"moves": done["remaining_moves"], "bytes": done["remaining_bytes"],
                      "eta_seconds": progress.eta_seconds(now) if progress else None},
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
        figures = ("the cluster has not been looked at yet" if age is None
                   else f"figures are {format_duration(age)} old")
        lines.append(f"{figures}; a new look has been started")
    if data["misplaced_ratio"] is not None:
        pg_num = _PG_NUM if view is not None and pg_num_changes(view.snapshot) else ""
        lines.append(f"misplaced: {format_ratio(data['misplaced_ratio'])} of at most"
                     f" {format_ratio(data['max_misplaced_ratio'])}{pg_num}")
        flight = data["in_flight"]
        lines.append(f"in flight: {flight['moves']} moves, {format_bytes(flight['bytes'])}")
    lines += _plan_lines(data)
    lines += option_lines(data)
    lines += _rejected_lines(data["rejected_upmaps"])
    if data["builtin_balancer_active"]:
        lines.append("built-in balancer: active")
    if data["next_run_seconds"] is not None:
        lines.append(f"next round: in {format_duration(data['next_run_seconds'])}")
    if view is not None:
        lines += ["", class_table(view.usage.classes, view.bounds, view.classes_now)]
    return "\n".join(lines)


def _plan_lines(data: Dict[str, Any]) -> List[str]:
    """The plan that is executed, those in progress, and the last ones."""
    lines: List[str] = []
    if data["execution"]:
        remaining = data["remaining"]
        eta = format_duration(remaining["eta_seconds"])
        lines.append(f"remaining: {remaining['moves']} moves, {format_bytes(remaining['bytes'])}"
                     + (f", about {eta}" if eta else ""))
        lines.append(_execution_line("plan", data["execution"]))
    lines += [f"planning: {progress['plan']}, {progress['moves']} moves so far,"
              f" {format_duration(progress['seconds'])}" for progress in data["planning"]]
    if data["last_plan"]:
        plan = data["last_plan"]
        lines.append(f"last plan made: {plan['plan']}, {plan['moves']} moves,"
                     f" {format_bytes(plan['bytes'])} ({plan['stop_reason']})")
    if data["last_execution"]:
        lines.append(f"{_execution_line('last execution', data['last_execution'])},"
                     f" {data['last_execution']['outcome']}")
    return lines


def _execution_line(title: str, execution: Dict[str, Any]) -> str:
    return (f"{title}: {execution['plan']}, {execution['sent_moves']} of"
            f" {execution['planned_moves']} moves sent, {execution['done_moves']} found done,"
            f" {execution['dropped_moves']} dropped")


def _rejected_lines(rejected: List[Dict[str, str]]) -> List[str]:
    if not rejected:
        return []
    shown = [f"  {r['pgid']}: {r['reason']}" for r in rejected[:10]]
    return [f"rejected upmaps: {len(rejected)}, until {LIFTED_BY}"] + shown

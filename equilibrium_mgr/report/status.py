"""`status`: what equilibrium does, and why."""
from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence

from ..control.balancing_scope import bad_options, left_out
from ..control.status import BalancerStatus
from ..control.time_window import is_limited, is_open, next_opening, window_of
from ..execution.change_outcomes import WaitingGroup
from ..execution.guards import changing_pg_nums
from ..execution.rejections import Items
from ..execution.size_check.size_corrections import sentence
from ..observation.cluster_view import ClusterView
from ..observation.states import BALANCED, OFF, STUCK
from ..observation.too_full import with_too_full
from ..plan_service.plan_service import PlanService
from ..runtime.formatting import format_deadline, format_percent, format_points, plural
from ..settings import Settings, changed_options, read_settings
from ..snapshot import reason_codes as codes
from ..snapshot.model import Snapshot
from ..snapshot.reason_codes import REASONS
from .cluster.classes import class_figures
from .command_answer import CommandAnswer
from .drains import drains_json
from .explain.help import state_action
from .explain.outage import find_outage, unused_hosts
from .status_screen import status_screen


#: Stopped pools in the reason; JSON has all of them.
_STOPPED_SHOWN = 3
#: A class whose fullest OSD is further above the bound is not called balanced without a reason.
_NEAR = 0.01


class Now(NamedTuple):
    """What a command knows that the published status does not."""

    at: float                              # seconds since the epoch
    next_round_at: Optional[float] = None  # likewise; None before the first round
    options: Mapping[str, Any] = {}        # see report/options.py
    look_started: bool = False             # a newer view is on its way
    growth: Sequence[Mapping[str, Any]] = ()   # see class_growth in report/cluster/growth.py


def report_status(status: BalancerStatus, plan_service: PlanService, settings: Settings, now: Now,
                  view: Optional[ClusterView] = None) -> CommandAnswer:
    """The figures of the last round; reads nothing from the cluster. `view`: that of the status,
    or one with present figures."""
    view = view if view is not None else status.view
    classes = class_figures(view, status.wanted if status.progress else None) if view else []
    data: Dict[str, Any] = {
        "active": settings.active, "state": status.state, "since_at": status.since_at,
        "reason_code": status.reason_code, "reason": status.reason, "action": None,
        "waiting": [group.to_json() for group in status.waiting], "classes": classes,
        "planning": [{"plan": p.plan or "automatic", "aim": p.aim, "moves": p.moves,
                      "seconds": max(0.0, now.at - p.started_at)}
                     for p in plan_service.plans_in_progress().values()],
        "last_plan": plan_service.last_plan, "last_execution": status.last_execution,
        "episode": status.episode, "rejected": _rejected(status.rejected),
        "mispredicted": _mispredicted(status, view), "window": _window(settings, now.at),
        "next_run_seconds": (None if now.next_round_at is None
                             else max(0.0, now.next_round_at - now.at)),
        "drains": drains_json(status.drains), "growth": list(now.growth),
        "look_started": now.look_started, "options": [], "left_out": [], **now.options}
    data.update(_cluster_figures(status, view, settings, now.at))
    data["progress"] = _progress(status, now.at)
    data["reason"] = _reason(status, view, data)
    outage = find_outage(status, view)
    data["outage"] = None if outage is None else outage._asdict()
    data["unused_hosts"] = [] if view is None else unused_hosts(view.snapshot)
    data["action"] = (state_action(status, view, settings, now.at) if outage is None
                      else outage.action)
    return CommandAnswer(data, status_screen(data, settings, now.at))


# -- the reason ------------------------------------------------------------------------------------

def _reason(status: BalancerStatus, view: Optional[ClusterView], data: Mapping[str, Any]) -> str:
    """Why it is in this state: the largest groups of what waits, then what else is in the way."""
    said = [_waiting(status, view) or status.reason]
    if status.state == OFF and data["planning"]:
        said.append(f"{plural(len(data['planning']), 'plan is', 'plans are')} being made")
    if status.state in (BALANCED, STUCK):
        if data["left_out"]:
            said.append(f"left out: {'; '.join(data['left_out'])}")
        said += _above_bound(status, data["classes"])
    said += [entry["reason"] for entry in data["mispredicted"][:_STOPPED_SHOWN]]
    reason = "; ".join(said)
    if view is None:
        return reason
    return with_too_full(status.state, reason, view.too_full)


def _waiting(status: BalancerStatus, view: Optional[ClusterView]) -> Optional[str]:
    """What the shards of the plan wait for. Of silent OSDs all are counted, not only those that
    shards wait for."""
    if status.progress is None or not status.waiting:
        return None
    silent = 0 if view is None else len(view.stale_osds | view.snapshot.stale_osds)
    groups = [group._replace(osds=max(group.osds, silent))
              if group.code == codes.STALE_STATISTICS else group for group in status.waiting]
    return waiting_sentence(groups, status.progress.summary["planned_moves"])


def _above_bound(status: BalancerStatus, classes: Sequence[Mapping[str, Any]]) -> List[str]:
    """Of a balanced cluster: classes whose fullest OSD is clearly above the bound of all pools. The
    bound is of OSDs that take data: a drained one is not held against it."""
    found: List[str] = []
    for row in classes:
        prefix = "soon_" if row["fullest_osd"] in status.drains.drains.osds else ""
        bound, highest = row["bound_utilization"], row[f"{prefix}max_utilization"]
        if status.state != BALANCED or bound is None or highest is None or (
                highest - bound < _NEAR):
            continue
        found.append(f"osd.{row[f'{prefix}fullest_osd']} of class {row['device_class']} is"
                     f" {format_points(highest - bound)} points above the bound of"
                     f" all pools ({format_percent(bound)}%)")
    return found


# -- figures ---------------------------------------------------------------------------------------

def _cluster_figures(status: BalancerStatus, view: Optional[ClusterView], settings: Settings,
                     now: float) -> Dict[str, Any]:
    figures: Dict[str, Any] = {
        "osdmap_epoch": None, "snapshot_age_seconds": None, "look_outdated": False,
        "statistics_age_seconds": None,
        "stale_osds": [], "misplaced_ratio": None, "too_full": [], "skipped": {},
        "limits": _limits(settings, view),
        "moving": dict.fromkeys(("shards", "bytes", "backfilling", "backfill_wait",
                                 "other_shards", "other_bytes")),
        "builtin_balancer_active": status.builtin_active,
        "execution": status.progress.summary if status.progress else None}
    if view is not None:
        at = view.statistics_at
        figures.update({
            "osdmap_epoch": view.snapshot.epoch, "builtin_balancer_active": view.builtin_active,
            "snapshot_age_seconds": max(0.0, now - view.snapshot.taken_at),
            "statistics_age_seconds": None if at is None else max(0.0, now - at),
            "look_outdated": view.has_drifted or view.misplaced_ratio > 0.0,
            "stale_osds": sorted(view.stale_osds), "misplaced_ratio": view.misplaced_ratio,
            "moving": view.moving._asdict(),
            "too_full": [entry.to_json(view.snapshot.full_ratio) for entry in view.too_full],
            "skipped": dict(view.snapshot.skipped)})
    return figures


def _limits(settings: Settings, view: Optional[ClusterView]) -> Dict[str, Any]:
    """The limits in force. While a pg_num changes, half of target_max_misplaced_ratio is left to
    the mgr for that."""
    return {"max_misplaced_ratio": view.max_misplaced_ratio if view is not None else None,
            "urgent_misplaced_ratio": settings.urgent_misplaced_ratio,
            "urgent_osds": [] if view is None else _urgent_osds(settings, view),
            "changing_pg_num_pools": ([] if view is None else changing_pg_nums(view.snapshot)),
            "max_backfills_per_osd": settings.max_backfills_per_osd,
            "max_transit_ratio": settings.max_transit_ratio,
            "max_moves_per_round": settings.max_moves_per_round,
            "fill_limit": settings.fill_limit, "max_upmap_items": settings.max_upmap_items}


def _urgent_osds(settings: Settings, view: ClusterView) -> List[int]:
    """OSDs above backfillfull that urgent_misplaced_ratio is in effect for."""
    if settings.urgent_misplaced_ratio <= view.max_misplaced_ratio:
        return []
    return sorted(osd.id for osd in view.snapshot.osds.values()
                  if osd.reaches(view.snapshot.backfillfull_ratio))


def _progress(status: BalancerStatus, now: float) -> Optional[Dict[str, Any]]:
    """Bytes of the episode, and the time that is left; None where nothing is executed."""
    progress = status.progress
    if progress is None:
        return None
    seconds, ends, why = progress.eta_seconds(now), _cooldown_ends(status), progress.still_reason
    if ends:
        seconds, why = None, f"nothing moves before {format_deadline(min(ends))} (pg_cooldown)"
    least, most = (None, None) if seconds is None else (
        max(0.0, at - now) for at in progress.eta_range_at)
    return {"bytes_total": progress.bytes_total, "bytes_done": progress.bytes_done,
            "bytes_per_second": None if seconds is None else progress.bytes_per_second,
            "eta_seconds": seconds, "eta_least_seconds": least, "eta_most_seconds": most,
            "eta_osd": None if seconds is None else progress.eta_osd,
            "eta_unknown_reason": why if seconds is None else None}


def _cooldown_ends(status: BalancerStatus) -> List[float]:
    """When pg_cooldown ends for each PG that waits for it, seconds since the epoch; none where
    anything else of the execution is on its way or waits."""
    if status.view is None or status.view.moving.shards or (
            len(status.deferred) < len(status.wanted)):
        return []
    ends = [deferral.numbers.get("ends_at") for _, deferral in status.deferred
            if deferral.code == codes.COOLDOWN]
    return [float(end) for end in ends if end is not None] if (
        len(ends) == len(status.deferred)) else []


def _rejected(items: Items) -> List[Dict[str, Any]]:
    """Upmap items that the monitor did not keep, by the reason, the most frequent first."""
    groups: Dict[str, List[str]] = {}
    for pgid, item in sorted(items.items()):
        groups.setdefault(item.reason, []).append(pgid)
    return [{"reason": reason, "pgids": pgids} for reason, pgids in sorted(
        groups.items(), key=lambda group: (-len(group[1]), group[0]))]


def _mispredicted(status: BalancerStatus, view: Optional[ClusterView]) -> List[Dict[str, Any]]:
    """Pools that are stopped, with the predicted and the measured bytes of an OSD."""
    names = {} if view is None else {p.id: p.name for p in view.snapshot.pools.values()}
    return [{"pool_id": pool, "pool": names.get(pool, str(pool)), "osd": found.osd,
             "predicted_bytes": found.predicted_bytes, "measured_bytes": found.measured_bytes,
             "found_at": found.found_at, "reason": sentence(found, names.get(pool, str(pool)))}
            for pool, found in sorted(status.mispredicted.items())]


def _window(settings: Settings, now: float) -> Optional[Dict[str, Any]]:
    """The window of automatic balancing; None where the options set none."""
    window = window_of(settings)
    if not is_limited(window):
        return None
    is_open_now = is_open(window, now)
    return {**window._asdict(), "is_open": is_open_now,
            "opens_at": None if is_open_now else next_opening(window, now)}


def options_json(option: Callable[[str], Any], snapshot: Optional[Snapshot]) -> Dict[str, Any]:
    """For `status --format json`; `option` is the mgr's `get_module_option`."""
    settings = read_settings(option)
    bad: Dict[str, List[str]] = {}
    for one in bad_options(settings, snapshot):
        bad.setdefault(one.option, []).append(f"'{one.value}': {one.reason}")
    return {
        "options": [dict(changed._asdict(), bad="; ".join(bad.get(changed.name, [])) or None)
                    for changed in changed_options(option)],
        "left_out": left_out(settings, snapshot) if snapshot is not None else []}


#: Groups that a sentence names before it only counts the rest.
_NAMED = 4


def waiting_sentence(groups: Sequence[WaitingGroup], planned: int) -> str:
    """Why shards wait, the largest group first. `planned`: shards of the whole plan."""
    total = sum(group.shards for group in groups)
    waits = "waits" if total == 1 else "wait"
    if len(groups) == 1:
        return f"{total} of {plural(planned, 'shard')} {waits} {groups[0].waits_for}"
    named = [f"{group.shards} {group.waits_for}" for group in groups[:_NAMED]]
    others = sum(group.shards for group in groups[_NAMED:])
    if others:
        named.append(f"{others} for other reasons")
    return f"{total} of {plural(planned, 'shard')} {waits}: {', '.join(named)}"

"""`status`: what equilibrium does, and why."""
from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence

from ..control.balancing_scope import bad_options, left_out
from ..control.status import BalancerStatus
from ..control.time_window import is_limited, is_open, next_opening, window_of
from ..execution.change_outcomes import WaitingGroup
from ..execution.guards import changing_pg_nums
from ..execution.size_check.size_corrections import sentence
from ..observation.cluster_view import ClusterView
from ..observation.planned_placement import planned_placement
from ..observation.states import BALANCED, OFF, STUCK
from ..observation.too_full import with_too_full
from ..plan_service.plan_service import PlanService
from ..runtime.formatting import format_deadline, format_percent, format_points, plural
from ..settings import Settings, changed_options, read_settings
from ..snapshot import reason_codes as codes
from ..snapshot.model import Snapshot
from .cluster.classes import class_rows
from .command_answer import CommandAnswer
from .drains import drains_json
from .explain.help import state_action
from .explain.outage import find_outage, unused_hosts
from .status_screen import status_screen

#: Stopped pools in the reason; JSON has all of them.
_STOPPED_SHOWN = 3
#: Groups of waiting shards that a sentence names before it only counts the rest.
_GROUPS_SHOWN = 4
#: A class whose fullest OSD is further above the bound is not called balanced without a reason.
_NEAR = 0.01


def report_status(status: BalancerStatus, plan_service: PlanService, settings: Settings, now: float,
                  view: Optional[ClusterView] = None, next_round_at: Optional[float] = None,
                  options: Mapping[str, Any] = {}, look_started: bool = False) -> CommandAnswer:
    """The figures of the last round; reads nothing from the cluster.

    `now`, `next_round_at` (None before the first round): seconds since the epoch. `view`: that of
    the status, or one with present figures. `options`: as options_json returns them.
    `look_started`: a newer view is on its way.
    """
    view = view if view is not None else status.view
    snapshot = None if view is None else view.snapshot
    classes = [] if view is None else class_rows(view, None if status.progress is None else (
        planned_placement(view, status.wanted).used))
    names = {} if snapshot is None else {p.id: p.name for p in snapshot.pools.values()}
    rejected: Dict[str, List[str]] = {}   # reason → PGs
    for pgid, item in sorted(status.rejected.items()):
        rejected.setdefault(item.reason, []).append(pgid)
    reported_at = None if view is None else view.statistics_at
    urgent = [] if snapshot is None or view is None or (
        settings.urgent_misplaced_ratio <= view.max_misplaced_ratio) else sorted(
            osd.id for osd in snapshot.osds.values() if osd.reaches(snapshot.backfillfull_ratio))
    outage = find_outage(status, view)
    data: Dict[str, Any] = {
        "active": settings.active, "state": status.state, "since_at": status.since_at,
        "reason_code": status.reason_code,
        "action": (state_action(status, view, settings, now) if outage is None
                   else outage["action"]),
        "waiting": [group.to_json() for group in status.waiting], "classes": classes,
        "planning": [{"plan": p.plan or "automatic", "aim": p.aim, "moves": p.moves,
                      "seconds": max(0.0, now - p.started_at)}
                     for p in plan_service.plans_in_progress().values()],
        "last_plan": plan_service.last_plan, "last_execution": status.last_execution,
        "episode": status.episode,
        "rejected": [{"reason": reason, "pgids": pgids} for reason, pgids in sorted(
            rejected.items(), key=lambda group: (-len(group[1]), group[0]))],
        "mispredicted": [{
            "pool_id": pool, "pool": names.get(pool, str(pool)), "osd": found.osd,
            "predicted_bytes": found.predicted_bytes, "measured_bytes": found.measured_bytes,
            "found_at": found.found_at, "reason": sentence(found, names.get(pool, str(pool)))}
            for pool, found in sorted(status.mispredicted.items())],
        "window": _window(settings, now),
        "next_run_seconds": (None if next_round_at is None
                             else max(0.0, next_round_at - now)),
        "drains": drains_json(status.drains),
        "look_started": look_started, "options": [], "left_out": [], **options,
        "osdmap_epoch": snapshot.epoch if snapshot is not None else None,
        "snapshot_age_seconds": (None if snapshot is None
                                 else max(0.0, now - snapshot.taken_at)),
        "look_outdated": view is not None and (view.has_drifted or view.misplaced_ratio > 0.0),
        "statistics_age_seconds": None if reported_at is None else max(0.0, now - reported_at),
        "stale_osds": sorted(view.stale_osds) if view is not None else [],
        "misplaced_ratio": view.misplaced_ratio if view is not None else None,
        "too_full": [] if view is None else [
            entry.to_json(view.snapshot.full_ratio) for entry in view.too_full],
        "skipped": dict(snapshot.skipped) if snapshot is not None else {},
        # while a pg_num changes, half of target_max_misplaced_ratio is left to the mgr for that
        "limits": {"max_misplaced_ratio": view.max_misplaced_ratio if view is not None else None,
                   "urgent_misplaced_ratio": settings.urgent_misplaced_ratio,
                   "urgent_osds": urgent,   # that it is in effect for
                   "changing_pg_num_pools": ([] if snapshot is None
                                             else changing_pg_nums(snapshot)),
                   "max_backfills_per_osd": settings.max_backfills_per_osd,
                   "max_transit_ratio": settings.max_transit_ratio,
                   "max_moves_per_round": settings.max_moves_per_round,
                   "fill_limit": settings.fill_limit, "max_upmap_items": settings.max_upmap_items},
        "moving": view.moving._asdict() if view is not None else dict.fromkeys((
            "shards", "bytes", "backfilling", "backfill_wait", "other_shards", "other_bytes")),
        "builtin_balancer_active": (status if view is None else view).builtin_active,
        "execution": status.progress.summary if status.progress else None,
        "progress": _progress(status, now),
        "outage": outage,
        "unused_hosts": [] if snapshot is None else unused_hosts(snapshot)}
    data["reason"] = _reason(status, view, data)
    return CommandAnswer(data, status_screen(data, settings, now))


def _reason(status: BalancerStatus, view: Optional[ClusterView], data: Mapping[str, Any]) -> str:
    """Why it is in this state: the largest groups of what waits, then what else is in the way."""
    said = [status.reason]
    if status.progress is not None and status.waiting:
        # of silent OSDs all are counted, not only those that shards wait for
        silent = 0 if view is None else len(view.stale_osds | view.snapshot.stale_osds)
        said = [_waiting_sentence([group._replace(osds=max(group.osds, silent))
                                   if group.code == codes.STALE_STATISTICS else group
                                   for group in status.waiting],
                                  status.progress.summary["planned_moves"])]
    if status.state == OFF and data["planning"]:
        said.append(f"{plural(len(data['planning']), 'plan is', 'plans are')} being made")
    if status.state in (BALANCED, STUCK) and data["left_out"]:
        said.append(f"left out: {'; '.join(data['left_out'])}")
    for row in data["classes"] if status.state == BALANCED else ():
        # the bound is of OSDs that take data: a drained one is not held against it
        prefix = "soon_" if row["fullest_osd"] in status.drains.drains.osds else ""
        bound, highest = row["bound_utilization"], row[f"{prefix}max_utilization"]
        if bound is not None and highest is not None and highest - bound >= _NEAR:
            said.append(f"osd.{row[f'{prefix}fullest_osd']} of class {row['device_class']} is"
                        f" {format_points(highest - bound)} points above the bound of"
                        f" all pools ({format_percent(bound)}%)")
    said += [entry["reason"] for entry in data["mispredicted"][:_STOPPED_SHOWN]]
    return with_too_full(status.state, "; ".join(said), () if view is None else view.too_full)


def _waiting_sentence(groups: Sequence[WaitingGroup], planned: int) -> str:
    """Why shards wait, the largest group first. `planned`: shards of the whole plan."""
    total = sum(group.shards for group in groups)
    begin = f"{total} of {plural(planned, 'shard')} {'waits' if total == 1 else 'wait'}"
    if len(groups) == 1:
        return f"{begin} {groups[0].waits_for}"
    parts = [f"{group.shards} {group.waits_for}" for group in groups[:_GROUPS_SHOWN]]
    others = sum(group.shards for group in groups[_GROUPS_SHOWN:])
    return f"{begin}: {', '.join(parts + [f'{others} for other reasons'] * (others > 0))}"


def _progress(status: BalancerStatus, now: float) -> Optional[Dict[str, Any]]:
    """Bytes of the episode, and the time that is left; None where nothing is executed."""
    progress = status.progress
    if progress is None:
        return None
    seconds, why, ends = progress.eta_seconds(now), progress.still_reason, [
        why.numbers.get("ends_at") for _, why in status.deferred if why.code == codes.COOLDOWN]
    known = [float(end) for end in ends if end is not None]
    if known and len(known) == len(status.deferred) >= len(status.wanted) and (
            status.view is not None and not status.view.moving.shards):
        seconds, why = None, f"nothing moves before {format_deadline(min(known))} (pg_cooldown)"
    least, most = (None, None) if seconds is None else (
        max(0.0, at - now) for at in progress.eta_range_at)
    return {"bytes_total": progress.bytes_total, "bytes_done": progress.bytes_done,
            "bytes_per_second": None if seconds is None else progress.bytes_per_second,
            "eta_seconds": seconds, "eta_least_seconds": least, "eta_most_seconds": most,
            "eta_osd": None if seconds is None else progress.eta_osd,
            "eta_unknown_reason": why if seconds is None else None}


def _window(settings: Settings, now: float) -> Optional[Dict[str, Any]]:
    """The window of automatic balancing; None where the options set none."""
    window = window_of(settings)
    if not is_limited(window):
        return None
    is_open_now = is_open(window, now)
    return {**window._asdict(), "is_open": is_open_now,
            "opens_at": None if is_open_now else next_opening(window, now)}


def options_json(option: Callable[[str], Any], snapshot: Optional[Snapshot]) -> Dict[str, Any]:
    """Options that are not at their default, bad values, and what balancing leaves out; `option` is
    the mgr's `get_module_option`."""
    settings = read_settings(option)
    bad: Dict[str, List[str]] = {}
    for one in bad_options(settings, snapshot):
        bad.setdefault(one.option, []).append(f"'{one.value}': {one.reason}")
    return {
        "options": [dict(changed._asdict(), bad="; ".join(bad.get(changed.name, [])) or None)
                    for changed in changed_options(option)],
        "left_out": left_out(settings, snapshot) if snapshot is not None else []}

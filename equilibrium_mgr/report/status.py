"""`status`: what equilibrium does, and why; one labelled line for each thing that says something,
and a table.
"""
from __future__ import annotations

import time
from functools import partial
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Tuple

from ..control.balancing_scope import bad_options, left_out
from ..control.cluster_guards import is_limited, is_open, next_opening
from ..control.status import BalancerStatus
from ..execution.guards import changing_pg_nums, full_osds
from ..execution.outcomes import held
from ..execution.size_check import sentence
from ..observation.cluster_view import BALANCED, MOVING, OFF, STUCK, ClusterView, with_too_full
from ..observation.movements import MovingTotals, slow_osds, states_text
from ..plan.model import MOTIONLESS
from ..plan_service.plan_service import PlanService
from ..runtime.formatting import (
    format_bytes, format_deadline, format_duration, format_local, format_percent, format_time,
    named, named_osds, plural, wrap)
from ..runtime.time_slice import grouped
from ..settings import Settings, changed_options, read_settings
from ..snapshot import reason_codes as codes
from ..snapshot.model import Snapshot
from .answer import CommandAnswer, render_table
from .cluster.cluster_tables import class_rows, class_table
from .explain.advice import room_clauses, state_action
from .explain.outage import find_outage, unused_hosts
from .operations import drains_json


_DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
#: PGs or OSDs that a line names before it only counts the rest.
_NAMED = 3
#: Seconds after which the figures of an observation are not of now.
_OLD_SECONDS = 90.0

Data = Mapping[str, Any]


def status_screen(data: Data, settings: Settings, now: float) -> str:
    """The whole screen from the JSON of `status`; `now` in seconds since the epoch."""
    lines: List[str] = []

    def say(label: str, text: str) -> None:
        """A line of what says something."""
        lines.extend(wrap(label, text) if text else [])
    execution, outage = data["execution"], data["outage"]
    helps = "" if data["action"] in (None, codes.NOTHING) else str(data["action"])
    broken = [outage["sentence"]] if outage is not None else []
    broken += room_clauses(data["will_not_fit"])
    broken += [one["sentence"] for one in data["slow_osds"][:_NAMED]]
    if broken:
        say("cluster:", "; ".join(broken))
        say("do:", helps)
    say("automatic:", _automatic(data, settings))
    say("state:", _state_text(data, now))
    if not (data["state"] in (OFF, MOVING) and not data["waiting"] and not data["too_full"]
            and data["reason_code"] in (codes.SWITCHED_OFF, codes.MOVING)
            and not data["mispredicted"]):
        say("why:", str(data["reason"]))
    if not broken:
        say("do:", helps)
    for host in data["unused_hosts"][:1]:
        more = len(data["unused_hosts"]) - 1
        say("unused:", host["sentence"] + (
            f"; {plural(more, 'more host')} likewise" if more else ""))
    drains = data["drains"]
    say("draining:", drains["sentence"] + (   # what is left of one that is paused
        f"; {plural(drains['shards'], 'shard')}, {format_bytes(drains['bytes'])} left"
        if drains["paused"] and drains["shards"] else ""))
    say("progress:", _progress_line(data))
    say("moving:", _moving_text(data["moving"]))
    latency = data["client_latency"] or {"recent_seconds": None}
    if latency["recent_seconds"] is not None:
        recent, before = latency["recent_seconds"], latency["before_seconds"]
        say("clients:", f"an op takes {1000.0 * recent:.1f} ms in the last minutes" + (
            "" if before is None else f", {1000.0 * before:.1f} ms before these moves")
            + f", at {plural(latency['osds'], 'OSD')} of theirs")
    stacked = [f"{limit} at osd.{osd}" for osd, limit in data["stacked_backfills"].items()]
    if stacked:
        say("backfills:", f"osd_max_backfills is {named(stacked, 2)}, on rotating disks: clients"
            " wait two to three times as long for each byte moved, and no more is moved; see 'ceph"
            f" config show {stacked[0].split()[-1]}'")
    if data["misplaced_ratio"] is not None and (data["misplaced_ratio"] or execution):
        say("misplaced:", f"{format_percent(data['misplaced_ratio'])}%"
            f" ({_limit_text(data['limits'])})")
    say("planning:", "; ".join(
        f"{plan['plan']}, {plural(plan['moves'], 'shard')} so far,"
        f" {format_duration(plan['seconds'])}" for plan in data["planning"]))
    last = data["last_execution"]   # of automatic ones `history` tells
    if last is not None and execution is None and last["plan"] != "automatic":
        say("last plan:", _last_plan_text(last, now))
    looked = data["snapshot_age_seconds"]
    if looked is None:
        say("figures:", "none yet: the cluster is being read" * data["look_started"])
    elif looked >= _OLD_SECONDS and (
            data["look_outdated"] or outage is not None and data["active"]):
        say("figures:", f"of {format_duration(looked)} ago but for %USE, %MAX and %MIN")
    say("flags:", ", ".join(data["flags"]))
    say("window:", window_text(data["window"]))
    say("options:", ", ".join(f"{one['name']}={one['value']}" for one in data["options"]))
    left_out = "; ".join(data["left_out"])
    say("left out:", "" if f"left out: {left_out}" in data["reason"] else left_out)
    for bad in [one for one in data["options"] if one["bad"]]:
        say("bad option:", f"{bad['name']} is {bad['bad']}")
    for group in data["rejected"]:
        say("rejected:", f"{plural(len(group['pgids']), 'PG')}, {group['reason']}"
            f" ({named(group['pgids'], _NAMED)}); tried again by"
            f" {format_deadline(group['until_at'])}")
    if data["builtin_balancer_active"]:
        say("built-in:", "the built-in balancer is active")
    return "\n".join(lines + (
        ["", render_table(*class_table(data["classes"]))] if data["classes"] else []))


def _state_text(data: Data, now: float) -> str:
    """The state, since when it lasts, and the age of the statistics that it rests on."""
    text: str = data["state"]
    since, age = data["since_at"], data["statistics_age_seconds"]
    if since is not None:
        text += f" since {_clock_time(since, now)} ({format_duration(max(0.0, now - since))})"
    if age is not None:
        text += f", statistics {format_duration(age)} old"
    unusable = len(data["stale_osds"])
    if age is not None and unusable:
        is_all = unusable >= sum(row["osds"] for row in data["classes"])
        silent = named_osds(data["stale_osds"], _NAMED)
        text += f" (all {plural(unusable, 'OSD')})" if is_all else f" ({silent})"
    return text


def _moving_text(moving: Data) -> str:
    """Shards in flight, ours and others'; empty where there are none."""
    shards, others = moving["shards"] or 0, moving["other_shards"] or 0
    if not (shards or others):
        return ""
    ours = f"{plural(shards, 'shard')}, {format_bytes(moving['bytes'])}"
    return f"{ours}{states_text(moving['states'])}" + (
        f"; {others} not ours, {format_bytes(moving['other_bytes'])}"
        f"{states_text(moving['other_states'])}" if others else "")


def _limit_text(limits: Data) -> str:
    """The misplaced limit in force, and why it is another one than the option says."""
    text = f"limit {format_percent(limits['max_misplaced_ratio'])}%"
    for pool in limits["changing_pg_num_pools"][:1]:
        text += f": half of target_max_misplaced_ratio, while pg_num of pool {pool} changes"
    for osd in limits["urgent_osds"][:1]:
        more = len(limits["urgent_osds"]) - 1
        text += (f"; urgent limit {format_percent(limits['urgent_misplaced_ratio'])}% for what"
                 f" leaves osd.{osd}{f' and {more} more' if more else ''}, too full or soon so")
    return text


def _last_plan_text(last: Data, now: float) -> str:
    """How the last named plan has ended; what was in place may have been sent by the last mgr."""
    return f"{last['plan']}, {last['outcome']} at {_clock_time(last['ended_at'], now)}; " + (
        f"{last['sent_moves'] + last['done_moves']} of"
        f" {plural(last['planned_moves'], 'shard')} sent or in place"
        if last["planned_moves"] else "no data moved for it")


def brief_line(data: Data, raised: Optional[Iterable[str]]) -> str:
    """One line for each of many clusters, from the JSON of `status`: always the same words in their
    order, - for what is not known. `raised`: codes of our own health checks; None before the first
    round."""
    rows, moving, progress = data["classes"], data["moving"], data["progress"] or {}
    fullest, use, bound = "-", None, None
    if rows:
        first = max(rows, key=partial(_urgency, nearfull=data["limits"]["nearfull_ratio"]))
        use, bound = first["max_utilization"], first["bound_utilization"]
        fullest = f"osd.{first['fullest_osd']}"
    found = ["outage"] * (data["outage"] is not None) + [
        code.replace("MGR_EQUILIBRIUM_", "") for code in raised or ()]
    health = "-" if raised is None and not found else named(found[:1], 1) or "ok"
    return " ".join([
        data["state"], data["reason_code"], fullest, format_percent(use) or "-", "bound",
        format_percent(bound) or "-", "moving", "-" if moving["shards"] is None else str(
            moving["shards"] + moving["other_shards"]),
        "waiting", str(sum(group["shards"] for group in data["waiting"])),
        "left", format_duration(progress.get("eta_seconds")) or "-",
        "health", health + (f"+{len(found) - 1}" if len(found) > 1 else "")])


def _urgency(row: Data, nearfull: float) -> Tuple[float, float]:
    """Sorts classes: the nearest to full last where an OSD is or will be above nearfull_ratio, else
    the one farthest above its bound."""
    use = row["max_utilization"]
    most = max(use, row["soon_max_utilization"] or 0.0)
    if most < nearfull:
        most = 0.0
    return most, use - (row["bound_utilization"] or use)


def _automatic(data: Data, settings: Settings) -> str:
    execution = data["execution"]
    if not data["active"]:
        return ("off" if not execution else "off; OSDs are being drained"
                if execution["plan"] == "automatic"
                else f"off; plan {execution['plan']} is executed")
    pools, classes = settings.pool_ids, settings.device_classes
    scope = "all pools" if pools is None else plural(len(pools), "pool")
    chosen = "all device classes" if classes is None else (
        f"device class {', '.join(sorted(classes))}")
    return f"on; {scope}, {chosen}" + (
        f"; it begins once plan '{execution['plan']}' is done"
        if execution and execution["plan"] != "automatic" else "")


def _clock_time(at: float, now: float) -> str:
    """The time in UTC, with the date where that is another day."""
    text = format_time(at)
    return text[11:] if text[:10] == format_time(now)[:10] else text


def _progress_line(data: Data) -> str:
    progress, execution = data["progress"], data["execution"]
    if progress is None:
        return ""
    if execution and execution["kind"] in MOTIONLESS:
        return (f"{execution['planned_pgs'] - execution['remaining_pgs']} of"
                f" {plural(execution['planned_pgs'], 'PG')} changed; no data moves")
    total, done = progress["bytes_total"], progress["bytes_done"]
    if total is None:
        return "not known before the plan has been compared with the cluster"
    sent, planned = (execution[key] for key in ("sent_moves", "planned_moves"))
    if not total and not planned:
        return ""   # no data moves
    text = (f"{100.0 * done / total:.1f}% of {format_bytes(total)}" if total
            else f"{sent} of {plural(planned, 'shard')} sent; none of them has data")
    text += f", {format_bytes(progress['bytes_per_second'])}/s" if (
        progress["bytes_per_second"]) else ""
    if progress["eta_seconds"] is not None:
        text += f", about {format_duration(progress['eta_seconds'])} left"
        text += f" (longest: osd.{progress['eta_osd']})" if (
            progress["eta_osd"] is not None) else ""
    elif done != total:
        text += f"; no time left is known: {progress['eta_unknown_reason']}"
    return text + (f"; {plural(execution['dropped_moves'], 'shard')} dropped"
                   if execution["dropped_moves"] else "")


def window_text(window: Optional[Data]) -> str:
    """The window of automatic balancing, and whether it is open; empty where there is none."""
    if window is None:
        return ""
    if min(window["begin_minute"], window["end_minute"]) < 0:
        return "never open: begin_time or end_time cannot be read"
    begin, end = (window[key] % 1440 for key in ("begin_minute", "end_minute"))
    text = "" if begin == end else (
        f"{begin // 60:02d}:{begin % 60:02d} to {end // 60:02d}:{end % 60:02d} ")
    first, last = window["begin_weekday"] % 7, window["end_weekday"] % 7
    if first != last:
        text += f"from {_DAYS[first]} to {_DAYS[(last - 1) % 7]} "
    opens = window["opens_at"]
    return f"{text}{time.strftime('%Z')}, " + (
        "open" if window["is_open"] else "closed" if opens is None
        else f"closed; opens at {format_local(opens)}")


#: Stopped pools in the reason; JSON has all of them.
_STOPPED_SHOWN = 3
#: Groups of waiting shards that a sentence names before it only counts the rest.
_GROUPS_SHOWN = 4


def report_status(status: BalancerStatus, plan_service: PlanService, settings: Settings, now: float,
                  view: Optional[ClusterView] = None, options: Mapping[str, Any] = {},
                  look_started: bool = False) -> CommandAnswer:
    """The figures of the last round; reads nothing from the cluster.

    `now`: seconds since the epoch. `view`: that of the status, or one with present figures.
    `options`: as options_json returns them. `look_started`: a newer view is on its way.
    """
    view = view if view is not None else status.view
    seen = _UNSEEN if view is None else _json_of_view(view, status, settings, now)
    alone = held(status.rejected, now)
    rejected = grouped((item.reason, pgid) for pgid, item in sorted(alone.items()))
    outage, open_now = find_outage(status, view), is_open(settings, now)
    data: Dict[str, Any] = {
        "active": settings.active, "state": status.state, "since_at": status.since_at,
        "reason_code": status.reason_code,
        "action": (state_action(status, view, settings, now) if outage is None
                   else outage["action"]),
        "waiting": [group.to_json() for group in status.waiting],
        "planning": [{"plan": p.plan or "automatic", "aim": p.aim, "moves": p.moves,
                      "seconds": max(0.0, now - p.started_at)}
                     for p in plan_service.plans_in_progress().values()],
        "last_execution": status.last_execution,
        "episode": status.episode,
        "rejected": [{"reason": reason, "pgids": pgids,
                      "until_at": max(alone[pgid].until for pgid in pgids),
                      "is_withheld": bool(alone[pgids[0]].withheld_by)}
                     for reason, pgids in sorted(
                         rejected.items(), key=lambda group: (-len(group[1]), group[0]))],
        "mispredicted": _mispredicted(status, view),
        "window": {"begin_minute": settings.begin_time, "end_minute": settings.end_time,
                   "begin_weekday": settings.begin_weekday, "end_weekday": settings.end_weekday,
                   "is_open": open_now,
                   "opens_at": None if open_now else next_opening(settings, now)}
        if is_limited(settings) else None,   # where the options set one
        "drains": drains_json(status.drains),
        "look_started": look_started, "options": [], "left_out": [], **options,
        "limits": {"urgent_misplaced_ratio": settings.urgent_misplaced_ratio,
                   **seen["limits"],
                   "max_backfills_per_osd": settings.max_backfills_per_osd},
        "builtin_balancer_active": (status if view is None else view).builtin_active,
        "execution": status.progress.summary if status.progress else None,
        "progress": _progress(status, now),
        "outage": outage}
    data = {**seen, **data}
    data["reason"] = _reason(status, view, data)
    return CommandAnswer(data, status_screen(data, settings, now))


#: What a status shows of the cluster before the first look.
_UNSEEN: Data = {
    "classes": [], "osdmap_epoch": None, "snapshot_age_seconds": None, "look_outdated": False,
    "statistics_age_seconds": None, "stale_osds": [], "misplaced_ratio": None, "too_full": [],
    "moving": dict.fromkeys(MovingTotals._fields), "client_latency": None,
    "stacked_backfills": {}, "will_not_fit": [], "slow_osds": [], "unused_hosts": [],
    "flags": [],
    "limits": {"max_misplaced_ratio": None, "urgent_osds": [], "changing_pg_num_pools": [],
               "nearfull_ratio": None}}


def _json_of_view(view: ClusterView, status: BalancerStatus, settings: Settings,
                  now: float) -> Data:
    """What a status shows of the cluster, JSON-ready."""
    snapshot, planned = view.snapshot, None
    if status.progress is not None:
        planned = view.planned(status.wanted).used
    statistics_age = None
    if view.statistics_at is not None:
        statistics_age = max(0.0, now - view.statistics_at)
    latency = None
    if view.client_latency is not None:
        latency = {"osds": view.client_latency.osds,
                   "recent_seconds": view.client_latency.recent,
                   "before_seconds": view.client_latency.before}
    urgent: List[int] = []
    if settings.urgent_misplaced_ratio > view.max_misplaced_ratio:
        urgent = sorted(full_osds(snapshot))
    return {
        "classes": class_rows(view, planned),
        "osdmap_epoch": snapshot.epoch,
        "snapshot_age_seconds": max(0.0, now - snapshot.taken_at),
        "look_outdated": view.has_drifted or view.misplaced_ratio > 0.0,
        "statistics_age_seconds": statistics_age,
        "stale_osds": sorted(view.stale_osds),
        "misplaced_ratio": view.misplaced_ratio,
        "too_full": [entry.to_json(snapshot.full_ratio) for entry in view.too_full],
        "moving": view.moving._asdict(),
        "client_latency": latency,
        "stacked_backfills": dict(view.stacked_backfills),
        "will_not_fit": [one._asdict() for one in view.will_not_fit()],
        "slow_osds": [{**one._asdict(), "sentence": one.sentence()}
                      for one in slow_osds(view.rates, view.movements, snapshot)],
        "unused_hosts": unused_hosts(snapshot),
        "flags": [flag for flag in snapshot.flags if flag[:2] in ("no", "pa")],
        # while a pg_num changes, half of target_max_misplaced_ratio is left to the mgr for that
        "limits": {"max_misplaced_ratio": view.max_misplaced_ratio,
                   "urgent_osds": urgent,   # that the urgent limit is in effect for
                   "changing_pg_num_pools": changing_pg_nums(snapshot),
                   "nearfull_ratio": snapshot.nearfull_ratio}}


def _reason(status: BalancerStatus, view: Optional[ClusterView], data: Mapping[str, Any]) -> str:
    """Why it is in this state: the largest groups of what waits, then what else is in the way."""
    said = [status.reason]
    if status.progress is not None and status.waiting:
        groups, planned = status.waiting, status.progress.summary["planned_moves"]
        total = sum(group.shards for group in groups)
        parts = named([f"{group.shards} {group.waits_for}" for group in groups], _GROUPS_SHOWN)
        said = [f"{total} of {plural(planned, 'shard')} {'waits' if total == 1 else 'wait'}"
                + (f": {parts}" if len(groups) > 1 else f" {groups[0].waits_for}")]
    if status.state == OFF and data["planning"]:
        said.append(f"{plural(len(data['planning']), 'plan is', 'plans are')} being made")
    if status.state in (BALANCED, STUCK) and data["left_out"]:
        said.append(f"left out: {'; '.join(data['left_out'])}")
    said += [entry["reason"] for entry in data["mispredicted"][:_STOPPED_SHOWN]]
    return with_too_full(status.state, "; ".join(said), () if view is None else view.too_full)


def stopped_pools(status: BalancerStatus, view: Optional[ClusterView]) -> Dict[int, str]:
    """Returns id of each pool that is stopped because its shards took more than was predicted →
    a sentence on it, in the order of the ids."""
    names = {} if view is None else {p.id: p.name for p in view.snapshot.pools.values()}
    return {pool: sentence(found, names.get(pool, str(pool)))
            for pool, found in sorted(status.mispredicted.items())}


def _mispredicted(status: BalancerStatus, view: Optional[ClusterView]) -> List[Dict[str, Any]]:
    """Returns the pools that are stopped, JSON-ready."""
    rows = []
    for pool, reason in stopped_pools(status, view).items():
        found = status.mispredicted[pool]
        rows.append({
            "pool_id": pool,
            "osd": found.osd,
            "measured_bytes": found.measured_bytes,
            "found_at": found.found_at,
            "until_at": found.until,
            "reason": reason})
    return rows


def _progress(status: BalancerStatus, now: float) -> Optional[Dict[str, Any]]:
    """Bytes of the episode, and the time that is left; None where nothing is executed."""
    progress = status.progress
    if progress is None:
        return None
    return {"bytes_total": progress.bytes_total, "bytes_done": progress.bytes_done,
            "bytes_per_second": progress.bytes_per_second,
            "eta_seconds": progress.eta_seconds(now), "eta_osd": progress.eta_osd,
            "eta_unknown_reason": progress.still_reason or None}


def options_json(option: Callable[[str], Any], snapshot: Optional[Snapshot]) -> Dict[str, Any]:
    """Options that are not at their default, bad values, and what balancing leaves out; `option` is
    the mgr's `get_module_option`."""
    settings = read_settings(option)
    bad = grouped((one.option, f"'{one.value}': {one.reason}")
                  for one in bad_options(settings, snapshot))
    return {
        "options": [dict(changed, bad="; ".join(bad.get(changed["name"], [])) or None)
                    for changed in changed_options(option)],
        "left_out": left_out(settings, snapshot) if snapshot is not None else []}

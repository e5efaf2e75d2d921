"""`status`: what equilibrium does, and why; one labelled line for each thing worth saying, and a
table.

A line is one function that returns its text, or nothing, and one entry in `status_screen`.
"""
from __future__ import annotations

import time
from functools import partial
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from ..control.balancing_scope import bad_options, left_out
from ..control.cluster_guards import is_limited, is_open, next_opening
from ..control.status import BalancerStatus
from ..control.steering import Steered, skipped_text
from ..execution.execution import ExecutionProgress
from ..execution.guards import changing_pg_nums, full_osds
from ..execution.outcomes import active_rejections
from ..observation.cluster_view import BLOCKED, MOVING, OFF, ClusterView, with_too_full
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
from .answer import CommandAnswer, amount, largest_groups, render_table
from .cluster.cluster_tables import class_rows, class_table
from .explain.advice import room_clauses, state_action
from .explain.facts import stopped_pools
from .explain.outage import find_outage, rebuilding_text, unused_hosts
from .operations import drains_json


_DAYS = "Sunday Monday Tuesday Wednesday Thursday Friday Saturday".split()
#: PGs or OSDs that a line names before it only counts the rest.
_NAMED = 3
#: Seconds after which the screen says how old its figures are.
_OLD_SECONDS = 90.0
_AUTOMATIC = "automatic"   # in place of a plan's name

Data = Mapping[str, Any]


def status_screen(data: Data, settings: Settings, now: float) -> str:
    """Returns the whole screen from the JSON of `status`; `now` in seconds since the epoch."""
    trouble = _trouble_text(data)
    first = ""
    later = _action_text(data)
    if trouble:
        first = later
        later = ""
    built_in = ""
    if data["builtin_balancer_active"]:
        built_in = "the built-in balancer is active"
    labelled = [
        ("cluster:", trouble),
        ("do:", first),
        ("automatic:", _automatic_text(data, settings)),
        ("state:", _state_text(data, now)),
        ("why:", _why_text(data)),
        ("do:", later),
        ("unused:", _unused_text(data["unused_hosts"])),
        ("draining:", data["drains"]["sentence"]),
        ("progress:", _progress_text(data)),
        ("recovery:", data["rebuilding"]),
        ("moving:", moving_text(data["moving"])),
        ("steered:", _steered_text(data, now)),
        ("clients:", _clients_text(data["client_latency"])),
        ("backfills:", _backfills_text(data["stacked_backfills"])),
        ("misplaced:", _misplaced_text(data)),
        ("planning:", "; ".join(map(_planning_text, data["planning"]))),
        ("last plan:", _last_plan_text(data, now)),
        ("figures:", _figures_text(data)),
        ("flags:", ", ".join(data["flags"])),
        ("window:", window_text(data["window"])),
        ("options:", ", ".join([f"{one['name']}={one['value']}" for one in data["options"]])),
        ("left out:", "; ".join(data["left_out"])),
        *[("bad option:", f"{one['name']} is {one['bad']}")
          for one in data["options"] if one["bad"]],
        *[("rejected:", _rejected_text(group)) for group in data["rejected"]],
        ("built-in:", built_in)]
    lines: List[str] = []
    for label, text in labelled:
        if text:
            lines += wrap(label, text)
    if data["classes"]:
        lines += ["", render_table(*class_table(data["classes"]))]
    return "\n".join(lines)


def _trouble_text(data: Data) -> str:
    """Returns the problems of the cluster; those of the module are in its reason."""
    clauses = [*room_clauses(data["will_not_fit"]),
               *[slow["sentence"] for slow in data["slow_osds"][:_NAMED]]]
    if data["outage"] is not None:
        clauses.insert(0, data["outage"]["sentence"])
    return "; ".join(clauses)


def _action_text(data: Data) -> str:
    action = data["action"]
    return "" if action in (None, codes.NOTHING) else str(action)


def _automatic_text(data: Data, settings: Settings) -> str:
    plan = None
    if data["execution"] is not None:
        plan = data["execution"]["plan"]
    has_name = plan not in (None, _AUTOMATIC)
    if not data["active"]:
        if has_name:
            return f"off; plan {plan} is executed"
        return "off"
    pools = "all pools"
    classes = "all device classes"
    if settings.pool_ids is not None:
        pools = plural(len(settings.pool_ids), "pool")
    if settings.device_classes is not None:
        classes = f"device class {', '.join(sorted(settings.device_classes))}"
    text = f"on; {pools}, {classes}"
    if has_name:
        text += f"; it begins once plan '{plan}' is done"
    return text


def _state_text(data: Data, now: float) -> str:
    """Returns the state, since when it lasts, and the age of the OSDs' statistics."""
    text: str = data["state"]
    since = data["since_at"]
    age = data["statistics_age_seconds"]
    stale = data["stale_osds"]
    if since is not None:
        text += f" since {_clock_time(since, now)} ({format_duration(max(0.0, now - since))})"
    if age is None:
        return text
    text += f", statistics {format_duration(age)} old"
    if not stale:
        return text
    if len(stale) >= sum(row["osds"] for row in data["classes"]):   # then it is the mgr
        return f"{text} (all {plural(len(stale), 'OSD')})"
    return f"{text} ({named_osds(stale, _NAMED)})"


def _why_text(data: Data) -> str:
    """Returns the reason, or nothing if the line of the state says it all."""
    is_plain = data["state"] in (OFF, MOVING) and data["reason_code"] in (
        codes.SWITCHED_OFF, codes.MOVING)
    has_more = data["waiting"] or data["too_full"] or data["mispredicted"]
    if is_plain and not has_more:
        return ""
    return str(data["reason"])


def _unused_text(hosts: Sequence[Data]) -> str:
    """Returns the first sentence, and the number of hosts that have one of their own."""
    if not hosts:
        return ""
    text = str(hosts[0]["sentence"])
    more = len(hosts) - 1
    if more:
        text += f"; {plural(more, 'more host')} likewise"
    return text


def _progress_text(data: Data) -> str:
    progress = data["progress"]
    execution = data["execution"]
    if progress is None:
        return ""
    if execution["kind"] in MOTIONLESS:
        return str(execution["progress"])
    total = progress["bytes_total"]
    rate = progress["bytes_per_second"]
    dropped = execution["dropped_moves"]
    if total is None:
        return "not known before the plan has been compared with the cluster"
    if total:
        text = f"{100.0 * progress['bytes_done'] / total:.1f}% of {format_bytes(total)}"
    elif execution["planned_moves"]:
        shards = plural(execution["planned_moves"], "shard")
        text = f"{execution['sent_moves']} of {shards} sent; none of them has data"
    else:
        return ""   # no data moves
    if rate:
        text += f", {format_bytes(rate)}/s"
    text += _time_left_text(progress, data["state"])
    if dropped:
        text += f"; {plural(dropped, 'shard')} dropped from the plan"
    return text


def _time_left_text(progress: Data, state: str) -> str:
    seconds = progress["eta_seconds"]
    osd = progress["eta_osd"]
    if seconds is None:
        if progress["bytes_done"] == progress["bytes_total"]:
            return ""
        return f"; no time left is known: {progress['eta_unknown_reason']}"
    text = f", about {format_duration(seconds)} left"
    if state == BLOCKED:
        text += " once it is not blocked"
    if osd is not None:
        text += f" (longest: osd.{osd})"
    return text


def moving_text(moving: Data) -> str:
    """Returns the shards in flight, ours and others'; empty if there are none."""
    shards = moving["shards"]
    others = moving["other_shards"]
    if not (shards or others):
        return ""
    text = f"{amount(shards, moving['bytes'])}{states_text(moving['states'])}"
    if not others:
        return text
    return (f"{text}; {others} not ours, {format_bytes(moving['other_bytes'])}"
            f"{states_text(moving['other_states'])}")


def _clients_text(latency: Optional[Data]) -> str:
    """Returns how long the ops of clients take at the OSDs that equilibrium's moves use."""
    if latency is None or latency["recent_seconds"] is None:
        return ""
    text = f"an op takes {1000.0 * latency['recent_seconds']:.1f} ms in the last minutes"
    if latency["before_seconds"] is not None:
        text += f", {1000.0 * latency['before_seconds']:.1f} ms before these moves"
    return f"{text}, at {plural(latency['osds'], 'OSD')} of theirs"


def _steered_text(data: Data, now: float) -> str:
    """Returns what was chosen for shards that are copied anyway, or when something will be
    chosen."""
    steered = data["steered"]
    at = data["steering_at"]
    plan = data["steering_waits_for"]
    if plan:
        return f"plan {plan} holds it up: meanwhile shards that Ceph copies go where CRUSH says"
    if at and at > now:
        return (f"in {format_duration(at - now)} equilibrium decides which of the shards that Ceph"
                " copies stay where their data is and which go to OSDs with more room")
    if not steered:
        return ""
    elsewhere = plural(steered["elsewhere_shards"], "shard goes", "shards go")
    held = plural(steered["held_shards"], "stays where its", "stay where their")
    text = f"{elsewhere} to other OSDs than CRUSH's, {held} data is"
    by_crush = steered["max_utilization_by_crush"]
    chosen = max([row["soon_max_utilization"] or 0.0 for row in data["classes"]], default=0.0)
    if chosen < by_crush:
        text += (f": the fullest OSD ends at {format_percent(chosen)}%, by CRUSH alone at"
                 f" {format_percent(by_crush)}%")
    return text + skipped_text(steered["skipped"])


def _backfills_text(stacked: Mapping[int, int]) -> str:
    if not stacked:
        return ""
    limits = [f"{limit} at osd.{osd}" for osd, limit in stacked.items()]
    return (f"osd_max_backfills is {named(limits, 2)}, on rotating disks: clients wait two to"
            " three times as long for each byte moved, and no more is moved; see 'ceph config show"
            f" osd.{next(iter(stacked))}'")


def _misplaced_text(data: Data) -> str:
    """Returns the misplaced ratio and its limit, and why the limit may differ from the option."""
    ratio = data["misplaced_ratio"]
    limits = data["limits"]
    if not (ratio or ratio is not None and data["execution"]):
        return ""
    text = f"{format_percent(ratio)}% (limit {format_percent(limits['max_misplaced_ratio'])}%"
    for pool in limits["changing_pg_num_pools"][:1]:
        text += (": at most half of target_max_misplaced_ratio, while pg_num of pool"
                 f" {pool} changes")
    urgent = named_osds(limits["urgent_osds"], 1)
    if urgent:
        text += (f"; urgent limit {format_percent(limits['urgent_misplaced_ratio'])}% for what"
                 f" leaves {urgent}, too full or soon so")
    return f"{text})"


def _planning_text(plan: Data) -> str:
    return (f"{plan['plan']}, {plural(plan['moves'], 'shard')} so far,"
            f" {format_duration(plan['seconds'])}")


def _last_plan_text(data: Data, now: float) -> str:
    """Returns how the last plan with a name ended; `history` has the automatic ones. Shards that
    the previous mgr sent count as in place."""
    last = data["last_execution"]
    if last is None or data["execution"] is not None or last["plan"] == _AUTOMATIC:
        return ""
    moved = "no data moved for it"
    if last["planned_moves"]:
        moved = (f"{last['sent_moves'] + last['done_moves']} of"
                 f" {plural(last['planned_moves'], 'shard')} sent or in place")
    return f"{last['plan']}, {last['outcome']} at {_clock_time(last['ended_at'], now)}; {moved}"


def _figures_text(data: Data) -> str:
    """Returns how old the figures are, if that matters."""
    age = data["snapshot_age_seconds"]
    if age is None:
        return "none yet: the cluster is being read" if data["look_started"] else ""
    is_doubtful = data["look_outdated"] or data["outage"] is not None or not data["active"]
    if age < _OLD_SECONDS or not is_doubtful:
        return ""
    return f"of {format_duration(age)} ago, except %USE, %MAX and %MIN"


def _rejected_text(group: Data) -> str:
    pgids = group["pgids"]
    return (f"{plural(len(pgids), 'PG')}, {group['reason']} ({named(pgids, _NAMED)}); tried again"
            f" by {format_deadline(group['until_at'])}")


def brief_line(data: Data, raised: Optional[Iterable[str]]) -> str:
    """Returns one line for a list of many clusters, from the JSON of `status`.

    It has always the same words in the same order, and - for an unknown figure. `raised`: codes of
    the module's health checks; None before the first round.
    """
    moving = data["moving"]
    progress = data["progress"]
    fullest = use = bound = shards = left = "-"
    classes = data["classes"]
    if classes:
        urgency = partial(_urgency, nearfull=data["limits"]["nearfull_ratio"])
        first = max(classes, key=urgency)
        fullest = f"osd.{first['fullest_osd']}"
        use = format_percent(first["max_utilization"])
        bound = format_percent(first["bound_utilization"]) or bound
    if moving["shards"] is not None:
        shards = moving["shards"] + moving["other_shards"]
    if progress is not None:
        left = format_duration(progress["eta_seconds"]) or left
    waiting = sum(group["shards"] for group in data["waiting"])
    state = data["state"]
    code = data["reason_code"]
    health = _health_word(data, raised)
    return (f"{state} {code} {fullest} {use} bound {bound} moving {shards} waiting {waiting}"
            f" left {left} health {health}")


def _health_word(data: Data, raised: Optional[Iterable[str]]) -> str:
    found = [code.replace("MGR_EQUILIBRIUM_", "") for code in raised or ()]
    if data["outage"] is not None:
        found.insert(0, "outage")
    if not found:
        return "-" if raised is None else "ok"
    first, *others = found
    if others:
        first += f"+{len(others)}"
    return first


def _urgency(row: Data, nearfull: float) -> Tuple[float, float]:
    """Returns a key that is largest for the most urgent class. That is the class nearest to full if
    an OSD is or will be nearfull, else the class farthest above its bound."""
    use = row["max_utilization"]
    most = max(use, row["soon_max_utilization"] or 0.0)
    if most < nearfull:
        most = 0.0
    return most, use - (row["bound_utilization"] or use)


def _clock_time(at: float, now: float) -> str:
    """Returns the time in UTC, with the date if that is another day."""
    date, time_of_day = format_time(at).split(" ")
    if format_time(now).startswith(date):
        return time_of_day
    return f"{date} {time_of_day}"


def window_text(window: Optional[Data]) -> str:
    """Returns the window of automatic balancing, and whether it is open; empty without a window."""
    if window is None:
        return ""
    begin = window["begin_minute"]
    end = window["end_minute"]
    first = window["begin_weekday"] % 7
    last = window["end_weekday"] % 7
    if min(begin, end) < 0:
        return "never open: begin_time or end_time cannot be read"
    text = ""
    opens = window["opens_at"]
    if begin % 1440 != end % 1440:
        text = f"{_clock(begin)} to {_clock(end)} "
    if first != last:
        text += f"from {_DAYS[first]} to {_DAYS[last - 1]} "
    text += f"{time.strftime('%Z')}, "
    if window["is_open"]:
        return f"{text}open"
    if opens is None:
        return f"{text}closed"
    return f"{text}closed; opens at {format_local(opens)}"


def _clock(minute: int) -> str:
    """Returns the minute of a day (1440: midnight) as in '23:05'."""
    return f"{minute // 60 % 24:02d}:{minute % 60:02d}"


#: Stopped pools in the reason; JSON has all of them.
_STOPPED_SHOWN = 3
#: Groups of waiting shards that a sentence names before it only counts the rest.
_GROUPS_SHOWN = 4


def report_status(status: BalancerStatus, plan_service: PlanService, settings: Settings, now: float,
                  view: Optional[ClusterView] = None, options: Mapping[str, Any] = {},
                  look_started: bool = False) -> CommandAnswer:
    """Returns the figures of the last round; reads nothing from the cluster.

    `now`: seconds since the epoch. `view`: that of the status, or one with figures of now.
    `options`: as options_json returns them. `look_started`: a newer view is on its way.
    """
    if view is None:
        view = status.view
    outage = find_outage(status, view)
    execution = progress = None
    if outage is None:
        action = state_action(status, view, settings, now)
    else:
        action = outage["action"]
    if status.progress is not None:
        execution = status.progress.summary
        progress = _progress_json(status.progress, now)
    data: Dict[str, Any] = {
        **_view_json(view, status, now),
        "limits": _limits_json(view, settings),
        "active": settings.active,
        "state": status.state,
        "since_at": status.since_at,
        "reason_code": status.reason_code,
        "action": action,
        "waiting": [group.to_json() for group in status.waiting],
        "planning": _planning_json(plan_service, now),
        "last_execution": status.last_execution,
        "rejected": _rejected_json(status, now),
        "mispredicted": _mispredicted_json(status, view),
        "window": _window_json(settings, now),
        "drains": drains_json(status.drains),
        "steered": _steered_json(status.steered),
        "steering_at": status.steering_at,
        "steering_waits_for": status.steering_waits_for,
        "look_started": look_started,
        "options": [],
        "left_out": [],
        **options,
        "execution": execution,
        "progress": progress,
        "outage": outage}
    data["reason"] = _reason(status, view, data)
    return CommandAnswer(data, status_screen(data, settings, now))


def _limits_json(view: Optional[ClusterView], settings: Settings) -> Data:
    """Returns the limits in force. The urgent limit is in effect for moves from `urgent_osds`."""
    ratio = nearfull = None
    urgent = []
    changing = []
    if view is not None:
        ratio = view.max_misplaced_ratio
        nearfull = view.snapshot.nearfull_ratio
        # while a pg_num changes, half of target_max_misplaced_ratio is left to the mgr for that
        changing = changing_pg_nums(view.snapshot)
        if settings.urgent_misplaced_ratio > ratio:
            urgent = sorted(full_osds(view.snapshot))
    return {
        "urgent_misplaced_ratio": settings.urgent_misplaced_ratio,
        "max_backfills_per_osd": settings.max_backfills_per_osd,
        "max_misplaced_ratio": ratio,
        "urgent_osds": urgent,
        "changing_pg_num_pools": changing,
        "nearfull_ratio": nearfull}


#: Keys that are None, and keys that are empty, before the first snapshot.
_UNKNOWN_AT_FIRST = (
    "osdmap_epoch", "snapshot_age_seconds", "statistics_age_seconds", "misplaced_ratio",
    "client_latency", "rebuilding")
_EMPTY_AT_FIRST = (
    "classes", "stale_osds", "too_full", "will_not_fit", "slow_osds", "unused_hosts", "flags")


def _view_json(view: Optional[ClusterView], status: BalancerStatus, now: float) -> Data:
    """Returns what a status shows of the cluster; unknown before the first snapshot."""
    if view is None:
        return {
            **dict.fromkeys(_UNKNOWN_AT_FIRST),
            **dict.fromkeys(_EMPTY_AT_FIRST, []),
            "builtin_balancer_active": status.builtin_active,
            "look_outdated": False,
            "moving": dict.fromkeys(MovingTotals._fields),
            "stacked_backfills": {}}
    snapshot = view.snapshot
    latency = view.client_latency
    planned = age = None
    if status.progress is not None:
        planned = view.planned(status.wanted).used
    if view.statistics_at is not None:
        age = max(0.0, now - view.statistics_at)
    return {
        "builtin_balancer_active": view.builtin_active,
        "classes": class_rows(view, planned),
        "osdmap_epoch": snapshot.epoch,
        "snapshot_age_seconds": max(0.0, now - snapshot.taken_at),
        "look_outdated": view.has_drifted or view.misplaced_ratio > 0.0,
        "statistics_age_seconds": age,
        "stale_osds": sorted(view.stale_osds),
        "misplaced_ratio": view.misplaced_ratio,
        "too_full": [entry.to_json(snapshot.full_ratio) for entry in view.too_full],
        "moving": view.moving._asdict(),
        "client_latency": latency._asdict() if latency is not None else None,
        "stacked_backfills": dict(view.stacked_backfills),
        "will_not_fit": [one._asdict() for one in status.will_not_fit(view)],
        "slow_osds": [{**one._asdict(), "sentence": one.sentence()}
                      for one in slow_osds(view.rates, view.movements, snapshot)],
        "unused_hosts": unused_hosts(snapshot),
        "rebuilding": rebuilding_text(view),
        "flags": [flag for flag in snapshot.flags if flag[:2] in ("no", "pa")]}


def _planning_json(plan_service: PlanService, now: float) -> List[Data]:
    """Returns the plans that are being made."""
    return [{"plan": plan.plan or _AUTOMATIC,
             "aim": plan.aim,
             "moves": plan.moves,
             "seconds": max(0.0, now - plan.started_at)}
            for plan in plan_service.plans_in_progress().values()]


def _steered_json(steered: Optional[Steered]) -> Optional[Data]:
    """Returns what was chosen for shards that are copied anyway; None without such shards."""
    if not steered:
        return None
    found = steered._asdict()
    del found["left_alone"]
    return found


def _rejected_json(status: BalancerStatus, now: float) -> List[Data]:
    """Returns the PGs that the module leaves alone for now, by reason; the largest group first."""
    alone = active_rejections(status.rejected, now)
    groups = largest_groups((item.reason, pgid) for pgid, item in sorted(alone.items()))
    return [{"reason": reason,
             "pgids": pgids,
             "until_at": max([alone[pgid].until for pgid in pgids]),
             "is_withheld": bool(alone[pgids[0]].withheld_by)}
            for reason, pgids in groups]


def _window_json(settings: Settings, now: float) -> Optional[Data]:
    """Returns the window of automatic balancing; None if the options set none."""
    if not is_limited(settings):
        return None
    open_now = is_open(settings, now)
    opens_at = None
    if not open_now:
        opens_at = next_opening(settings, now)
    return {"begin_minute": settings.begin_time,
            "end_minute": settings.end_time,
            "begin_weekday": settings.begin_weekday,
            "end_weekday": settings.end_weekday,
            "is_open": open_now,
            "opens_at": opens_at}


def _reason(status: BalancerStatus, view: Optional[ClusterView], data: Data) -> str:
    """Returns the reason of the state: the largest groups of waiting shards, then what else is in
    the way."""
    said = [status.reason]
    if status.progress is not None and status.waiting:
        said = [_waiting_text(status, status.progress.summary["planned_moves"])]
    said += [entry["reason"] for entry in data["mispredicted"][:_STOPPED_SHOWN]]
    reason = "; ".join(said)
    if view is None:
        return reason
    return with_too_full(status.state, reason, view.too_full)


def _waiting_text(status: BalancerStatus, planned: int) -> str:
    """Returns how many shards of the plan wait, and for what."""
    parts = [f"{group.shards} {group.waits_for}" for group in status.waiting]
    total = sum(group.shards for group in status.waiting)
    verb = "waits" if total == 1 else "wait"
    text = f"{total} of {plural(planned, 'shard')} {verb}"
    if len(parts) == 1:
        return f"{text} {status.waiting[0].waits_for}"
    return f"{text}: {named(parts, _GROUPS_SHOWN)}"


def _mispredicted_json(status: BalancerStatus, view: Optional[ClusterView]) -> List[Data]:
    rows: List[Data] = []
    for pool, reason in stopped_pools(status, view).items():
        found = status.mispredicted[pool]
        rows.append({
            "pool_id": pool,
            "osd": found.osd,
            "found_at": found.found_at,
            "until_at": found.until,
            "reason": reason})
    return rows


def _progress_json(progress: ExecutionProgress, now: float) -> Data:
    """Returns the bytes of the balancing run, and the time that is left."""
    return {"bytes_total": progress.bytes_total,
            "bytes_done": progress.bytes_done,
            "bytes_per_second": progress.bytes_per_second,
            "eta_seconds": progress.eta_seconds(now),
            "eta_osd": progress.eta_osd,
            "eta_unknown_reason": progress.still_reason or None}


def options_json(option: Callable[[str], Any], snapshot: Optional[Snapshot]) -> Dict[str, Any]:
    """Returns the options that are not at their default, bad values, and what balancing leaves out.

    `option`: the mgr's `get_module_option`.
    """
    settings = read_settings(option)
    bad = grouped((one.option, f"'{one.value}': {one.reason}")
                  for one in bad_options(settings, snapshot))
    options = [dict(changed, bad="; ".join(bad.get(changed["name"], [])) or None)
               for changed in changed_options(option)]
    skipped = [] if snapshot is None else left_out(settings, snapshot)
    return {"options": options, "left_out": skipped}

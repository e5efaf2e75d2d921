"""`status` as people read it: one labelled line for each thing that says something, and a table."""
from __future__ import annotations

import time
from typing import Any, Dict, List, Mapping, Optional

from ..execution.rejections import LIFTED_BY
from ..observation.states import MOVING, OFF
from ..plan.kinds import MOTIONLESS, TAKE_BACK
from ..runtime.formatting import (
    format_bytes, format_duration, format_local, format_percent, format_time, plural, wrap)
from ..settings import Settings
from ..snapshot import reason_codes as codes
from .cluster.classes import class_table
from .cluster.growth import growth_line
from ..snapshot.reason_codes import NOTHING

_DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
#: PGs or OSDs that a line names before it only counts the rest.
_NAMED = 3
#: Seconds after which the figures of an observation are not of now.
_OLD_SECONDS = 90.0
#: Days ahead within which it is said that an OSD will be nearfull.
_GROWTH_DAYS = 30.0

Data = Mapping[str, Any]


def status_screen(data: Data, settings: Settings, now: float) -> str:
    """The whole screen from the JSON of `status`; `now` in seconds since the epoch."""
    lines = [] if data["outage"] is None else [
        *wrap("cluster:", data["outage"]["sentence"]), *wrap("do:", _do(data))]
    lines += wrap("automatic:", _automatic(data, settings))
    lines += wrap("state:", _state(data, now))
    for label, text in (
            ("why:", _why(data)), ("do:", _do(data) if data["outage"] is None else ""),
            *[("unused:", host["sentence"]) for host in data["unused_hosts"]],
            ("draining:", _draining(data)),
            ("progress:", _progress(data)),
            ("moving:", _moving(data)), ("misplaced:", _misplaced(data)),
            ("planning:", _planning(data)), ("last plan:", _last_plan(data, now)),
            ("figures:", _figures(data)),
            ("window:", _window(data)), ("options:", _options(data)),
            ("left out:", _left_out(data)),
            ("growth:", growth_line(data["growth"], _GROWTH_DAYS))):
        if text:
            lines += wrap(label, text)
    for bad in [one for one in data["options"] if one["bad"]]:
        lines += wrap("bad option:", f"{bad['name']} is {bad['bad']}")
    for group in data["rejected"]:
        lines += wrap("rejected:", _rejected(group))
    if data["builtin_balancer_active"]:
        lines += wrap("built-in:", "the built-in balancer is active")
    if data["classes"]:
        lines += ["", class_table(data["classes"])]
    return "\n".join(lines)


def _automatic(data: Data, settings: Settings) -> str:
    if not data["active"]:
        execution = data["execution"]
        if execution and execution["plan"] == "automatic":
            return "off; OSDs are being drained"
        return f"off; plan {execution['plan']} is executed" if execution else "off"
    pools = settings.pool_ids
    classes = settings.device_classes
    scope = "all pools" if pools is None else plural(len(pools), "pool")
    named = "all device classes" if classes is None else (
        f"device class {', '.join(sorted(classes))}")
    filters = "".join(f", {word} {', '.join(sorted(names))}" for word, names in (
        ("from", settings.from_buckets), ("to", settings.to_buckets),
        ("not", settings.not_buckets)) if names is not None)
    return f"on; {scope}, {named}{filters}{_after_plan(data)}"


def _after_plan(data: Data) -> str:
    """What automatic balancing that is on waits for, as a clause; empty where it does not."""
    execution = data["execution"]
    if not execution or execution["plan"] == "automatic":
        return ""
    text = f"; it begins once plan '{execution['plan']}' is done"
    return text if execution["kind"] not in TAKE_BACK else (
        f"{text}, and may make again what that takes back ('ceph equilibrium off' has it stay off)")


def _state(data: Data, now: float) -> str:
    since, age = data["since_at"], data["statistics_age_seconds"]
    text = str(data["state"])
    if since is not None:
        text += f" since {_clock_time(since, now)} ({format_duration(max(0.0, now - since))})"
    if age is not None:
        text += f", statistics {format_duration(age)} old"
        stale, osds = data["stale_osds"], sum(row["osds"] for row in data["classes"])
        if stale and len(stale) >= osds:
            text += f" (all {plural(len(stale), 'OSD')})"
        elif stale:
            named = ", ".join(f"osd.{osd}" for osd in stale[:_NAMED])
            more = f" and {len(stale) - _NAMED} more" if len(stale) > _NAMED else ""
            text += f" ({named}{more})"
    return text


def _clock_time(at: float, now: float) -> str:
    """The time in UTC, with the date where that is another day."""
    text = format_time(at)
    return text[11:] if text[:10] == format_time(now)[:10] else text


def _why(data: Data) -> str:
    state, code = data["state"], data["reason_code"]
    says_more = bool(data["waiting"]) or code not in (codes.SWITCHED_OFF, codes.MOVING)
    if state in (OFF, MOVING) and not says_more and not data["mispredicted"]:
        return "" if not data["too_full"] else str(data["reason"])
    return str(data["reason"])


def _do(data: Data) -> str:
    return "" if data["action"] in (None, NOTHING) else str(data["action"])


def _left_out(data: Data) -> str:
    """What the options leave out, where the reason does not say it already."""
    text = "; ".join(data["left_out"])
    return "" if text and f"left out: {text}" in data["reason"] else text


def _draining(data: Data) -> str:
    """How far drains are, what is left of one that is paused among it."""
    drains = data["drains"]
    if not drains["paused"] or not drains["shards"]:
        return str(drains["sentence"])
    return (f"{drains['sentence']}; {plural(drains['shards'], 'shard')},"
            f" {format_bytes(drains['bytes'])} left")


def _progress(data: Data) -> str:
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
    if progress["bytes_per_second"]:
        text += f", {format_bytes(progress['bytes_per_second'])}/s"
    if progress["eta_seconds"] is not None:
        least, most = (format_duration(progress[key])
                       for key in ("eta_least_seconds", "eta_most_seconds"))
        text += f", {least if least == most else f'{least} to {most}'} left"
        if progress["eta_osd"] is not None:
            text += f" (longest: osd.{progress['eta_osd']})"
    elif done != total:
        text += f"; no time left is known: {progress['eta_unknown_reason']}"
    if execution["dropped_moves"]:
        text += f"; {plural(execution['dropped_moves'], 'shard')} dropped"
    return text


def _moving(data: Data) -> str:
    moving: Dict[str, Optional[int]] = data["moving"]
    shards, others = moving["shards"] or 0, moving["other_shards"] or 0
    if not shards and not others:
        return ""
    text = (f"{plural(shards, 'shard')}, {format_bytes(moving['bytes'] or 0)}:"
            f" {moving['backfilling']} backfilling, {moving['backfill_wait']} backfill_wait")
    if not others:
        return f"{text}; 0 not ours"
    return f"{text}; {others} not ours, {format_bytes(moving['other_bytes'] or 0)}"


def _misplaced(data: Data) -> str:
    ratio, limit = data["misplaced_ratio"], data["limits"]["max_misplaced_ratio"]
    if ratio is None or not (ratio or data["execution"]):
        return ""
    urgent = data["limits"]["urgent_osds"]
    pools = data["limits"]["changing_pg_num_pools"]
    why = (f": half of target_max_misplaced_ratio, while pg_num of pool {pools[0]} changes"
           if pools else "")
    if urgent:
        named = f"osd.{urgent[0]}" + (f" and {len(urgent) - 1} more" if urgent[1:] else "")
        why += (f"; urgent limit {format_percent(data['limits']['urgent_misplaced_ratio'])}% for"
                f" what leaves {named}, above backfillfull")
    return f"{format_percent(ratio)}% (limit {format_percent(limit)}%{why})"


def _planning(data: Data) -> str:
    return "; ".join(f"{plan['plan']}, {plural(plan['moves'], 'shard')} so far,"
                     f" {format_duration(plan['seconds'])}" for plan in data["planning"])


def _last_plan(data: Data, now: float) -> str:
    """How a plan that a command has started ended; of automatic ones `history` tells."""
    last = data["last_execution"]
    if last is None or data["execution"] is not None or last["plan"] == "automatic":
        return ""
    sent = f"; {last['sent_moves']} of {plural(last['planned_moves'], 'shard')} sent"
    return (f"{last['plan']}, {last['outcome']} at {_clock_time(last['ended_at'], now)}"
            f"{sent if last['planned_moves'] else '; no data moved for it'}")


def _figures(data: Data) -> str:
    """How old the last observation is, where that matters to what is shown."""
    age = data["snapshot_age_seconds"]
    if age is None:
        return "none yet: the cluster is being read" if data["look_started"] else ""
    if data["stale_osds"] and len(data["stale_osds"]) >= sum(r["osds"] for r in data["classes"]):
        return f"of {format_duration(data['statistics_age_seconds'])} ago: no OSD reports"
    if age < _OLD_SECONDS or not data["look_outdated"]:
        return ""
    return f"of {format_duration(age)} ago but for %USE, %MAX and %MIN"


def _window(data: Data) -> str:
    window = data["window"]
    if window is None:
        return ""
    if min(window["begin_minute"], window["end_minute"]) < 0:
        return "never open: begin_time or end_time cannot be read"
    begin, end = window["begin_minute"] % 1440, window["end_minute"] % 1440
    text = "" if begin == end else f"{_hours(begin)} to {_hours(end)} "
    first, last = window["begin_weekday"] % 7, window["end_weekday"] % 7
    if first != last:
        text += f"from {_DAYS[first]} to {_DAYS[(last - 1) % 7]} "
    if window["is_open"]:
        return f"{text}{time.strftime('%Z')}, open"
    opens = window["opens_at"]
    return f"{text}{time.strftime('%Z')}, closed" + (
        f"; opens at {format_local(opens)}" if opens is not None else "")


def _hours(minute: int) -> str:
    return f"{minute // 60:02d}:{minute % 60:02d}"


def _options(data: Data) -> str:
    return ", ".join(f"{one['name']}={one['value']}" for one in data["options"])


def _rejected(group: Mapping[str, Any]) -> str:
    pgids: List[str] = group["pgids"]
    more = f" and {len(pgids) - _NAMED} more" if len(pgids) > _NAMED else ""
    return (f"{plural(len(pgids), 'PG')}, {group['reason']} ({', '.join(pgids[:_NAMED])}{more});"
            f" until {LIFTED_BY}")

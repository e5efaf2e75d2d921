"""`status` as people read it: one labelled line for each thing that says something, and a table."""
from __future__ import annotations

import time
from typing import Any, List, Mapping, Optional

from ..execution.rejections import LIFTED_BY
from ..observation.states import MOVING, OFF
from ..plan.kinds import MOTIONLESS, TAKE_BACK
from ..runtime.formatting import (
    format_bytes, format_duration, format_local, format_percent, format_time, named, plural,
    wrap)
from ..settings import Settings
from ..snapshot import reason_codes as codes
from ..snapshot.reason_codes import NOTHING
from .cluster.classes import class_table

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
    execution, outage, unusable = data["execution"], data["outage"], len(data["stale_osds"])
    helps = "" if data["action"] in (None, NOTHING) else str(data["action"])
    if outage is not None:
        say("cluster:", outage["sentence"])
        say("do:", helps)
    say("automatic:", _automatic(data, settings))
    osds = sum(row["osds"] for row in data["classes"])
    text, since, age = str(data["state"]), data["since_at"], data["statistics_age_seconds"]
    if since is not None:
        text += f" since {_clock_time(since, now)} ({format_duration(max(0.0, now - since))})"
    if age is not None:
        silent = (f"all {plural(unusable, 'OSD')}" if unusable >= osds
                  else named([f"osd.{osd}" for osd in data["stale_osds"]], _NAMED))
        text += f", statistics {format_duration(age)} old" + (f" ({silent})" if unusable else "")
    say("state:", text)
    if not (data["state"] in (OFF, MOVING) and not data["waiting"] and not data["too_full"]
            and data["reason_code"] in (codes.SWITCHED_OFF, codes.MOVING)
            and not data["mispredicted"]):
        say("why:", str(data["reason"]))
    say("do:", helps if outage is None else "")
    for host in data["unused_hosts"]:
        say("unused:", host["sentence"])
    drains = data["drains"]
    say("draining:", drains["sentence"] + (   # what is left of one that is paused
        f"; {plural(drains['shards'], 'shard')}, {format_bytes(drains['bytes'])} left"
        if drains["paused"] and drains["shards"] else ""))
    say("progress:", _progress(data))
    moving = data["moving"]
    shards, others = moving["shards"] or 0, moving["other_shards"] or 0
    if shards or others:
        say("moving:", f"{plural(shards, 'shard')}, {format_bytes(moving['bytes'] or 0)}:"
            f" {moving['backfilling']} backfilling, {moving['backfill_wait']} backfill_wait;"
            f" {others} not ours"
            + (f", {format_bytes(moving['other_bytes'] or 0)}" if others else ""))
    if data["misplaced_ratio"] is not None and (data["misplaced_ratio"] or execution):
        limits = data["limits"]
        text = (f"{format_percent(data['misplaced_ratio'])}%"
                f" (limit {format_percent(limits['max_misplaced_ratio'])}%")
        for pool in limits["changing_pg_num_pools"][:1]:
            text += f": half of target_max_misplaced_ratio, while pg_num of pool {pool} changes"
        for osd in limits["urgent_osds"][:1]:
            more = len(limits["urgent_osds"]) - 1
            text += (f"; urgent limit {format_percent(limits['urgent_misplaced_ratio'])}% for what"
                     f" leaves osd.{osd}{f' and {more} more' if more else ''}, above backfillfull")
        say("misplaced:", f"{text})")
    say("planning:", "; ".join(
        f"{plan['plan']}, {plural(plan['moves'], 'shard')} so far,"
        f" {format_duration(plan['seconds'])}" for plan in data["planning"]))
    last = data["last_execution"]   # of automatic ones `history` tells
    if last is not None and execution is None and last["plan"] != "automatic":
        say("last plan:", f"{last['plan']}, {last['outcome']} at"
            f" {_clock_time(last['ended_at'], now)}; " + (
                f"{last['sent_moves']} of {plural(last['planned_moves'], 'shard')} sent"
                if last["planned_moves"] else "no data moved for it"))
    looked = data["snapshot_age_seconds"]
    if looked is None:
        say("figures:", "none yet: the cluster is being read" * data["look_started"])
    elif unusable and unusable >= osds:
        say("figures:", f"of {format_duration(age)} ago: no OSD reports")
    elif looked >= _OLD_SECONDS and data["look_outdated"]:
        say("figures:", f"of {format_duration(looked)} ago but for %USE, %MAX and %MIN")
    say("window:", window_text(data["window"]))
    say("options:", ", ".join(f"{one['name']}={one['value']}" for one in data["options"]))
    left_out = "; ".join(data["left_out"])
    say("left out:", "" if f"left out: {left_out}" in data["reason"] else left_out)
    for bad in [one for one in data["options"] if one["bad"]]:
        say("bad option:", f"{bad['name']} is {bad['bad']}")
    for group in data["rejected"]:
        say("rejected:", f"{plural(len(group['pgids']), 'PG')}, {group['reason']}"
            f" ({named(group['pgids'], _NAMED)}); until {LIFTED_BY}")
    if data["builtin_balancer_active"]:
        say("built-in:", "the built-in balancer is active")
    return "\n".join(lines + (["", class_table(data["classes"])] if data["classes"] else []))


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
    filters = "".join(f", {word} {', '.join(sorted(names))}" for word, names in (
        ("from", settings.from_buckets), ("to", settings.to_buckets),
        ("not", settings.not_buckets)) if names is not None)
    text = f"on; {scope}, {chosen}{filters}"
    if execution and execution["plan"] != "automatic":
        text += f"; it begins once plan '{execution['plan']}' is done"
        text += (", and may make again what that takes back ('ceph equilibrium off' has it stay"
                 " off)" if execution["kind"] in TAKE_BACK else "")
    return text


def _clock_time(at: float, now: float) -> str:
    """The time in UTC, with the date where that is another day."""
    text = format_time(at)
    return text[11:] if text[:10] == format_time(now)[:10] else text


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

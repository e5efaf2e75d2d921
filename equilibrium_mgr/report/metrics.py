"""`metrics`: what Prometheus is told, the same figures of now as `status`, `eval` and `df` show.

Labels are few and bounded: no OSD, no PG. What is not known is absent.
"""
from __future__ import annotations

import math
from collections import Counter
from typing import Any, Dict, Iterable, List, Mapping, Optional, Set

from ..control.journal import Totals
from ..control.status import BalancerStatus
from ..observation.cluster_view import STATES, ClusterView
from ..observation.movements import ORIGINS
from ..snapshot import pg_states
from ..version import VERSION
from .answer import CommandAnswer

GAUGE, COUNTER = "gauge", "counter"
#: Of every family's name, as Ceph's own begin with `ceph_`.
PREFIX = "ceph_equilibrium_"


class _Unseen:
    """In place of a view before the first look: nothing is known, and nothing is shown."""

    classes_now: Mapping[str, Any] = {}
    bounds: Mapping[str, float] = {}
    movements = too_full = ()
    statistics_at = misplaced_ratio = max_misplaced_ratio = client_latency = None


def report_metrics(status: BalancerStatus, totals: Optional[Totals], now: float, active: bool,
                   view: Optional[ClusterView], last_round_at: Optional[float]) -> CommandAnswer:
    """All families, those without a sample among them, in the order of the handbook: in the text
    format of Prometheus, or the same as JSON.

    `totals`: None before a new mgr has read them. `now`, `last_round_at`: seconds since the epoch.
    `active`: the option. `view`: with figures of now; None before the first observation.
    """
    seen: Any = _Unseen if view is None else view
    classes, bounds, reported_at = seen.classes_now, seen.bounds, seen.statistics_at
    moving: Counter[str] = Counter()
    left: Counter[str] = Counter()
    waiting: Counter[str] = Counter()
    for group in status.waiting:
        waiting[group.code] += group.shards
    for movement in seen.movements:
        moving[movement.origin] += 1
        left[movement.origin] += movement.left_bytes
    origins = ORIGINS if view is not None else ()
    held: Dict[str, Set[str]] = {}
    if view is not None:
        held = {state: set() for state in sorted(pg_states.FULL)}
    for entry in seen.too_full:
        held[entry.state].update(entry.pgids)   # one PG may wait for several OSDs
    drains, names = status.drains, status.drains.drains.names
    shards = sum(one.shards for one in drains.known_left)
    is_known = bool(names) and drains.is_known
    safe = [drains.is_safe(osd) for osd in names]
    usage = view.usage_now() if view is not None else None
    room = usage.room if usage is not None else None
    families = [
        labelled("utilization_max_ratio", "Utilization of the fullest OSD of a device class now,"
                 " as OSDs report it.", "device_class",
                 {name: found.max for name, found in classes.items()}),
        labelled("bound_ratio", "Lowest maximum utilization of a device class that the CRUSH rules"
                 " and the OSDs' sizes allow.", "device_class",
                 {name: bounds.get(name) for name in classes}),
        labelled("threshold_ratio", "Utilization above which an OSD is nearfull, backfillfull or"
                 " full to Ceph.", "threshold", {} if view is None else {
                     "nearfull": view.snapshot.nearfull_ratio,
                     "backfillfull": view.snapshot.backfillfull_ratio,
                     "full": view.snapshot.full_ratio}),
        labelled("state", "1 for the state that equilibrium is in, 0 for the others.", "state",
                 {state: int(state == status.state) for state in STATES}),
        single("active", "1 while automatic balancing is on.", int(active)),
        single("statistics_age_seconds", "Age of the statistics that the mgr has of the OSDs, by"
               " the oldest of them.",
               None if reported_at is None else max(0.0, now - reported_at)),
        single("last_round_timestamp_seconds", "When the last round ended that did not fail.",
               last_round_at),
        single("misplaced_ratio", "Misplaced object copies, as a ratio of all.",
               seen.misplaced_ratio),
        single("misplaced_limit_ratio", "Misplaced ratio above which nothing is sent.",
               seen.max_misplaced_ratio),
        labelled("waiting_shards", "Shards of the plan that have not been sent, by what they wait"
                 " for.", "reason", dict(waiting)),
        labelled("moving_shards", "Shards in flight, by who moves them.", "origin",
                 {origin: moving[origin] for origin in origins}),
        labelled("moving_bytes", "Bytes of shards in flight that are still to be copied, by who"
                 " moves them.", "origin", {origin: left[origin] for origin in origins}),
        labelled("client_op_seconds", "Seconds that an op of clients takes at the OSDs of"
                 " equilibrium's moves, in the last minutes and before these moves.", "period",
                 {} if seen.client_latency is None else {
                     "recent": seen.client_latency.recent, "before": seen.client_latency.before}),
        labelled("toofull_pgs", "PGs that cannot move as an OSD is too full for them, by their"
                 " state.", "state", {state: len(pgids) for state, pgids in held.items()}),
        single("remaining_seconds", "Estimated seconds until the plan under way is done.",
               status.progress.eta_seconds(now) if status.progress is not None else None),
        single("drained_osds", "OSDs that an operator wants emptied.", len(names)),
        single("drain_shards", "Shards that are left on OSDs that an operator wants emptied.",
               shards if is_known else None),
        single("drain_stuck_shards", "Of these shards, those that have no other place.",
               min(shards, sum(one.shards for one in drains.stuck)) if is_known else None),
        single("drain_safe_to_stop", "1 where all OSDs that were to be emptied may be stopped, 0"
               " where not; absent while that is not known.",
               None if not safe or None in safe and False not in safe else int(all(safe))),
        single("room_bytes", "Client bytes that fit if all pools grow in proportion to their data,"
               " now.", room.bytes if room is not None else None),
        labelled("pool_free_bytes", "Client bytes that can be written to a pool before its first"
                 " OSD is full, now. Pools share OSDs: these do not add up.", "pool_id",
                 {str(pool.pool_id): pool.free_bytes for pool in (
                     usage.pools.values() if usage is not None else ())}),
        single("rejected_upmaps", "PGs whose upmap items the monitor did not keep, and that are"
               " left alone for that.", len(status.rejected)),
        single("moved_bytes_total", "Bytes of shards whose moves the monitors have accepted.",
               totals.bytes if totals is not None else None, COUNTER),
        single("moves_total", "Shard moves that the monitors have accepted.",
               totals.moves if totals is not None else None, COUNTER),
        labelled("info", "The version of equilibrium.", "version", {VERSION: 1})]
    return CommandAnswer({"metrics": families}, exposition(families))


def single(name: str, text: str, value: Optional[float], kind: str = GAUGE) -> Dict[str, Any]:
    """A family of one value without labels; without a sample where that is not known."""
    return labelled(name, text, "", {"": value}, kind)


def labelled(name: str, text: str, label: str, values: Mapping[str, Optional[float]],
             kind: str = GAUGE) -> Dict[str, Any]:
    """A family of one value for each value of a label; those that are not known are left out."""
    return {"name": PREFIX + name, "type": kind, "help": text, "samples": [
        {"labels": {label: str(of)} if label else {}, "value": value}
        for of, value in values.items() if value is not None and math.isfinite(value)]}


def exposition(families: Iterable[Mapping[str, Any]]) -> str:
    """The families as text; its last line has no end. Without samples one is not shown at all."""
    lines: List[str] = []
    for family in families:
        if family["samples"]:
            lines += [f"# HELP {family['name']} {_escaped(family['help'])}",
                      f"# TYPE {family['name']} {family['type']}"]
        for sample in family["samples"]:
            value, labels = sample["value"], ",".join([
                f'{label}="{quoted}"' for label, quoted in (
                    (label, _escaped(of).replace('"', '\\"'))
                    for label, of in sample["labels"].items())])
            # whole numbers without a fraction, others with all their digits
            number = str(int(value)) if float(value).is_integer() else repr(float(value))
            lines.append(family["name"] + (f"{{{labels}}}" if labels else "") + f" {number}")
    return "\n".join(lines)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")

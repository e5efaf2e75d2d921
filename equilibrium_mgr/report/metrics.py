"""`metrics`: what Prometheus reads, the same figures of now as `status`, `eval` and `df` show.

A metric is one function, and one entry in `_FAMILIES`. Labels are few and bounded: no OSD, no PG.
An unknown figure has no sample.
"""
from __future__ import annotations

import math
from collections import Counter
from typing import Any, Callable, Dict, Iterable, List, Mapping, NamedTuple, Optional, Set

from ..control.journal import Totals
from ..control.status import BalancerStatus
from ..control.steering import Steered
from ..execution.outcomes import active_rejections
from ..observation.cluster_view import STATES, ClusterView
from ..observation.movements import ORIGINS
from ..plan.load import loads_of_sets
from ..plan.model import Usage
from ..snapshot import pg_states
from ..version import VERSION
from .answer import CommandAnswer

GAUGE = "gauge"
COUNTER = "counter"
#: Of every family's name, as Ceph's own begin with `ceph_`.
PREFIX = "ceph_equilibrium_"
#: Of the value of a label, in the text format.
_ESCAPES = str.maketrans({"\\": "\\\\", "\n": "\\n", '"': '\\"'})


class _NotSeen(Exception):
    """Raised by a figure of the cluster before the first snapshot."""


class _Moment(NamedTuple):
    """The arguments of `report_metrics`, and the usage of now, which is empty before the first
    snapshot."""

    status: BalancerStatus
    totals: Optional[Totals]
    now: float
    active: bool
    seen: Optional[ClusterView]
    last_round_at: Optional[float]
    usage: Usage

    @property
    def view(self) -> ClusterView:
        """Returns the view. Raises _NotSeen before the first snapshot."""
        if self.seen is None:
            raise _NotSeen
        return self.seen


def report_metrics(status: BalancerStatus, totals: Optional[Totals], now: float, active: bool,
                   view: Optional[ClusterView], last_round_at: Optional[float]) -> CommandAnswer:
    """Returns all families, also those without a sample, in the order of the handbook: as JSON, and
    in the text format of Prometheus.

    `totals`: None before a new mgr has read them. `now`, `last_round_at`: seconds since the epoch.
    `active`: the option. `view`: with figures of now; None before the first snapshot.
    """
    usage = Usage({}, {})
    if view is not None:
        usage = view.usage_now()
    moment = _Moment(status, totals, now, active, view, last_round_at, usage)
    families = []
    for family in _FAMILIES:
        try:
            found = family.figures(moment)
        except _NotSeen:
            found = None
        families.append(family.with_samples(found))
    return CommandAnswer({"metrics": families}, exposition(families))


def exposition(families: Iterable[Mapping[str, Any]]) -> str:
    """Returns the families that have samples as text, without a line feed at the end."""
    lines: List[str] = []
    for family in families:
        name = family["name"]
        if family["samples"]:
            lines += [f"# HELP {name} {family['help']}",
                      f"# TYPE {name} {family['type']}"]
        for sample in family["samples"]:
            lines.append(f"{name}{_labels(sample['labels'])} {sample['value']!r}")
    return "\n".join(lines)


def _labels(labels: Mapping[str, str]) -> str:
    """Returns the label of a sample in braces; empty without one."""
    return "".join([f'{{{label}="{of.translate(_ESCAPES)}"}}' for label, of in labels.items()])


# -- the figures -----------------------------------------------------------------------------------

Figures = Mapping[str, Optional[float]]   # by the value of the label; None: unknown


def _utilization_max(moment: _Moment) -> Figures:
    return {name: found.max for name, found in moment.view.classes_now.items()}


def _bound(moment: _Moment) -> Figures:
    bounds = moment.view.bounds
    return {name: bounds.get(name) for name in moment.view.classes_now}


def _load_max(moment: _Moment) -> Figures:
    view = moment.view
    return {name: found.max_load
            for name, found in loads_of_sets(view.snapshot, view.loads).items()}


def _threshold(moment: _Moment) -> Figures:
    snapshot = moment.view.snapshot
    return {
        "nearfull": snapshot.nearfull_ratio,
        "backfillfull": snapshot.backfillfull_ratio,
        "full": snapshot.full_ratio}


def _state(moment: _Moment) -> Figures:
    return {state: int(state == moment.status.state) for state in STATES}


def _active(moment: _Moment) -> float:
    return int(moment.active)


def _statistics_age(moment: _Moment) -> Optional[float]:
    reported_at = moment.view.statistics_at
    if reported_at is None:
        return None
    return max(0.0, moment.now - reported_at)


def _last_round(moment: _Moment) -> Optional[float]:
    return moment.last_round_at


def _misplaced(moment: _Moment) -> float:
    return moment.view.misplaced_ratio


def _misplaced_limit(moment: _Moment) -> float:
    return moment.view.max_misplaced_ratio


def _waiting_shards(moment: _Moment) -> Figures:
    waiting: Counter[str] = Counter()
    for group in moment.status.waiting:
        waiting[group.code] += group.shards
    return waiting


def _moving_shards(moment: _Moment) -> Figures:
    moving = dict.fromkeys(ORIGINS, 0)
    for movement in moment.view.movements:
        moving[movement.origin] += 1
    return moving


def _moving_bytes(moment: _Moment) -> Figures:
    left = dict.fromkeys(ORIGINS, 0)
    for movement in moment.view.movements:
        left[movement.origin] += movement.left_bytes
    return left


_NOTHING_STEERED = Steered()


def _steered_shards(moment: _Moment) -> Figures:
    steered = moment.status.steered or _NOTHING_STEERED
    if moment.seen is None:   # the last mgr may have steered some
        return {}
    return {
        "elsewhere": steered.elsewhere_shards,
        "held": steered.held_shards,
        "skipped": sum(steered.skipped.values())}


def _client_op_seconds(moment: _Moment) -> Figures:
    latency = moment.view.client_latency
    if latency is None:
        return {}
    return {"recent": latency.recent_seconds, "before": latency.before_seconds}


def _toofull_pgs(moment: _Moment) -> Figures:
    pgids: Dict[str, Set[str]] = {state: set() for state in sorted(pg_states.FULL)}
    for entry in moment.view.too_full:
        pgids[entry.state].update(entry.pgids)   # one PG may wait for several OSDs
    return {state: len(found) for state, found in pgids.items()}


def _remaining_seconds(moment: _Moment) -> Optional[float]:
    progress = moment.status.progress
    if progress is None:
        return None
    return progress.eta_seconds(moment.now)


def _drained_osds(moment: _Moment) -> float:
    return len(moment.status.drains.drains.names)


def _drain_shards(moment: _Moment) -> Optional[float]:
    """Returns what is left; None without drains, and before all their OSDs have been seen."""
    drains = moment.status.drains
    if not drains.drains.names or not drains.is_known:
        return None
    return sum(left.shards for left in drains.known_left)


def _drain_stuck_shards(moment: _Moment) -> Optional[float]:
    shards = _drain_shards(moment)
    if shards is None:
        return None
    return min(shards, sum(stuck.shards for stuck in moment.status.drains.stuck))


def _drain_safe(moment: _Moment) -> Optional[float]:
    drains = moment.status.drains
    safe = [drains.is_safe(osd) for osd in drains.drains.names]
    if False in safe:
        return 0
    if None in safe or not safe:
        return None
    return 1


def _room_bytes(moment: _Moment) -> Optional[float]:
    return getattr(moment.usage.room, "bytes", None)


def _pool_free_bytes(moment: _Moment) -> Figures:
    return {str(pool.pool_id): pool.free_bytes for pool in moment.usage.pools.values()}


def _rejected_upmaps(moment: _Moment) -> float:
    return len(active_rejections(moment.status.rejected, moment.now))


def _moved_bytes(moment: _Moment) -> Optional[float]:
    return getattr(moment.totals, "bytes", None)


def _moves(moment: _Moment) -> Optional[float]:
    return getattr(moment.totals, "moves", None)


def _info(moment: _Moment) -> Figures:
    return {VERSION: 1}


class _Family(NamedTuple):
    """A metric. A name that ends in _total is that of a counter."""

    name: str
    help: str
    figures: Callable[[_Moment], Any]   # value of the label → figure; one figure without a label
    label: str = ""

    def with_samples(self, found: Any) -> Dict[str, Any]:
        """Returns the family with a sample for each figure that is known, JSON-ready."""
        label = self.label
        figures = {"": found}
        if label:
            figures = found or {}
        samples: List[Dict[str, Any]] = []
        for of, figure in figures.items():
            if figure is not None and math.isfinite(figure):
                labels = {}
                if label:
                    labels[label] = str(of)
                samples.append({"labels": labels, "value": figure})
        name = PREFIX + self.name
        kind = GAUGE
        if name.endswith("_total"):
            kind = COUNTER
        return {"name": name, "type": kind, "help": self.help, "samples": samples}


_FAMILIES = (
    _Family(
        "utilization_max_ratio",
        "Utilization of the fullest OSD of a device class now, as OSDs report it.",
        _utilization_max, "device_class"),
    _Family(
        "bound_ratio",
        "Lowest maximum utilization of a device class that the CRUSH rules and the OSDs'"
        " sizes allow.",
        _bound, "device_class"),
    _Family(
        "load_max_ratio",
        "Load of the busiest OSD of a device class by what clients read and write on average of"
        " the last days, as a ratio of the mean.",
        _load_max, "device_class"),
    _Family(
        "threshold_ratio",
        "Utilization above which an OSD is nearfull, backfillfull or full to Ceph.",
        _threshold, "threshold"),
    _Family("state", "1 for the state that equilibrium is in, 0 for the others.", _state, "state"),
    _Family("active", "1 while automatic balancing is on.", _active),
    _Family(
        "statistics_age_seconds",
        "Age of the statistics that the mgr has of the OSDs, by the oldest of them.",
        _statistics_age),
    _Family(
        "last_round_timestamp_seconds",
        "When the last round ended that did not fail.",
        _last_round),
    _Family("misplaced_ratio", "Misplaced object copies, as a ratio of all.", _misplaced),
    _Family(
        "misplaced_limit_ratio",
        "Misplaced ratio above which nothing is sent.",
        _misplaced_limit),
    _Family(
        "waiting_shards",
        "Shards of the plan that have not been sent, by what they wait for.",
        _waiting_shards, "reason"),
    _Family("moving_shards", "Shards in flight, by who moves them.", _moving_shards, "origin"),
    _Family(
        "moving_bytes",
        "Bytes of shards in flight that are still to be copied, by who moves them.",
        _moving_bytes, "origin"),
    _Family(
        "steered_shards",
        "Shards that Ceph copies anyway, by what equilibrium did with them in the outage or change"
        " under way: sent elsewhere, held, or skipped.",
        _steered_shards, "fate"),
    _Family(
        "client_op_seconds",
        "Seconds that an op of clients takes at the OSDs of equilibrium's moves, in the last"
        " minutes and before these moves.",
        _client_op_seconds, "period"),
    _Family(
        "toofull_pgs",
        "PGs that cannot move as an OSD is too full for them, by their state.",
        _toofull_pgs, "state"),
    _Family(
        "remaining_seconds",
        "Estimated seconds until the plan under way is done.",
        _remaining_seconds),
    _Family("drained_osds", "OSDs that an operator wants emptied.", _drained_osds),
    _Family(
        "drain_shards",
        "Shards that are left on OSDs that an operator wants emptied.",
        _drain_shards),
    _Family(
        "drain_stuck_shards",
        "Of these shards, those that cannot leave.",
        _drain_stuck_shards),
    _Family(
        "drain_safe_to_stop",
        "1 where all OSDs that were to be emptied may be stopped, 0 where not; absent while"
        " that is not known.",
        _drain_safe),
    _Family(
        "room_bytes",
        "Client bytes that fit if all pools grow in proportion to their data, now.",
        _room_bytes),
    _Family(
        "pool_free_bytes",
        "Client bytes that can be written to a pool before its first OSD is full, now. Pools"
        " share OSDs: these do not add up.",
        _pool_free_bytes, "pool_id"),
    _Family(
        "rejected_upmaps",
        "PGs whose upmap items the monitor did not keep, or that an OSD withheld: left alone now.",
        _rejected_upmaps),
    _Family(
        "moved_bytes_total",
        "Bytes of shards whose moves the monitors have accepted.",
        _moved_bytes),
    _Family("moves_total", "Shard moves that the monitors have accepted.", _moves),
    _Family("info", "The version of equilibrium.", _info, "version"))

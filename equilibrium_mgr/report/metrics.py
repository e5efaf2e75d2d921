"""`metrics`: what Prometheus is told, the same figures of now as `status`, `eval` and `df` show.

Labels are few and bounded: no OSD, no PG. What is not known is absent.
"""
from __future__ import annotations

import math
from collections import Counter
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..control.episodes.history import Totals
from ..control.episodes.outcomes import OUTCOMES
from ..control.status import BalancerStatus
from ..drain.status import DrainStatus
from ..observation.cluster_view import ClusterView
from ..observation.movements import ORIGINS
from ..observation.states import STATES
from ..version import VERSION
from .command_answer import CommandAnswer


_DAY = 86_400.0   # seconds


class MetricSources(NamedTuple):
    """What the metrics are made of, at one moment."""

    status: BalancerStatus
    totals: Optional[Totals]            # None before a new mgr has read them
    now: float                          # seconds since the epoch
    active: bool                        # the option
    view: Optional[ClusterView]         # with figures of now; None before the first observation
    last_round_at: Optional[float]      # seconds since the epoch; None before the first round
    snapshot_differences: int = 0       # since the mgr became active
    growth: Sequence[Mapping[str, Any]] = ()   # class_growth in report/cluster/growth.py


def report_metrics(sources: MetricSources) -> CommandAnswer:
    """In the text format of Prometheus, or the same as JSON."""
    families = metric_families(sources)
    return CommandAnswer({"metrics": [family.to_json() for family in families]},
                         exposition(families))


def metric_families(sources: MetricSources) -> List[Family]:
    """All families, those without a sample among them, in the order of the README."""
    return (_of_utilization(sources.view) + _of_the_loop(sources) + _of_movement(sources)
            + _of_drains(sources.status.drains) + _of_space(sources.view) + _of_growth(sources)
            + _of_upmaps(sources)
            + _of_totals(sources.totals) + _of_the_module(sources))


def _of_utilization(view: Optional[ClusterView]) -> List[Family]:
    classes = view.classes_now if view is not None else {}
    bounds: Dict[str, float] = view.bounds if view is not None else {}
    return [
        labelled("utilization_max_ratio", "Utilization of the fullest OSD of a device class now,"
                 " as OSDs report it.", "device_class",
                 {name: usage.max for name, usage in classes.items()}),
        labelled("bound_ratio", "Lowest maximum utilization of a device class that the CRUSH rules"
                 " and the OSDs' sizes allow.", "device_class",
                 {name: bounds.get(name) for name in classes})]


def _of_growth(sources: MetricSources) -> List[Family]:
    return [
        labelled("growth_bytes_per_second", "Growth of the used bytes of a device class, where it"
                 " grows.", "device_class", {
                     row["device_class"]: row["growth_bytes_per_day"] / _DAY
                     for row in sources.growth}),
        labelled("nearfull_seconds", "Time until the first OSD of a device class is nearfull if its"
                 " pools go on growing as they do.", "device_class", {
                     row["device_class"]: row["nearfull_seconds"] for row in sources.growth})]


def _of_the_loop(sources: MetricSources) -> List[Family]:
    return [
        labelled("state", "1 for the state that equilibrium is in, 0 for the others.", "state",
                 {state: int(state == sources.status.state) for state in STATES}),
        single("active", "1 while automatic balancing is on.", int(sources.active)),
        single("statistics_age_seconds", "Age of the statistics that the mgr has of the OSDs, by"
               " the oldest of them.", _statistics_age(sources)),
        single("last_round_timestamp_seconds", "When the last round ended that did not fail.",
               sources.last_round_at)]


def _statistics_age(sources: MetricSources) -> Optional[float]:
    at = sources.view.statistics_at if sources.view is not None else None
    return None if at is None else max(0.0, sources.now - at)


def _of_movement(sources: MetricSources) -> List[Family]:
    view, progress = sources.view, sources.status.progress
    shards: Counter[str] = Counter()
    left: Counter[str] = Counter()
    for movement in view.movements if view is not None else ():
        shards[movement.origin] += 1
        left[movement.origin] += movement.left_bytes
    known = view is not None
    return [
        single("misplaced_ratio", "Misplaced object copies, as a ratio of all.",
               view.misplaced_ratio if view is not None else None),
        single("misplaced_limit_ratio", "Misplaced ratio above which nothing is sent.",
               view.max_misplaced_ratio if view is not None else None),
        labelled("waiting_shards", "Shards of the plan that have not been sent, by what they wait"
                 " for.", "reason", _waiting(sources.status)),
        labelled("moving_shards", "Shards in flight, by who moves them.", "origin",
                 {origin: shards[origin] for origin in ORIGINS} if known else {}),
        labelled("moving_bytes", "Bytes of shards in flight that are still to be copied, by who"
                 " moves them.", "origin",
                 {origin: left[origin] for origin in ORIGINS} if known else {}),
        single("remaining_seconds", "Estimated seconds until the plan under way is done.",
               progress.eta_seconds(sources.now) if progress is not None else None)]


def _waiting(status: BalancerStatus) -> Dict[str, Optional[float]]:
    shards: Counter[str] = Counter()
    for group in status.waiting:
        shards[group.code] += group.shards
    return dict(shards)


def _of_drains(status: DrainStatus) -> List[Family]:
    """What is left is not known before all OSDs of the list have been looked at; of OSDs that are
    down nobody knows it."""
    left = [one for osd, one in status.remaining.items() if osd not in status.down]
    is_known = bool(status.drains.names) and status.is_known
    safe = [status.is_safe(osd) for osd in status.drains.names]
    return [
        single("drained_osds", "OSDs that an operator wants emptied.", len(status.drains.names)),
        single("drain_shards", "Shards that are left on OSDs that an operator wants emptied.",
               sum(one.shards for one in left) if is_known else None),
        single("drain_bytes", "Bytes of these shards.",
               sum(one.bytes for one in left) if is_known else None),
        single("drain_stuck_shards", "Of these shards, those that have no other place.",
               min(sum(one.shards for one in left), sum(one.shards for one in status.held))
               if is_known else None),
        single("drain_safe_to_stop", "1 where all OSDs that were to be emptied may be stopped, 0"
               " where not; absent while that is not known.",
               None if not safe or None in safe and False not in safe else int(all(safe)))]


def _of_space(view: Optional[ClusterView]) -> List[Family]:
    usage = view.usage_now() if view is not None else None
    room = usage.room if usage is not None else None
    pools = usage.pools.values() if usage is not None else ()
    return [
        single("room_bytes", "Client bytes that fit if all pools grow in proportion to their data,"
               " now.", room.bytes if room is not None else None),
        labelled("pool_free_bytes", "Client bytes that can be written to a pool before its first"
                 " OSD is full, now. Pools share OSDs: these do not add up.", "pool_id",
                 {str(pool.pool_id): pool.free_bytes for pool in pools})]


def _of_upmaps(sources: MetricSources) -> List[Family]:
    view = sources.view
    pairs = (sum(map(len, view.snapshot.upmap_items.values())) if view is not None else None)
    return [
        single("upmap_items", "Pairs of upmap items in the osdmap, whoever set them.", pairs),
        single("rejected_upmaps", "PGs whose upmap items the monitor did not keep, and that are"
               " left alone for that.", len(sources.status.rejected))]


def _of_totals(totals: Optional[Totals]) -> List[Family]:
    episodes = {outcome: totals.episodes.get(outcome, 0)
                for outcome in OUTCOMES} if totals is not None else {}
    return [
        single("moved_bytes_total", "Bytes of shards whose moves the monitors have accepted.",
               totals.bytes if totals is not None else None, COUNTER),
        single("moves_total", "Shard moves that the monitors have accepted.",
               totals.moves if totals is not None else None, COUNTER),
        labelled("episodes_total", "Episodes of balancing that have ended, by outcome.", "outcome",
                 episodes, COUNTER)]


def _of_the_module(sources: MetricSources) -> List[Family]:
    return [
        single("snapshot_differences_total", "Values that were wrong in what is known of the"
               " cluster from one look to the next, and were healed: above 0 is a bug.",
               sources.snapshot_differences, COUNTER),
        labelled("info", "The version of equilibrium.", "version", {VERSION: 1})]


GAUGE, COUNTER = "gauge", "counter"
#: Of every family's name, as Ceph's own begin with `ceph_`.
PREFIX = "ceph_equilibrium_"


class Sample(NamedTuple):
    """One value of a family, with the labels that tell it from the others."""

    value: float
    labels: Tuple[Tuple[str, str], ...] = ()


class Family(NamedTuple):
    """A metric. Without samples it is not shown at all."""

    name: str
    help: str
    samples: Sequence[Sample]
    type: str = GAUGE

    def to_json(self) -> Dict[str, Any]:
        """For `metrics --format json`."""
        return {"name": self.name, "type": self.type, "help": self.help,
                "samples": [{"labels": dict(sample.labels), "value": sample.value}
                            for sample in self.samples]}


def single(name: str, text: str, value: Optional[float], kind: str = GAUGE) -> Family:
    """A family of one value without labels; without a sample where that is not known."""
    return Family(PREFIX + name, text, _known([Sample(value)] if value is not None else []), kind)


def labelled(name: str, text: str, label: str, values: Mapping[str, Optional[float]],
             kind: str = GAUGE) -> Family:
    """A family of one value for each value of a label; those that are not known are left out."""
    return Family(PREFIX + name, text, _known(
        Sample(value, ((label, str(key)),)) for key, value in values.items()
        if value is not None), kind)


def _known(samples: Iterable[Sample]) -> List[Sample]:
    return [sample for sample in samples if math.isfinite(sample.value)]


def exposition(families: Iterable[Family]) -> str:
    """The families as text; its last line has no end."""
    lines: List[str] = []
    for family in families:
        if family.samples:
            lines.append(f"# HELP {family.name} {_escaped(family.help)}")
            lines.append(f"# TYPE {family.name} {family.type}")
            lines += [f"{family.name}{_labels(sample)} {_number(sample.value)}"
                      for sample in family.samples]
    return "\n".join(lines)


def _labels(sample: Sample) -> str:
    if not sample.labels:
        return ""
    pairs = ",".join(f'{name}="{_quoted(value)}"' for name, value in sample.labels)
    return f"{{{pairs}}}"


def _number(value: float) -> str:
    """Whole numbers without a fraction, others with all their digits."""
    return str(int(value)) if float(value).is_integer() else repr(float(value))


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _quoted(text: str) -> str:
    return _escaped(text).replace('"', '\\"')

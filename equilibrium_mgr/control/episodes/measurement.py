"""The measured result of an episode that has ended: taken once its own moves have arrived, with
what clients and others did until then.

What OSDs will hold is known at the end; what they do hold shows only when the data has come. An
`AwaitedMeasurement` is stored with the history, so that the next mgr takes it up.
"""
from __future__ import annotations

from typing import Any, Dict, FrozenSet, Mapping, NamedTuple, Optional

from ...gateway.cluster_summary import ClusterSummary
from ...observation.cluster_view import ClusterView
from ...observation.movements import PLAN, UPMAP
from ...snapshot.model import NO_CLASS

#: How an entry of the history has its measured figures: once all its data had arrived; when the
#: next episode began, as its data was still moving; not yet; or not at all.
ARRIVED, INTERRUPTED, AWAITED, UNKNOWN = "arrived", "interrupted", "awaited", "unknown"

#: Seconds after an arrival in which every OSD has reported what it holds.
_REPORTED_SECONDS = 60.0
_MOST_PGS = 1000
#: Less undeleted data of an OSD, as a ratio of its size, makes no difference to a measurement.
_CLEAR_RATIO = 0.001


class Reported(NamedTuple):
    """What OSDs that are in report at one moment."""

    at: float                    # seconds since the epoch
    used: Mapping[int, float]    # OSD → used bytes ÷ size
    classes: Mapping[int, str]   # OSD → device class


def reported_by(summary: ClusterSummary) -> Reported:
    """As a summary has it."""
    ratios = {osd: found.utilization for osd, found in summary.osds.items() if found.is_in}
    used = {osd: ratio for osd, ratio in ratios.items() if ratio is not None}
    return Reported(summary.taken_at, used, {
        osd: summary.osds[osd].device_class or NO_CLASS for osd in used})


def reported_in(view: ClusterView) -> Reported:
    """As the last observation has it."""
    osds = [osd for osd in view.snapshot.osds.values() if osd.is_in and osd.has_statistics]
    return Reported(view.snapshot.taken_at,
                    {osd.id: view.used_now[osd.id] / osd.size_bytes for osd in osds},
                    {osd.id: osd.device_class for osd in osds})


class AwaitedMeasurement(NamedTuple):
    """An ended episode whose measured figures are to come."""

    started_at: float                   # of its entry in the history
    pgids: Optional[FrozenSet[str]]     # its moves that are in flight; None: not observed yet
    #: when all of them were seen to have arrived, and to be deleted where they were
    arrived_at: Optional[float] = None

    def observe(self, view: ClusterView) -> AwaitedMeasurement:
        """The same after an observation."""
        if self.arrived_at is not None:
            return self
        moving = own_moves(view)
        left = moving if self.pgids is None else self.pgids & {
            movement.pgid for movement in view.movements}
        return self._replace(pgids=left) if left or _is_deleting(view) else (
            self._replace(pgids=frozenset(), arrived_at=view.snapshot.taken_at))

    def with_moves(self, pgids: FrozenSet[str]) -> AwaitedMeasurement:
        """The same with moves that were kept after the end."""
        return self._replace(arrived_at=None,
                             pgids=None if self.pgids is None else self.pgids | pgids)

    def is_due(self, now: float) -> bool:
        """True where OSDs have reported what has arrived."""
        return self.arrived_at is not None and not (
            0.0 <= now - self.arrived_at < _REPORTED_SECONDS)

    def figures(self, reported: Reported) -> Dict[str, Any]:
        """The fields of the entry by what OSDs hold now."""
        found: Dict[str, float] = {}
        for osd, ratio in reported.used.items():
            name = reported.classes[osd]
            found[name] = max(found.get(name, 0.0), round(ratio, 6))
        return {"measured": ARRIVED if self.arrived_at is not None else INTERRUPTED,
                "measured_at": reported.at, "max_after": dict(sorted(found.items()))}

    def to_dict(self) -> Dict[str, Any]:
        """A JSON-ready form for the key-value store."""
        return {"started_at": self.started_at, "arrived_at": self.arrived_at,
                "pgids": None if self.pgids is None else sorted(self.pgids)[:_MOST_PGS]}


def awaited_from_dict(dump: object) -> Optional[AwaitedMeasurement]:
    """What another mgr has stored, or None where there is none that can be understood."""
    try:
        assert isinstance(dump, Mapping)
        pgids, arrived_at = dump.get("pgids"), dump.get("arrived_at")
        return AwaitedMeasurement(
            float(dump["started_at"]),
            None if pgids is None else frozenset(str(pgid) for pgid in pgids),
            None if arrived_at is None else float(arrived_at))
    except (AssertionError, KeyError, TypeError, ValueError):
        return None


def _is_deleting(view: ClusterView) -> bool:
    """True while OSDs clearly hold data that has left them, whoever has moved it."""
    return any(osd.undeleted_bytes > _CLEAR_RATIO * osd.size_bytes
               for osd in view.snapshot.osds.values() if osd.is_in)


def own_moves(view: ClusterView) -> FrozenSet[str]:
    """PGs in flight by upmap items: after a failover ours cannot always be told from others'."""
    return frozenset(movement.pgid for movement in view.movements
                     if movement.origin in (PLAN, UPMAP))


def await_measurement(started_at: float, view: Optional[ClusterView]) -> AwaitedMeasurement:
    """For an episode that ends now."""
    awaited = AwaitedMeasurement(started_at, None)
    return awaited if view is None else awaited.observe(view)

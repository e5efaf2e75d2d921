"""The figures of a run: what was moved, how full OSDs were, what went to and fro."""
from __future__ import annotations

from typing import Dict, List, Set, Tuple

from mgr_stub.console.session import Session

from ..rules.under_way import Outgoing, UnderWay
from . import cluster_view
from .thrashing import trend_discounted_variation

#: Virtual seconds between two entries of the utilization series.
_SERIES_SECONDS = 600.0
#: What metadata may add, as a ratio of an OSD.
_ROUNDING = 1e-4
Utilizations = Dict[str, Dict[int, float]]


class Figures:
    """Taken at every look."""

    def __init__(self, session: Session) -> None:
        utilizations = session.cluster.utilizations()
        self.first = {name: (max(by_osd.values()), min(by_osd.values()))
                      for name, by_osd in utilizations.items()}
        self.commands = 0
        self.moved_bytes = 0
        self.moved_shards = 0
        self.last_command_at = 0.0
        self.highest_misplaced = 0.0
        self.highest_fill = 0.0
        self._series: Dict[int, List[float]] = {}
        self._series_at = session.simulation.clock.now
        self._start_series(session, utilizations)

    def count(self, session: Session, pgids: List[str]) -> None:
        """The PGs of commands that have just been done."""
        for pgid in pgids:
            if pgid in session.cluster.pgs:
                coming = cluster_view.coming(session.cluster, session.cluster.pgs[pgid])
                self.moved_shards += len(coming)
                self.moved_bytes += sum(coming.values())

    def measure(self, session: Session, ours: Set[str], utilizations: Utilizations) -> None:
        """`ours` are the PGs that the module moves."""
        cluster = session.cluster
        misplaced = cluster_view.misplaced_copies(cluster, ours)
        if misplaced:
            self.highest_misplaced = max(
                self.highest_misplaced, misplaced / max(1, cluster_view.object_copies(cluster)))
        self.highest_fill = max([self.highest_fill] + [
            level for by_osd in utilizations.values() for level in by_osd.values()])
        if session.simulation.clock.now >= self._series_at:
            self._start_series(session, utilizations)

    def _start_series(self, session: Session, utilizations: Utilizations) -> None:
        self._series_at = session.simulation.clock.now + _SERIES_SECONDS
        for by_osd in utilizations.values():
            for osd, level in by_osd.items():
                self._series.setdefault(osd, []).append(level)

    def thrashing(self) -> float:
        """The worst OSD's thrashing, as a ratio of the widest spread of all OSDs."""
        values = [value for series in self._series.values() for value in series]
        spread = max(values) - min(values)
        worst = max(trend_discounted_variation(series) for series in self._series.values())
        return worst / spread if spread > 0.0 else 0.0


class Ceiling:
    """L8: while nothing but the module moves data, no class's highest utilization rises."""

    def __init__(self) -> None:
        self._ceilings: Dict[str, float] = {}
        self._data: Tuple[int, int, int] = (0, 0, 0)

    def passed(self, session: Session, ours: UnderWay, utilizations: Utilizations) -> List[str]:
        """What is wrong with the utilizations of this look."""
        cluster = session.cluster
        data = (sum(pg.num_bytes for pg in cluster.pgs.values()), len(cluster.pgs),
                len(cluster.map.osds))
        foreign = data != self._data or any(
            pg.transfers and not ours.is_alone(pg) for pg in cluster.unclean.values())
        self._data = data
        if foreign or set(utilizations) != set(self._ceilings):
            self._ceilings = self._lift(session, ours, utilizations)
            return []
        return [
            f"class {name or 'none'} is at {max(by_osd.values()):.4f}, above the "
            f"{self._ceilings[name]:.4f} of before"
            for name, by_osd in utilizations.items()
            if max(by_osd.values()) > self._ceilings[name] + _ROUNDING]

    def _lift(self, session: Session, ours: UnderWay,
              utilizations: Utilizations) -> Dict[str, float]:
        cluster = session.cluster
        peaks = cluster_view.peaks(cluster, ours)
        return {name: max(peaks[osd] / cluster.usage[osd].total for osd in by_osd)
                for name, by_osd in utilizations.items()}


class Repeats:
    """L4: shards that the module has moved twice since the last event."""

    def __init__(self) -> None:
        self._placed: Set[Tuple[str, int]] = set()
        self.found: List[str] = []

    def begin(self) -> None:
        """Something has happened: what was right may be wrong now."""
        self._placed = set()

    def on_move(self, move: Outgoing) -> None:
        for osd in move.losses:
            if (move.pgid, osd) in self._placed:
                self.found.append(f"pg {move.pgid} leaves osd.{osd}, where it was put")
        self._placed.update((move.pgid, osd) for osd in move.gains)

"""Puts those wanted changes first that relieve OSDs above nearfull.

The plan is ordered: the fullest OSDs first, and what frees space before what needs it. Among all
other changes that order is kept.
"""
from __future__ import annotations

from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from ..plan.model import PgChange
from ..snapshot.model import Snapshot, shard_changes
from .osd_traffic import OsdTraffic, predicted_utilization


class Ranked(NamedTuple):
    """The wanted changes in the order in which they are checked."""

    changes: List[PgChange]
    urgent: Dict[str, int]   # pgid → the OSD above nearfull that its change relieves


class ReliefReservation:
    """Resources kept for relief that has to wait: its OSDs, and the misplaced budget of as much of
    it as can go at a time."""

    def __init__(self, max_backfills: int) -> None:
        """`max_backfills`: shards that may leave an OSD at a time; 0 means any number."""
        self._max_backfills = max_backfills
        self._waiting: Dict[int, int] = {}   # overfull OSD → changes that wait
        self._osds: Dict[int, int] = {}      # OSD → the overfull OSD that it is kept for
        self.copies = 0                      # object copies that the relief is to misplace
        self.first: Optional[int] = None     # the first OSD whose relief has to wait

    def add(self, relieves: int, osds: Sequence[int], copies: int) -> None:
        """Reserves for a waiting change that takes a shard off the overfull OSD `relieves`."""
        self.first = relieves if self.first is None else self.first
        for osd in osds:
            self._osds.setdefault(osd, relieves)
        waiting = self._waiting[relieves] = self._waiting.get(relieves, 0) + 1
        if waiting <= self._max_backfills or not self._max_backfills:
            self.copies += copies

    def sharing(self, osds: Sequence[int]) -> Optional[int]:
        """The overfull OSD whose relief waits at one of these, or None."""
        return next((self._osds[osd] for osd in osds if osd in self._osds), None)


def by_urgency(snapshot: Snapshot, traffic: OsdTraffic, wanted: Sequence[PgChange]) -> Ranked:
    """Ranks changes: urgent are as many as bring the OSDs below nearfull again, given what is in
    flight."""
    overfull = _overfull(snapshot, traffic)
    if not overfull:
        return Ranked(list(wanted), {})
    leaving: Dict[int, List[Tuple[float, int, PgChange]]] = {osd: [] for osd in overfull}
    for place, change in enumerate(wanted):
        losses = _losses(snapshot, change)
        relieved = [osd for osd in losses if osd in leaving]
        for osd in relieved:
            leaving[osd].append((-len(relieved) / len(losses), place, change))
    urgent: Dict[str, int] = {}
    first: List[PgChange] = []
    for osd in sorted(overfull, key=lambda o: (-overfull[o], o)):
        excess = (overfull[osd] - snapshot.nearfull_ratio) * snapshot.osds[osd].size_bytes
        for _, _, change in sorted(leaving[osd], key=lambda row: row[:2]):
            if excess <= 0.0:
                break
            pg = snapshot.pgs[change.pgid]
            relief = snapshot.shard_bytes(pg, osd, pg.up)
            excess -= relief
            if change.pgid not in urgent and relief > 0:
                urgent[change.pgid] = osd
                first.append(change)
    return Ranked(first + [change for change in wanted if change.pgid not in urgent], urgent)


def _overfull(snapshot: Snapshot, traffic: OsdTraffic) -> Dict[int, float]:
    """OSD → its utilization once everything has arrived, where that is above nearfull."""
    predicted = {osd: predicted_utilization(snapshot, traffic.of(osd), osd)
                 for osd in snapshot.osds}
    return {osd: utilization for osd, utilization in predicted.items()
            if utilization > snapshot.nearfull_ratio}


def _losses(snapshot: Snapshot, change: PgChange) -> Tuple[int, ...]:
    pg = snapshot.pgs.get(change.pgid)
    if pg is None or len(pg.up) != len(change.up_after):
        return ()
    return shard_changes(pg.up, change.up_after, snapshot.pools[pg.pool].erasure)[1]

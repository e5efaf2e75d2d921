"""Which of the wanted changes come first: those that relieve OSDs above nearfull.

The plan itself comes ordered, the fullest OSDs first and what frees room before what needs it, so
among all others its order is kept.
"""
from __future__ import annotations

from typing import Dict, List, NamedTuple, Sequence, Tuple

from ..planner.plan import PgChange
from ..snapshot.model import Snapshot, shard_changes
from .transit import Transit, foreseen_utilization


class Ranked(NamedTuple):
    """The wanted changes in the order in which to look at them."""

    changes: List[PgChange]
    urgent: Dict[str, int]   # pgid → the OSD above nearfull that its change relieves


def by_urgency(snapshot: Snapshot, transit: Transit, wanted: Sequence[PgChange]) -> Ranked:
    """Urgent is what it takes to bring the OSDs below nearfull again, given what is under way."""
    overfull = _overfull(snapshot, transit)
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
            excess -= snapshot.pgs[change.pgid].shard_bytes
            if change.pgid not in urgent:
                urgent[change.pgid] = osd
                first.append(change)
    return Ranked(first + [change for change in wanted if change.pgid not in urgent], urgent)


def _overfull(snapshot: Snapshot, transit: Transit) -> Dict[int, float]:
    """OSD → its utilisation once all has arrived, where that is above nearfull."""
    levels = {osd: foreseen_utilization(snapshot, transit.of(osd), osd) for osd in snapshot.osds}
    return {osd: level for osd, level in levels.items() if level > snapshot.nearfull_ratio}


def _losses(snapshot: Snapshot, change: PgChange) -> Tuple[int, ...]:
    pg = snapshot.pgs.get(change.pgid)
    if pg is None or len(pg.up) != len(change.up_after):
        return ()
    return shard_changes(pg.up, change.up_after, snapshot.pools[pg.pool].erasure)[1]

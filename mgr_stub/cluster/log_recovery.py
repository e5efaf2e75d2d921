"""PGs whose log reaches back to their first object: new members are recovered, not backfilled.

Seen on 16.2.15 and 20.2.4. A new member of `up` lacks nothing that the log does not tell, so the PG
asks for no backfill. A member that lacks more than osd_async_recovery_min_cost writes stays out of
the acting set while it is filled, as long as min_size others serve; one that lacks fewer serves at
once. `norebalance` and `nobackfill` stop neither, and the old members keep their copies until the
PG is clean.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from ..osdmap.upmap import NONE, Mapping
from .pg import Pg

#: Writes that a member may lack and still serve at once (osd_async_recovery_min_cost).
ASYNC_MIN_COST = 100

#: Bytes of a write where nothing else is known.
_USUAL_WRITE = 1 << 20

#: Log entries of all PGs of an OSD (osd_target_pg_log_entries_per_osd), and the bounds of one PG
#: (osd_min_pg_log_entries, osd_max_pg_log_entries).
_ENTRIES_PER_OSD = 300_000
_FEWEST, _MOST = 250, 10_000


def log_length(pgs_per_osd: float) -> int:
    """How many writes the log of a PG keeps."""
    return int(min(_MOST, max(_FEWEST, _ENTRIES_PER_OSD / max(1.0, pgs_per_osd))))


def writes_in_log(stats: Dict[str, Any], length: int) -> Optional[int]:
    """Writes in a PG's life if its log still has them all, else None; from its pg_stats[] record.

    A record without log_start is judged by its writes, objects and bytes, and a log's length.
    """
    start = stats.get("ondisk_log_start", stats.get("log_start"))
    if start is not None:
        if start != "0'0":
            return None
        return int(str(stats.get("version", "0'0")).partition("'")[2] or 0)
    sums = stats.get("stat_sum", {})
    writes = max(int(sums.get("num_write", 0)), int(sums.get("num_objects", 0)),
                 int(sums.get("num_bytes", 0)) // _USUAL_WRITE)
    return writes if writes < length else None


def is_by_log(pg: Pg) -> bool:
    """Whether all that the PG copies comes to members that are new, by its log."""
    return bool(pg.flows) and all(flow.whole_log for flow in pg.flows.values())


def acting_by_log(pg: Pg, up: Mapping, size: int, min_size: int,
                  is_up: Callable[[int], bool], serving_now: Mapping = ()) -> Mapping:
    """The acting set that such a PG comes to; marks the members that are filled apart from it."""
    costly = (pg.writes or 0) > ASYNC_MIN_COST
    new = {place for place in pg.flows}
    if pg.erasure:
        acting, apart = _positions(pg, up, min_size, costly, is_up)
    else:
        alive = sorted(osd for osd in pg.held if is_up(osd))
        # among equals Ceph takes who leads now, else the lowest id
        leader = next((osd for osd in (*serving_now[:1], *alive) if osd in alive), NONE)
        acting, apart = _replicas(pg, up, size, min_size, in_turn(alive, serving_now), leader,
                                  costly)
    for place in new:
        pg.flows[place].apart = place in apart
    return acting


def in_turn(osds: Sequence[int], serving_now: Mapping) -> List[int]:
    """OSDs outside of `up` as Ceph asks them to serve: those that do now, in their order, then the
    lowest ids (PeeringState::calc_replicated_acting)."""
    serving = [osd for osd in serving_now if osd in osds]
    return serving + sorted(set(osds) - set(serving))


Apart = List[Tuple[int, int]]


def _replicas(pg: Pg, up: Mapping, size: int, min_size: int, alive: List[int], leader: int,
              costly: bool) -> Tuple[Mapping, Apart]:
    """Who leads has all; then `up`, then old members; the new ones of the highest ids stay out."""
    new = {osd for _, osd in pg.flows}
    wanted = list(up)
    if wanted and wanted[0] in new and costly and alive:
        wanted = [leader] + [osd for osd in up if osd != leader]
    wanted += [osd for osd in alive if osd not in wanted][:max(0, size - len(wanted))]
    apart: Apart = []
    for osd in sorted(new, reverse=True) if costly else ():
        if len(wanted) > min_size and osd in wanted:
            wanted.remove(osd)
            apart.append((0, osd))
    return tuple(wanted), apart


def _positions(pg: Pg, up: Mapping, min_size: int, costly: bool,
               is_up: Callable[[int], bool]) -> Tuple[Mapping, Apart]:
    """The positions of new members become holes, the highest ids first; old members fill others."""
    acting = [old if new == NONE and old != NONE and is_up(old) else new
              for new, old in zip_longest(up, pg.held[:len(up)], fillvalue=NONE)]
    apart: Apart = []
    for position, osd in sorted(pg.flows, key=lambda place: place[1], reverse=True):
        present = sum(1 for member in acting if member != NONE)
        if costly and present > min_size:
            acting[position] = NONE
            apart.append((position, osd))
    return tuple(acting), apart

"""Log recovery of PGs whose log reaches back to their first object, in place of backfill.

Seen on 16.2.15 and 20.2.4. The log has all that a new member of `up` lacks, so the PG asks for no
backfill. If a member lacks more than osd_async_recovery_min_cost writes, it joins the acting set
when it is filled, provided that min_size others serve (asynchronous recovery). A member that lacks
fewer serves at once. `norebalance` and `nobackfill` stop neither, and the old members keep their
copies until the PG is clean.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from ..crush.hashes import NONE
from ..osdmap.upmap import Mapping
from .pg import Pg, version_number

#: Writes that a member may lack and still serve at once (osd_async_recovery_min_cost).
ASYNC_MIN_COST = 100

#: Bytes of a write, assumed if the statistics do not count writes.
_DEFAULT_WRITE_BYTES = 1 << 20

#: Log entries of all PGs of an OSD (osd_target_pg_log_entries_per_osd), and the bounds of one PG
#: (osd_min_pg_log_entries, osd_max_pg_log_entries).
_ENTRIES_PER_OSD = 300_000
_MIN_ENTRIES = 250
_MAX_ENTRIES = 10_000


def log_length(pgs_per_osd: float) -> int:
    """Returns the number of writes that the log of a PG keeps."""
    return int(min(_MAX_ENTRIES, max(_MIN_ENTRIES, _ENTRIES_PER_OSD / max(1.0, pgs_per_osd))))


def writes_in_log(stats: Dict[str, Any], length: int) -> Optional[int]:
    """Returns the number of writes in a PG's life if its log still has them all, else None; from
    its pg_stats[] record.

    For a record without log_start its writes, objects and bytes are compared with `length`.
    """
    start = stats.get("ondisk_log_start", stats.get("log_start"))
    if start is not None:
        if start != "0'0":
            return None
        return version_number(stats)
    sums = stats.get("stat_sum", {})
    writes = max(int(sums.get("num_write", 0)), int(sums.get("num_objects", 0)),
                 int(sums.get("num_bytes", 0)) // _DEFAULT_WRITE_BYTES)
    if writes < length:
        return writes
    return None


def is_by_log(pg: Pg) -> bool:
    """Returns True if all transfers of the PG go to new members and are done by its log."""
    return bool(pg.transfers) and all(transfer.by_whole_log for transfer in pg.transfers.values())


def acting_by_log(pg: Pg, up: Mapping, size: int, min_size: int,
                  is_up: Callable[[int], bool], serving_now: Mapping = ()) -> Mapping:
    """Returns the acting set of a PG that recovers by its log; marks transfers to other OSDs as
    `is_async`.
    """
    costly = (pg.writes or 0) > ASYNC_MIN_COST
    new = set(pg.transfers)
    if pg.erasure:
        acting, excluded = _positions(pg, up, min_size, costly, is_up)
    else:
        alive = sorted(osd for osd in pg.held if is_up(osd))
        # among equals Ceph takes the present primary, else the lowest id
        primary = next((osd for osd in (*serving_now[:1], *alive) if osd in alive), NONE)
        acting, excluded = _replicas(pg, up, size, min_size, serving_order(alive, serving_now),
                                     primary, costly)
    for place in new:
        pg.transfers[place].is_async = place in excluded
    return acting


def serving_order(osds: Sequence[int], serving_now: Mapping) -> List[int]:
    """Returns the OSDs in the order in which Ceph asks them to serve.

    Those that serve now come first, then the lowest ids (PeeringState::calc_replicated_acting).
    """
    serving = [osd for osd in serving_now if osd in osds]
    return serving + sorted(set(osds) - set(serving))


AsyncTargets = List[Tuple[int, int]]


def _replicas(pg: Pg, up: Mapping, size: int, min_size: int, alive: List[int], primary: int,
              costly: bool) -> Tuple[Mapping, AsyncTargets]:
    """Returns the acting set of a replicated PG, and the members to fill asynchronously. A complete
    primary leads; then `up`, then old members; new members with high ids stay out.
    """
    new = {osd for _, osd in pg.transfers}
    wanted = list(up)
    is_led_by_new = bool(wanted) and wanted[0] in new
    if is_led_by_new and costly and alive:
        wanted = [primary] + [osd for osd in up if osd != primary]
    wanted += [osd for osd in alive if osd not in wanted][:max(0, size - len(wanted))]
    excluded: AsyncTargets = []
    if not costly:
        return tuple(wanted), excluded
    for osd in sorted(new, reverse=True):
        if len(wanted) > min_size and osd in wanted:
            wanted.remove(osd)
            excluded.append((0, osd))
    return tuple(wanted), excluded


def _positions(pg: Pg, up: Mapping, min_size: int, costly: bool,
               is_up: Callable[[int], bool]) -> Tuple[Mapping, AsyncTargets]:
    """Returns the acting set of an erasure-coded PG, and the members to fill asynchronously.
    Positions of new members become holes, highest ids first; old members fill other holes.
    """
    acting = list(up)
    for position, old in enumerate(pg.held[:len(up)]):
        if acting[position] == NONE and old != NONE and is_up(old):
            acting[position] = old
    excluded: AsyncTargets = []
    for position, osd in sorted(pg.transfers, key=lambda place: place[1], reverse=True):
        present = len(acting) - acting.count(NONE)
        if costly and present > min_size:
            acting[position] = NONE
            excluded.append((position, osd))
    return tuple(acting), excluded

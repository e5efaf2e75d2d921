"""Acting set, state, and misplaced and degraded object copies of a PG that has peered.

The counts are those of Ceph's PeeringState::update_calc_stats: the objects that each member of
`up` lacks. They are misplaced as far as an acting OSD outside of `up` has them, else degraded.
"""

from __future__ import annotations

from typing import Callable, List, NamedTuple, Optional, Sequence

from ..crush.hashes import NONE
from ..osdmap.upmap import Mapping
from .log_recovery import acting_by_log, is_by_log, serving_order
from .pg import Pg


class Counts(NamedTuple):
    """Object copies of one PG."""

    misplaced: int
    degraded: int


def acting_of(pg: Pg, up: Mapping, size: int, min_size: int, is_up: Callable[[int], bool],
              serving_now: Optional[Mapping] = None) -> Mapping:
    """Returns the OSDs that serve the PG; `up` itself if no other set has more of the data.

    `serving_now` is the acting set at the beginning of peering; its primary stays primary if
    possible. None is the simulator's older rule, not Ceph's: the first holder leads.
    """
    if is_by_log(pg):
        return acting_by_log(pg, up, size, min_size, is_up, serving_now or ())
    if pg.erasure:
        return _acting_by_place(pg, up, is_up)
    serving = [osd for osd in up if _has(pg, 0, osd)]
    if len(serving) == len(up) == size:
        return up
    others = [osd for osd in pg.held if is_up(osd) and osd not in serving]
    if serving_now is None:
        serving = (serving + others)[:size]
        if not serving or set(serving) == set(up):
            return up
        places = {osd: place for place, osd in enumerate(pg.held)}
        return tuple(sorted(serving, key=lambda osd: places.get(osd, len(pg.held))))
    serving += serving_order(others, serving_now)
    if not serving:
        return up
    primary = _primary(pg, up, serving, serving_now, is_up)
    serving = [primary, *(osd for osd in serving if osd != primary)][:size]
    if set(serving) == set(up):
        return up
    return tuple(serving)


def _acting_by_place(pg: Pg, up: Mapping, is_up: Callable[[int], bool]) -> Mapping:
    acting = list(up)
    for place, new in enumerate(up):
        if not _has(pg, place, new):
            acting[place] = _alive(pg, place, is_up)
    if acting.count(NONE) == len(acting):
        return up
    return tuple(acting)


def _primary(pg: Pg, up: Mapping, serving: Sequence[int], serving_now: Mapping,
            is_up: Callable[[int], bool]) -> int:
    """Returns the primary: the first of `up` if it has the data, else the OSD with the longest log.

    Among equals it is the present primary, then the lowest id (PeeringState::find_best_info). An
    OSD filled by backfill can have a shorter log than the others until the next write.
    """
    if up and up[0] in serving and up[0] in pg.held:
        return up[0]
    return min((osd for osd in pg.held if is_up(osd)), default=serving[0],
               key=lambda osd: (osd in pg.short_logs, osd not in serving_now[:1], osd))


def _has(pg: Pg, place: int, osd: int) -> bool:
    """Returns True if an OSD may serve at a position: complete, or lacking only entries of the log.
    """
    if pg.erasure:
        has_all = pg.held[place:place + 1] == (osd,)
    else:
        has_all = osd in pg.held
    if has_all:
        return osd != NONE
    transfer = pg.transfers.get((place, osd))
    return transfer is not None and transfer.serves


def _member(osds: Mapping, place: int) -> int:
    """Returns the OSD at a position; NONE after the last one."""
    if place < len(osds):
        return osds[place]
    return NONE


def _alive(pg: Pg, place: int, is_up: Callable[[int], bool]) -> int:
    osd = _member(pg.held, place)
    if osd != NONE and is_up(osd):
        return osd
    return NONE


def peered_counts(pg: Pg, up: Mapping, acting: Mapping, size: int) -> Counts:
    """Returns the misplaced and degraded object copies of a PG that has peered."""
    if is_by_log(pg):
        return _counts_by_log(pg, up, acting, size)
    if not pg.erasure:
        return _replicated_counts(pg, up, acting, size)
    misplaced = degraded = 0
    for place in range(size):
        new = _member(up, place)
        old = _member(acting, place)
        missing = _missing(pg, place, new)
        if old != NONE and old != new:
            misplaced += missing
        else:
            degraded += missing
    return Counts(misplaced, degraded)


def _replicated_counts(pg: Pg, up: Mapping, acting: Mapping, size: int) -> Counts:
    missing: List[int] = sorted((_missing(pg, 0, osd) for osd in up), reverse=True)
    if len(up) < size:
        missing.insert(0, pg.num_objects * (size - len(up)))
    sources = sum(1 for osd in acting if osd not in up)
    misplaced = sum(missing[:sources]) + pg.num_objects * max(0, sources - len(missing))
    return Counts(misplaced, sum(missing[sources:]))


def _counts_by_log(pg: Pg, up: Mapping, acting: Mapping, size: int) -> Counts:
    """Returns the counts of a PG that recovers by its log: old members count as sources at any
    position.

    They do so once recovery has begun: a PG that waits has not asked them yet.
    """
    if pg.erasure:
        misplaced = degraded = 0
        for place, transfer in pg.transfers.items():
            replaces = transfer.source in pg.held[place[0]:place[0] + 1]
            if pg.backfilling and replaces:
                misplaced += _missing(pg, *place)
            else:
                degraded += _missing(pg, *place)
        for here, there in zip(up, acting):
            if here == NONE != there:
                misplaced += pg.num_objects
            elif here == NONE:
                degraded += pg.num_objects
        return Counts(misplaced, degraded)
    missing = sorted((_missing(pg, 0, osd) for osd in up), reverse=True)
    missing[:0] = [pg.num_objects] * (size - len(up))
    old = 0
    if pg.backfilling:
        old = sum(osd not in up for osd in pg.held)
    return Counts(sum(missing[:old]), sum(missing[old:]))


def _missing(pg: Pg, place: int, osd: int) -> int:
    """Returns the number of objects that a member of `up` lacks."""
    transfer = pg.transfers.get((place, osd))
    if transfer is None:
        if _has(pg, place, osd):
            return 0
        return pg.num_objects
    total = transfer.total   # the hottest loop over moving PGs, hence without `missing`
    if transfer.copied >= total:
        return 0
    return int(round(pg.num_objects * ((total - transfer.copied) / total)))


def peered_state(pg: Pg, up: Mapping, acting: Mapping, size: int, min_size: int,
             is_up: Callable[[int], bool], counts: Counts) -> str:
    """Returns the state of a PG that has peered, in Ceph's terms and their order."""
    serving = [osd for place, osd in enumerate(acting)
               if osd != NONE and _has(pg, *pg.place_of(place, osd))]
    if not serving:
        if not any(osd != NONE and is_up(osd) for osd in acting):
            return "stale+undersized+degraded+peered"  # no OSD is left to report
        if any(not is_up(osd) for osd in pg.holders()):
            return "down"
        return "incomplete"
    enough = len(serving) >= min_size
    waiting = bool(pg.transfers)
    names: List[str] = []
    if enough:
        names.append("active")
    by_log = waiting and any(transfer.by_log for transfer in pg.transfers.values())
    # `degraded` is shown until the first object is recovered, even if no object is degraded
    untouched = is_by_log(pg) and not any(transfer.copied for transfer in pg.transfers.values())
    if enough and not waiting and not counts.degraded:
        names.append("clean")
    if by_log:
        names.append(_progress(pg, "recovering", "recovery"))
    if len(serving) < size:
        names.append("undersized")
    if counts.degraded or untouched:
        names.append("degraded")
    if acting != up and not pg.hides_remapped:
        names.append("remapped")
    if waiting and not by_log:
        names.append(_progress(pg, "backfilling", "backfill"))
    if not enough:
        names.append("peered")
    return "+".join(names)


def _progress(pg: Pg, running: str, kind: str) -> str:
    if pg.backfilling:
        return running
    if pg.toofull:
        return f"{kind}_toofull"
    return f"{kind}_wait"


def priority_of(pg: Pg, acting: Mapping, size: int, min_size: int, degraded: int) -> int:
    """Returns Ceph's priority of a reservation: PGs with fewer copies come first."""
    present = len(acting) - acting.count(NONE)
    if present < min_size:
        return 220 + min_size - present
    if pg.transfers and all(transfer.by_log for transfer in pg.transfers.values()):
        return 180
    if degraded:
        return 140 + size - present
    return 100

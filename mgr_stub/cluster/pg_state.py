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
        acting = tuple(new if _has(pg, place, new) else _alive(pg, place, is_up)
                       for place, new in enumerate(up))
        return acting if any(osd != NONE for osd in acting) else up
    serving = [osd for osd in up if _has(pg, 0, osd)]
    if len(serving) == len(up) == size:
        return up
    others = [osd for osd in pg.held if is_up(osd) and osd not in serving]
    if serving_now is None:
        serving = (serving + others)[:size]
        if not serving or set(serving) == set(up):
            return up
        return tuple(sorted(serving, key=lambda osd: pg.held.index(osd) if osd in pg.held
                            else len(pg.held)))
    serving += serving_order(others, serving_now)
    if not serving:
        return up
    primary = _primary(pg, up, serving, serving_now, is_up)
    serving = [primary, *(osd for osd in serving if osd != primary)][:size]
    return up if set(serving) == set(up) else tuple(serving)


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
    if (pg.held[place:place + 1] == (osd,)) if pg.erasure else osd in pg.held:
        return osd != NONE
    transfer = pg.transfers.get((place, osd))
    return transfer is not None and transfer.serves


def _alive(pg: Pg, place: int, is_up: Callable[[int], bool]) -> int:
    osd = pg.held[place] if place < len(pg.held) else NONE
    return osd if osd != NONE and is_up(osd) else NONE


def peered_counts(pg: Pg, up: Mapping, acting: Mapping, size: int) -> Counts:
    """Returns the misplaced and degraded object copies of a PG that has peered."""
    if is_by_log(pg):
        return _counts_by_log(pg, up, acting, size)
    if not pg.erasure:
        return _replicated_counts(pg, up, acting, size)
    misplaced = degraded = 0
    for place in range(size):
        new = up[place] if place < len(up) else NONE
        old = acting[place] if place < len(acting) else NONE
        missing = pg.num_objects if new == NONE else _missing(pg, place, new)
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
    old = sum(1 for osd in pg.held if osd not in up) if pg.backfilling else 0
    return Counts(sum(missing[:old]), sum(missing[old:]))


def _missing(pg: Pg, place: int, osd: int) -> int:
    """Returns the number of objects that a member of `up` lacks."""
    transfer = pg.transfers.get((place, osd))
    if transfer is None:
        return 0 if _has(pg, place, osd) else pg.num_objects
    total = transfer.total   # the hottest loop over moving PGs, hence without `missing`
    if transfer.copied >= total:
        return 0
    return int(round(pg.num_objects * ((total - transfer.copied) / total)))


def peered_state(pg: Pg, up: Mapping, acting: Mapping, size: int, min_size: int,
             is_up: Callable[[int], bool], counts: Counts) -> str:
    """Returns the state of a PG that has peered, in Ceph's terms and their order."""
    places = enumerate(acting) if pg.erasure else ((0, osd) for osd in acting)
    serving = [osd for place, osd in places if osd != NONE and _has(pg, place, osd)]
    if not serving:
        if not any(osd != NONE and is_up(osd) for osd in acting):
            return "stale+undersized+degraded+peered"  # no OSD is left to report
        return "down" if any(not is_up(osd) for osd in pg.holders()) else "incomplete"
    enough = len(serving) >= min_size
    waiting = bool(pg.transfers)
    names = ["active"] if enough else []
    by_log = waiting and any(transfer.by_log for transfer in pg.transfers.values())
    # `degraded` is shown until the first object is recovered, even if no object is degraded
    untouched = is_by_log(pg) and not any(transfer.copied for transfer in pg.transfers.values())
    if enough and not waiting and not counts.degraded:
        names.append("clean")
    if by_log:
        names.append("recovering" if pg.backfilling else
                     "recovery_toofull" if pg.toofull else "recovery_wait")
    if len(serving) < size:
        names.append("undersized")
    if counts.degraded or untouched:
        names.append("degraded")
    if acting != up and not pg.hides_remapped:
        names.append("remapped")
    if waiting and not by_log:
        names.append("backfilling" if pg.backfilling else
                     "backfill_toofull" if pg.toofull else "backfill_wait")
    return "+".join(names if enough else names + ["peered"])


def priority_of(pg: Pg, acting: Mapping, size: int, min_size: int, degraded: int) -> int:
    """Returns Ceph's priority of a reservation: PGs with fewer copies come first."""
    present = sum(1 for osd in acting if osd != NONE)
    if present < min_size:
        return 220 + min_size - present
    if pg.transfers and all(transfer.by_log for transfer in pg.transfers.values()):
        return 180
    return 140 + size - present if degraded else 100

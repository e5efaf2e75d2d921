"""What a PG reports: its acting set, its state, and its misplaced and degraded object copies.

The counts are those of Ceph's PeeringState::update_calc_stats: of each member of `up` the objects
that it lacks, which are misplaced as far as an acting OSD outside of `up` has them and degraded
otherwise.
"""

from __future__ import annotations

from typing import Callable, List, NamedTuple, Optional, Sequence

from ..osdmap.upmap import NONE, Mapping
from .log_recovery import acting_by_log, in_turn, is_by_log
from .pg import Pg


class Counts(NamedTuple):
    """Object copies of one PG."""

    misplaced: int
    degraded: int


def acting_of(pg: Pg, up: Mapping, size: int, min_size: int, is_up: Callable[[int], bool],
              serving_now: Optional[Mapping] = None) -> Mapping:
    """The OSDs that serve the PG; `up` itself where no other set would do better.

    `serving_now` are those that do as the PG begins to peer: their first stays it if it can.
    Without them the old primary leads, as the simulator had it before it was compared with Ceph.
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
    serving += in_turn(others, serving_now)
    if not serving:
        return up
    leader = _leader(pg, up, serving, serving_now, is_up)
    serving = [leader, *(osd for osd in serving if osd != leader)][:size]
    return up if set(serving) == set(up) else tuple(serving)


def _leader(pg: Pg, up: Mapping, serving: Sequence[int], serving_now: Mapping,
            is_up: Callable[[int], bool]) -> int:
    """Who leads: the first of `up` if it has the data, else who has the longest log.

    Among equals it is who leads now, then the lowest id (PeeringState::find_best_info). Whoever
    arrived by backfill may have a shorter log than the others, until the next write.
    """
    if up and up[0] in serving and up[0] in pg.held:
        return up[0]
    return min((osd for osd in pg.held if is_up(osd)), default=serving[0],
               key=lambda osd: (osd in pg.later_logs, osd not in serving_now[:1], osd))


def _has(pg: Pg, place: int, osd: int) -> bool:
    """Whether an OSD may serve there: its data is complete or lacks only what a log tells."""
    if (pg.held[place:place + 1] == (osd,)) if pg.erasure else osd in pg.held:
        return osd != NONE
    flow = pg.flows.get((place, osd))
    return flow is not None and flow.serves


def _alive(pg: Pg, place: int, is_up: Callable[[int], bool]) -> int:
    osd = pg.held[place] if place < len(pg.held) else NONE
    return osd if osd != NONE and is_up(osd) else NONE


def counts_of(pg: Pg, up: Mapping, acting: Mapping, size: int) -> Counts:
    """Misplaced and degraded object copies of a PG that has peered."""
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
    """Where the log tells what is missing, copies on old members count wherever those are.

    But only once recovery has begun: a PG that waits has not asked them yet.
    """
    if pg.erasure:
        misplaced = sum(_missing(pg, *place) for place, flow in pg.flows.items() if pg.backfilling
                        and flow.source in pg.held[place[0]:place[0] + 1])
        degraded = sum(_missing(pg, *place) for place in pg.flows) - misplaced
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
    """Objects that a member of `up` lacks."""
    flow = pg.flows.get((place, osd))
    if flow is None:
        return 0 if _has(pg, place, osd) else pg.num_objects
    # asked for more than anything else of a moving PG, so without the properties of Flow
    data, omap, metadata = flow.shard
    total = data + omap + metadata
    if flow.copied >= total:
        return 0
    return int(round(pg.num_objects * ((total - flow.copied) / total)))


def state_of(pg: Pg, up: Mapping, acting: Mapping, size: int, min_size: int,
             is_up: Callable[[int], bool], counts: Counts) -> str:
    """The state of a PG that has peered, in Ceph's words and their order."""
    serving = [osd for place, osd in enumerate(acting)
               if osd != NONE and _has(pg, place if pg.erasure else 0, osd)]
    if not serving:
        if not any(osd != NONE and is_up(osd) for osd in acting):
            return "stale+undersized+degraded+peered"  # nobody is left to report
        return "down" if any(not is_up(osd) for osd in pg.holders()) else "incomplete"
    enough = len(serving) >= min_size
    waiting = bool(pg.flows)
    words = ["active"] if enough else []
    by_log = waiting and any(flow.by_log for flow in pg.flows.values())
    # the word stands until the first object is recovered, even if no object is degraded
    untouched = is_by_log(pg) and not any(flow.copied for flow in pg.flows.values())
    if enough and not waiting and not counts.degraded:
        words.append("clean")
    if by_log:
        words.append("recovering" if pg.backfilling else
                     "recovery_toofull" if pg.toofull else "recovery_wait")
    if len(serving) < size:
        words.append("undersized")
    if counts.degraded or untouched:
        words.append("degraded")
    if acting != up and not pg.unmarked:
        words.append("remapped")
    if waiting and not by_log:
        words.append("backfilling" if pg.backfilling else
                     "backfill_toofull" if pg.toofull else "backfill_wait")
    return "+".join(words if enough else words + ["peered"])


def priority_of(pg: Pg, acting: Mapping, size: int, min_size: int, degraded: int) -> int:
    """Ceph's priority of a reservation: who has fewer copies comes first."""
    present = sum(1 for osd in acting if osd != NONE)
    if present < min_size:
        return 220 + min_size - present
    if pg.flows and all(flow.by_log for flow in pg.flows.values()):
        return 180
    return 140 + size - present if degraded else 100

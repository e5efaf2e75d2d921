"""Reports of PGs to the mgr: state and counts, cached while the PG does not change."""

from __future__ import annotations

from typing import Tuple

from ..crush.hashes import NONE
from ..osdmap.osd_map import is_merging
from .cluster import Cluster, Peering
from .peering import blockers_of
from .pg import Pg
from .pg_state import Counts, peered_counts, peered_state

#: State of a PG that is neither moving nor in trouble.
CLEAN = "active+clean"
#: State of the PGs of a pair that is about to be merged; they serve no clients.
PREMERGE = "clean+premerge+peered"

#: State of a PG, and its misplaced and degraded object copies.
Report = Tuple[str, Counts]

_NO_COUNTS = Counts(0, 0)


def refresh(cluster: Cluster, pg: Pg) -> None:
    """Updates `cluster.unclean`; to be called after everything that may change a PG's reports."""
    cluster.revision += 1
    pg.forget_reports()
    up = cluster.map.up.get(pg.pgid, ())
    if _is_clean(cluster, pg, up):
        cluster.unclean.pop(pg.pgid, None)
    else:
        cluster.unclean[pg.pgid] = pg


def _is_clean(cluster: Cluster, pg: Pg, up: Tuple[int, ...]) -> bool:
    """Returns True if nothing about the PG changes its reports; one that cannot move never does."""
    if not pg.movable:
        return True
    if pg.transfers or pg.held != up or pg.pgid in cluster.peering:
        return False
    if pg.pgid in cluster.map.pg_temp or len(up) != cluster.size_of(pg) or NONE in up:
        return False
    if _is_merging(cluster, pg) or pg.inconsistent:
        return False
    return pg.scrub_until <= cluster.clock.now


def state_of(cluster: Cluster, pg: Pg) -> str:
    """Returns the state that the PG reports; that of an unmovable PG stays as in the state file."""
    return reported(cluster, pg)[0]


def misplaced_of(cluster: Cluster, pg: Pg) -> int:
    """Returns the misplaced object copies that the PG reports; none before it has peered with its
    up set.
    """
    return reported(cluster, pg)[1].misplaced


def reported(cluster: Cluster, pg: Pg) -> Report:
    """Returns the PG's report, valid between two changes of the map; cached for a PG that waits,
    and for others while no time passes and nothing changes.
    """
    waiting = pg.waiting_report
    if waiting is not None and not pg.backfilling and waiting[0] == pg.toofull:
        cached: Report = waiting[1]
        return cached
    moment = cluster.moment
    if pg.report_now is not None and pg.report_now[0] == moment:
        kept: Report = pg.report_now[1]
        return kept
    report = compute_report(cluster, pg)
    if not pg.backfilling and pg.pgid not in cluster.peering:
        pg.waiting_report = pg.toofull, report
    elif pg.pgid in cluster.unclean:
        pg.report_now = moment, report
    return report


def compute_report(cluster: Cluster, pg: Pg) -> Report:
    """Returns the PG's report, not cached: valid in the middle of a change of the map as well."""
    counts = counts_of(cluster, pg)
    if not pg.movable:
        return pg.file_state, counts
    if pg.pgid not in cluster.unclean:
        return CLEAN, counts
    peering = cluster.peering.get(pg.pgid)
    if pg.creating and not pg.holders():   # no OSD will ever report it
        return "unknown", counts
    if peering is not None:
        return _peering_state(cluster, pg, peering), counts
    up = cluster.map.up.get(pg.pgid, ())
    acting = cluster.map.acting(pg.pgid)
    if any(map(cluster.map.is_up, acting)) and blockers_of(cluster, pg):
        if acting == up:
            return "down", counts
        return "down+remapped", counts
    if pg.withheld_by:
        if acting == up:
            return "activating+degraded", counts
        return "activating+remapped", counts
    state = peered_state(pg, up, acting, cluster.size_of(pg), cluster.min_size_of(pg),
                         cluster.map.is_up, counts)
    if state == CLEAN and _is_merging(cluster, pg):
        return PREMERGE, counts
    if pg.inconsistent:
        state += "+inconsistent"
    if pg.scrub_until > cluster.clock.now:
        state += "+scrubbing"
    return state, counts


def _is_merging(cluster: Cluster, pg: Pg) -> bool:
    pool = cluster.map.pools.get(pg.pool_id)
    return pool is not None and is_merging(pool, pg.order[1])


def _peering_state(cluster: Cluster, pg: Pg, peering: Peering) -> str:
    """Returns the state while the PG peers. At the moment of the change the mgr still has the last
    report.
    """
    if cluster.clock.now <= peering.since:
        if pg.creating:
            return "unknown"
        return peering.last_state
    if pg.creating:
        return "creating+peering"
    if pg.pgid in cluster.map.pg_temp:
        return "remapped+peering"
    return "peering"


def counts_of(cluster: Cluster, pg: Pg) -> Counts:
    """Returns the misplaced and degraded object copies that a PG reports; none while it peers."""
    if not pg.movable:
        return Counts(pg.stat("num_objects_misplaced"), pg.stat("num_objects_degraded"))
    if pg.pgid not in cluster.unclean:
        return _NO_COUNTS
    peering = cluster.peering.get(pg.pgid)
    if peering is not None and (cluster.clock.now > peering.since
                                or pg.pgid not in cluster.map.pg_temp):
        return _NO_COUNTS
    up = cluster.map.up.get(pg.pgid, ())
    acting = cluster.map.acting(pg.pgid)
    has_data = bool(pg.transfers) or not set(up).isdisjoint(pg.held)
    if acting == up and not has_data:
        return _NO_COUNTS  # no OSD with the data is up
    if blockers_of(cluster, pg):
        return _NO_COUNTS
    if pg.hides_remapped and not pg.transfers and NONE not in acting:
        return _NO_COUNTS
    return peered_counts(pg, up, acting, cluster.size_of(pg))

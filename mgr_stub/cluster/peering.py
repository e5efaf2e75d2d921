"""Results of peering: acting set, pg_temp entry, and the OSDs that block a PG."""

from __future__ import annotations

from typing import Optional, Set

from ..crush.hashes import NONE
from ..osdmap.osd_map import primary_of
from ..osdmap.upmap import Mapping, as_kept, nonprimary_shards
from .cluster import Cluster
from .pg import Pg
from .pg_state import acting_of


def wanted_acting(cluster: Cluster, pg: Pg) -> Mapping:
    """Returns the acting set that results from peering; a PG that is `down` keeps its own."""
    if blockers_of(cluster, pg):
        return cluster.map.acting(pg.pgid)
    up = cluster.map.up.get(pg.pgid, ())
    before = None
    if cluster.log_recovery:
        before = cluster.map.acting(pg.pgid)
    return acting_of(pg, up, cluster.size_of(pg), cluster.min_size_of(pg), cluster.map.is_up,
                     before)


def wanted_temp(cluster: Cluster, pg: Pg) -> Optional[Mapping]:
    """Returns the pg_temp entry that the PG asks for once peered; None if its up set can serve."""
    acting = wanted_acting(cluster, pg)
    up = cluster.map.up.get(pg.pgid, ())
    if acting != up:
        return acting
    unable = nonprimary_shards(cluster.map.pools[pg.pool_id])
    if unable:
        primary = cluster.map.up_primary(pg.pgid)
        if primary in up and up.index(primary) in unable:
            return up
    return None


def blockers_of(cluster: Cluster, pg: Pg) -> Set[int]:
    """Returns the down OSDs without which the PG cannot know its last writes.

    Of every acting set that served writes since the PG was clean, enough OSDs to read the data
    have to be up (PeeringState::build_prior, PastIntervals::PriorSet).
    """
    blockers: Set[int] = set()
    for members in pg.past_intervals:
        down = {osd for osd in members if osd != NONE and not cluster.map.is_up(osd)}
        alive = len(members) - members.count(NONE) - len(down)
        if down and alive < cluster.map.data_chunks(pg.pool_id):
            blockers.update(filter(cluster.map.exists, down))
    return blockers


def record_interval(cluster: Cluster, pg: Pg) -> None:
    """Records the acting set of a PG that has peered; a clean PG forgets the earlier ones."""
    acting = cluster.map.acting(pg.pgid)
    present = len(acting) - acting.count(NONE)
    if blockers_of(cluster, pg):
        return
    if not pg.transfers and present == cluster.size_of(pg):
        pg.past_intervals = ()
    elif acting not in pg.past_intervals and present >= cluster.min_size_of(pg):
        pg.past_intervals += (acting,)


def hides_remapped(cluster: Cluster, pg: Pg, temp: Optional[Mapping]) -> bool:
    """Returns True if an OSD that is new to the PG becomes its primary by a pg_temp entry alone.

    Seen on 20.2.4: such a primary begins without the mark of being remapped (PeeringState::init),
    because only a change of the sets would set it. Once it is clean it reports nothing as
    misplaced.
    """
    if not temp or pg.pgid not in cluster.map.pg_temp:
        return False
    primary = primary_of(as_kept(temp, cluster.map.pools[pg.pool_id]))
    return primary != cluster.map.acting_primary(pg.pgid) and any(
        transfer.is_new for transfer in pg.transfers.values() if transfer.target == primary)

"""Omap that clients write, deep scrubs find and the OSDs' stores compact."""

from __future__ import annotations

from typing import Iterable

from ..cluster.cluster import Cluster
from ..cluster.pg import Pg
from ..cluster.shard_copies import account_copied
from ..errors import invalid
from ..osdmap.osd_map import share_of
from ..simulation import client_load as omap
from ..simulation.simulation import Simulation

#: Bytes of omap of an object in a pool that holds nothing else.
OBJECT_OMAP_BYTES = 1 << 20


def write(simulation: Simulation, pool_id: int, count: int) -> None:
    """Clients write bytes of omap to a pool (negative: delete), to each PG its share by hash."""
    cluster = simulation.cluster
    if cluster.map.data_chunks(pool_id) > 1:
        raise invalid("erasure-coded pools have no omap")
    pgs = cluster.pgs_of(pool_id)
    shares = [share_of(pg.order[1], len(pgs)) for pg in pgs]
    for pg, share in zip(pgs, shares):
        _resize(cluster, pg, count * share // sum(shares))
    cluster.invalidate_sums()
    simulation.backfill.replan()


def _resize(cluster: Cluster, pg: Pg, change: int) -> None:
    if not pg.movable:
        return
    account_copied(cluster, pg)
    pg.forget_reports()
    pg.omap_bytes = max(0, pg.omap_bytes + change)
    if not pg.num_bytes:
        _count_objects(cluster, pg)
    old, pg.shard = pg.shard, cluster.shard_bytes(pg)
    for position, osd in pg.held_places():
        cluster.store(pg.pool_id, osd, pg.shard.minus(old), position)
    for transfer in pg.transfers.values():
        transfer.resize(pg.shard)
    account_copied(cluster, pg)


def _count_objects(cluster: Cluster, pg: Pg) -> None:
    """Sets the objects of a PG without any bytes: they consist of keys alone."""
    before = pg.num_objects
    pg.num_objects = -(-pg.omap_bytes // OBJECT_OMAP_BYTES)
    pg.num_copies = pg.num_objects * cluster.size_of(pg)
    if pg.writes is not None:
        pg.writes += max(1, abs(pg.num_objects - before))
        if pg.writes >= cluster.log_length():
            pg.writes = None


def deep_scrub(simulation: Simulation, pool_id: int) -> None:
    """Ends a deep scrub of all PGs of a pool: they report their omap."""
    cluster = simulation.cluster
    for pg in cluster.pgs_of(pool_id):
        pg.omap_reported = pg.omap_bytes
        pg.forget_reports()
    cluster.invalidate_sums()


def compact(simulation: Simulation, osds: Iterable[int]) -> None:
    """Compacts the stores of some OSDs.

    Omap that has left them is free, and before Ceph 18 they report the omap that they hold now.
    """
    cluster = simulation.cluster
    held = omap.held_bytes(cluster)
    for osd in osds:
        cluster.omap_written[osd] = held.get(osd, {})
        for pool_id, number in list(cluster.uncompacted):
            if number == osd:
                omap.free_uncompacted(cluster, pool_id, osd, cluster.uncompacted[pool_id, osd])
    cluster.invalidate_sums()

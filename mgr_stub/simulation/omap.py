"""Omap as real daemons tell of it: what a deep scrub has found, and what the OSDs' stores show.

Seen on 16.2.15 and 20.2.4: a PG's num_omap_bytes is 0 until its first deep scrub and then what that
scrub found. `store_stats` of the pool and `pool_statfs` of the OSDs show what RocksDB has written
out: on 20 soon, on 16 OSD by OSD when 256 MiB have come together or somebody has the store
compacted (`compact`), which shows here what the OSD held then. What an OSD gives away is free only
after its store has been compacted, and counts as its pool's omap until then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Dict, Iterable

from ..cluster.cluster import Cluster
from ..cluster.pg import Pg
from ..cluster.pool_entry import share_of
from ..cluster.shard_copies import settle
from ..cluster.usage import ShardBytes
from ..errors import invalid

if TYPE_CHECKING:
    from .simulation import Simulation

#: Omap of an object in a pool that holds nothing else.
OBJECT_OMAP_BYTES = 1 << 20


def set_by_scrub(simulation: Simulation, wanted: bool) -> None:
    """Whether omap is told as real daemons do; what PGs report now was found by their scrubs."""
    cluster = simulation.cluster
    cluster.omap_by_scrub = wanted
    cluster.omap_written = _held(cluster)
    for pg in cluster.pgs.values():
        pg.omap_reported = pg.omap_bytes if wanted else None
        pg.forget_reports()
    cluster.on_omap_freed = (lambda pool, osd, count: _free_later(simulation, pool, osd, count)
                             ) if wanted else None
    cluster.forget_sums()


def _free_later(simulation: Simulation, pool_id: int, osd: int, count: int) -> None:
    cluster, place = simulation.cluster, (pool_id, osd)
    cluster.uncompacted[place] = cluster.uncompacted.get(place, 0) + count
    simulation.appointments.at(cluster.clock.now + cluster.compaction_seconds,
                               lambda: _give_back(cluster, pool_id, osd, count))


def _give_back(cluster: Cluster, pool_id: int, osd: int, most: int) -> None:
    """So much of what has left is free now, unless it is already."""
    count = min(most, cluster.uncompacted.get((pool_id, osd), 0))
    if count > 0:
        cluster.uncompacted[pool_id, osd] -= count
        cluster.store(pool_id, osd, ShardBytes(0, -count, 0))
        cluster.forget_sums()


def write(simulation: Simulation, pool_id: int, count: int) -> None:
    """Clients write so many bytes of omap (negative: delete), each PG its share by hash."""
    cluster = simulation.cluster
    if cluster.map.data_chunks(pool_id) > 1:
        raise invalid("erasure-coded pools have no omap")
    pgs = cluster.pgs_of(pool_id)
    shares = [share_of(pg.order[1], len(pgs)) for pg in pgs]
    for pg, share in zip(pgs, shares):
        _grow(cluster, pg, count * share // sum(shares))
    cluster.forget_sums()
    simulation.backfill.changed()


def _grow(cluster: Cluster, pg: Pg, change: int) -> None:
    if not pg.movable:
        return
    settle(cluster, pg)
    pg.forget_reports()
    pg.omap_bytes = max(0, pg.omap_bytes + change)
    if not pg.num_bytes:
        _count_objects(cluster, pg)
    old, pg.shard = pg.shard, cluster.weigh(pg)
    for osd in pg.holders():
        cluster.store(pg.pool_id, osd, pg.shard.minus(old))
    for flow in pg.flows.values():
        flow.resize(pg.shard)
    settle(cluster, pg)


def _count_objects(cluster: Cluster, pg: Pg) -> None:
    """A PG without any bytes has objects of keys alone."""
    before, pg.num_objects = pg.num_objects, -(-pg.omap_bytes // OBJECT_OMAP_BYTES)
    pg.num_copies = pg.num_objects * cluster.size_of(pg)
    if pg.writes is not None:
        pg.writes += max(1, abs(pg.num_objects - before))
        if pg.writes >= cluster.log_length():
            pg.writes = None


def deep_scrub(simulation: Simulation, pool_id: int) -> None:
    """A deep scrub of all PGs of a pool has ended: they tell their omap."""
    cluster = simulation.cluster
    for pg in cluster.pgs_of(pool_id):
        if pg.omap_reported is not None:
            pg.omap_reported = pg.omap_bytes
            pg.forget_reports()
    cluster.forget_sums()


def reported(pg: Pg) -> int:
    """num_omap_bytes of the PG's statistics."""
    return pg.omap_bytes if pg.omap_reported is None else pg.omap_reported


def compact(simulation: Simulation, osds: Iterable[int]) -> None:
    """The stores of some OSDs are compacted: what has left is free, and before Ceph 18 they tell of
    omap that they hold now."""
    cluster = simulation.cluster
    held = _held(cluster)
    for osd in osds:
        cluster.omap_written[osd] = held.get(osd, {})
        for pool_id, number in list(cluster.uncompacted):
            if number == osd:
                _give_back(cluster, pool_id, osd, cluster.uncompacted[pool_id, osd])
    cluster.forget_sums()


def _held(cluster: Cluster) -> Dict[int, Dict[int, int]]:
    """OSD → pool id → bytes of omap of the shards that it holds whole."""
    held: Dict[int, Dict[int, int]] = {}
    for pg in cluster.pgs.values():
        for osd in pg.holders() if pg.omap_bytes and pg.movable else ():
            pools = held.setdefault(osd, {})
            pools[pg.pool_id] = pools.get(pg.pool_id, 0) + pg.omap_bytes
    return held


def hidden(cluster: Cluster) -> Dict[int, int]:
    """OSD → bytes of omap that its statistics count as metadata: not written out yet."""
    if cluster.release >= 18 or not cluster.omap_by_scrub:
        return {}
    return {osd: max(0, sum(pools.values()) - sum(cluster.omap_written.get(osd, {}).values()))
            for osd, pools in _held(cluster).items()}


def stored(cluster: Cluster, pool_id: int) -> int:
    """omap_allocated of the pool's store_stats, on all OSDs: as far as it has been written out."""
    if cluster.release < 18:
        return sum(written.get(pool_id, 0) for written in cluster.omap_written.values())
    gone = sum(count for (pool, _), count in cluster.uncompacted.items() if pool == pool_id)
    return gone + sum(pg.omap_bytes * len(pg.holders()) for pg in cluster.pgs_of(pool_id)
                      if pg.movable)

"""Omap as real daemons report it: found by deep scrubs, shown by the OSDs' stores with a delay.

Seen on 16.2.15 and 20.2.4: a PG's num_omap_bytes is 0 until its first deep scrub, then what that
scrub found. `store_stats` of the pool and `pool_statfs` of the OSDs show what RocksDB has written
out: soon on 20; on 16 OSD by OSD, when 256 MiB have come together or the store is compacted.
Omap that leaves an OSD is free only after its store has been compacted, and counts as omap of its
pool until then.
"""

from __future__ import annotations

from typing import Dict

from ..cluster.cluster import Cluster
from ..cluster.usage import ShardBytes
from .timers import Schedule


def report_by_scrub(cluster: Cluster, schedule: Schedule) -> None:
    """Makes PGs report omap as real daemons do.

    What PGs hold now counts as found by their last deep scrub.
    """
    cluster.omap_written = held_bytes(cluster)
    for pg in cluster.pgs.values():
        pg.omap_reported = pg.omap_bytes
        pg.forget_reports()

    def free_later(pool_id: int, osd: int, count: int) -> None:
        place = (pool_id, osd)
        cluster.uncompacted[place] = cluster.uncompacted.get(place, 0) + count
        schedule.at(cluster.clock.now + cluster.compaction_seconds,
                        lambda: free_uncompacted(cluster, pool_id, osd, count))
    cluster.on_omap_freed = free_later
    cluster.invalidate_sums()


def free_uncompacted(cluster: Cluster, pool_id: int, osd: int, limit: int) -> None:
    """Frees up to `limit` bytes of omap that left the OSD and still take space on it."""
    count = min(limit, cluster.uncompacted.get((pool_id, osd), 0))
    if count > 0:
        cluster.uncompacted[pool_id, osd] -= count
        cluster.store(pool_id, osd, ShardBytes(0, -count, 0))
        cluster.invalidate_sums()


def held_bytes(cluster: Cluster) -> Dict[int, Dict[int, int]]:
    """OSD → pool id → bytes of omap of the shards that the OSD holds completely."""
    held: Dict[int, Dict[int, int]] = {}
    for pg in cluster.pgs.values():
        for osd in pg.holders() if pg.omap_bytes and pg.movable else ():
            pools = held.setdefault(osd, {})
            pools[pg.pool_id] = pools.get(pg.pool_id, 0) + pg.omap_bytes
    return held


def hidden(cluster: Cluster) -> Dict[int, int]:
    """OSD → bytes of omap not written out yet, which its statistics count as metadata."""
    if cluster.release >= 18:
        return {}
    return {osd: max(0, sum(pools.values()) - sum(cluster.omap_written.get(osd, {}).values()))
            for osd, pools in held_bytes(cluster).items()}


def stored(cluster: Cluster, pool_id: int) -> int:
    """omap_allocated of the pool's store_stats: bytes written out on all OSDs."""
    if cluster.release < 18:
        return sum(written.get(pool_id, 0) for written in cluster.omap_written.values())
    gone = sum(count for (pool, _), count in cluster.uncompacted.items() if pool == pool_id)
    if pool_id not in cluster.pgs_with_omap:
        cluster.pgs_with_omap[pool_id] = [pg for pg in cluster.pgs_of(pool_id) if pg.omap_bytes]
    return gone + sum(pg.omap_bytes * len(pg.holders()) for pg in cluster.pgs_with_omap[pool_id]
                      if pg.movable)

"""OSDs on which shards take more or less, and pools whose shards differ by position."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from ..cluster.cluster import Cluster
from ..cluster.shard_copies import account_copied
from ..cluster.shard_ratios import position_ratios
from ..cluster.usage import NOTHING, ShardBytes
from ..errors import invalid
from ..crush.constants import NONE
from ..osdmap.map_change import MapChange
from ..simulation.simulation import Simulation

_Shard = Tuple[int, int, int, ShardBytes]   # pool, OSD, position, bytes


def set_allocation(simulation: Simulation, ratio: float, osds: Sequence[int],
                   pool_id: Optional[int] = None) -> None:
    """OSDs allocate `ratio` bytes for each that they store: of one pool, or of all others."""
    if not 0.0 < ratio <= 100.0:
        raise invalid("a ratio of allocated to stored bytes is above 0 and at most 100")
    allocation = simulation.cluster.shard_ratios.allocation
    _change(simulation, lambda: allocation.update({(pool_id, osd): ratio for osd in osds}))


def optimize_pool(simulation: Simulation, pool_id: int, chunk: int) -> None:
    """Sets allow_ec_optimizations of a pool, as if all of it had been written since: objects of its
    mean size, in chunks of so many bytes."""
    cluster = simulation.cluster
    pool: Dict[str, Any] = cluster.map.pools[pool_id]
    data_chunks, size = cluster.map.data_chunks(pool_id), int(pool["size"])
    pgs = cluster.pgs_of(pool_id)
    objects = sum(pg.num_objects for pg in pgs)
    if data_chunks < 2 or not objects or chunk <= 0 or chunk % 4096:
        raise invalid("an erasure-coded pool with objects can be optimized, with chunks of whole"
                      " pages of 4096 bytes")
    mean = max(1, sum(pg.num_bytes for pg in pgs) // objects)
    ratios = position_ratios(size, data_chunks, chunk, mean)
    flags = [name for name in str(pool.get("flags_names", "")).split(",") if name]
    later = ",".join(map(str, range(1, data_chunks)))
    simulation.apply_change(MapChange(pools={pool_id: {
        **pool, "flags_names": ",".join([*flags, "ec_optimizations"]),
        "nonprimary_shards": f"{{{later}}}", "stripe_width": chunk * data_chunks}}))
    positions = cluster.shard_ratios.positions
    _change(simulation, lambda: positions.update({pool_id: ratios}))


def _change(simulation: Simulation, set_ratios: Callable[[], None]) -> None:
    """Sets ratios, and gives all shards the bytes that they take by them."""
    cluster = simulation.cluster
    shards = _shards(cluster)
    for pool_id, osd, position, shard in shards:
        cluster.store(pool_id, osd, NOTHING.minus(shard), position)
    cluster.pool_usage.begin()
    set_ratios()
    for pool_id, osd, position, shard in shards:
        cluster.store(pool_id, osd, shard, position)
    cluster.invalidate_sums()


def _shards(cluster: Cluster) -> List[_Shard]:
    """All shards on OSDs, and parts of such."""
    found: List[_Shard] = []
    for pg in cluster.pgs.values():
        account_copied(cluster, pg)
        found += [(pg.pool_id, osd, position, pg.shard)
                  for position, osd in enumerate(pg.held) if osd != NONE]
        found += [(pg.pool_id, osd, position, shard)
                  for (position, osd), shard in pg.strays.items()]
        found += [(pg.pool_id, transfer.target, position, transfer.accounted)
                  for (position, _), transfer in pg.transfers.items()]
    return found

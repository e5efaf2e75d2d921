"""How busy OSDs are: the load of each OSD by the pools' loads and where their PGs are.

The load of an OSD is the part of its time that its device spends on clients (a ratio). Each shard
is written to. Reads are served by the first OSD of a replicated PG, and by the first k of an
erasure-coded one.
"""
from __future__ import annotations

from collections import defaultdict
from typing import Dict, Mapping, Sequence

from ..runtime.time_slice import piecewise
from ..snapshot.model import Pool, Snapshot

_PGS_A_PIECE = 500


def position_loads(snapshot: Snapshot, pool: Pool) -> Sequence[float]:
    """Returns the load of a PG's shard at each position; empty if the pool has no known load."""
    load = snapshot.loads.get(pool.id)
    if load is None:
        return ()
    served = [load.reading] * pool.data_shards + [0.0] * (pool.size - pool.data_shards)
    return [load.writing + reading for reading in served]


def osd_loads(snapshot: Snapshot, ups: Mapping[str, Sequence[int]] = {}) -> Dict[int, float]:
    """Returns OSD id → its load, with the PGs at their up sets. `ups`: pgid → another up set."""
    loads: Dict[int, float] = defaultdict(float)
    by_pool = {pool.id: position_loads(snapshot, pool) for pool in snapshot.pools.values()}
    for pg in piecewise(snapshot.pgs.values(), _PGS_A_PIECE):
        up = ups.get(pg.pgid, pg.up)
        for osd, load in zip(up, by_pool[pg.pool]):
            loads[osd] += load / snapshot.speeds.get(osd, 1.0)
    return loads

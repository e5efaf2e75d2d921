"""Counts of all PGs' shards by pool and OSD."""
from __future__ import annotations

from typing import Dict, List, Mapping, NamedTuple, Sequence

from ..plan.usage import ShardCounts, shard_weight
from ..runtime.time_slice import piecewise
from ..snapshot.model import Pg, Pool, Snapshot, pg_number, pool_of

_PGS_A_PIECE = 200   # counted before it gives way again: about a millisecond

#: What rounding may leave of a sum of weights.
_NOTHING = 1e-9


class PlacementCounts(NamedTuple):
    """Immutable. Shards are counted by their weight (plan/usage.py) where they are ShardCounts."""

    soon: ShardCounts = {}     # by the up sets
    #: by the OSDs that hold them; of pools at rest the very ones of `soon`
    now: ShardCounts = {}
    acting: Mapping[int, int] = {}     # OSD id → PGs, by acting sets
    shards: Mapping[int, int] = {}     # OSD id → shards by the up sets
    bytes: Mapping[int, int] = {}      # OSD id → bytes of these
    too_full: Sequence[str] = ()       # pgids of PGs that wait for a too full OSD, in order


def count_placement(snapshot: Snapshot) -> PlacementCounts:
    """The counts of a snapshot."""
    soon: Dict[int, Dict[int, float]] = {pool: {} for pool in snapshot.pools}
    acting: Dict[int, int] = {}
    shards: Dict[int, int] = {}
    sizes: Dict[int, int] = {}
    too_full: List[str] = []
    for pg in piecewise(snapshot.pgs.values(), _PGS_A_PIECE):
        pool, size = snapshot.pools[pg.pool], pg.shard_bytes
        _add_weights(soon[pg.pool], pool, pg, pg.up, 1)
        for osd in pg.up:
            shards[osd] = shards.get(osd, 0) + 1
            sizes[osd] = sizes.get(osd, 0) + (
                size if pool.is_uniform else pool.bytes_on(size, osd, pg.up))
        for osd in pg.acting:
            acting[osd] = acting.get(osd, 0) + 1
        if "toofull" in pg.state:
            too_full.append(pg.pgid)
    now: Dict[int, Dict[int, float]] = {}
    for pg in snapshot.in_flight().values():
        if pg.pool not in now:
            now[pg.pool] = dict(soon[pg.pool])
        _add_weights(now[pg.pool], snapshot.pools[pg.pool], pg, pg.up, -1)
        _add_weights(now[pg.pool], snapshot.pools[pg.pool], pg, pg.holders, 1)
    return PlacementCounts(soon, {**soon, **now}, acting, shards, sizes, sorted(
        too_full, key=lambda pgid: (pool_of(pgid), pg_number(pgid))))


def _add_weights(counts: Dict[int, float], pool: Pool, pg: Pg, osds: Sequence[int],
                 sign: int) -> None:
    """Adds a PG's shards, each by its weight; what comes to nothing is left out, as of a shard
    without data."""
    weight = sign * (1 if not pool.pg_num & (pool.pg_num - 1) else shard_weight(pool, pg.pgid))
    for osd in osds:
        count = counts.get(osd, 0) + (
            weight if pool.is_uniform else weight * pool.ratio_on(osd, osds))
        if count > _NOTHING or count < -_NOTHING:
            counts[osd] = count
        else:
            counts.pop(osd, None)

"""What of a pool's shards RocksDB holds: metadata of objects and omap.

It takes the same on OSDs and at positions where data takes more or less.
"""
from __future__ import annotations

from typing import Dict

from ...runtime.time_slice import piecewise
from ..look import Look
from ..model import pool_of
from .kept_sizes import SizeRules

_PGS_A_PIECE = 150   # before it gives way again: about a millisecond
#: At most: data is what differs.
_MOST = 0.99


def metadata_ratios(look: Look, rules: SizeRules) -> Dict[int, float]:
    """Pool id → bytes of metadata and omap ÷ all bytes of its PGs, as usual OSDs have them, of the
    pools of which data alone takes more or less."""
    size_of, input_of = rules.model.shard_bytes, rules.inputs.of
    whole = {pool: 0 for pool in look.surroundings.shard_ratios.pools if pool in look.pools}
    metadata = dict(whole)
    for pgid in piecewise(look.pgids, _PGS_A_PIECE):
        pool = pool_of(pgid)
        if pool in whole:
            shard, _ = input_of(look.pools[pool], look.record(pgid), look.acting_set(pgid))
            whole[pool] += size_of(shard)
            metadata[pool] += size_of(shard._replace(data_bytes=0))
    return {pool: min(_MOST, metadata[pool] / count) if count else 0.0
            for pool, count in whole.items()}

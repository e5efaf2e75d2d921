"""What of a pool's shards RocksDB holds: metadata of objects and omap.

It takes the same on OSDs and at positions where data takes more or less.
"""
from __future__ import annotations

from typing import Iterable

from ...runtime.time_slice import piecewise
from ..model import pool_of
from .look import Look
from .sizes_kept import SizeRules

_PGS_A_PIECE = 150   # before it gives way again: about a millisecond
#: At most: data is what differs.
_MOST = 0.99


def metadata_ratio(look: Look, rules: SizeRules, pgids: Iterable[str]) -> float:
    """Bytes of metadata and omap ÷ all bytes of PGs, as usual OSDs have them."""
    whole = metadata = 0
    size_of, input_of = rules.model.shard_bytes, rules.inputs.of
    for pgid in piecewise(pgids, _PGS_A_PIECE):
        shard, _ = input_of(look.pools[pool_of(pgid)], look.record(pgid), look.acting_set(pgid))
        whole += size_of(shard)
        metadata += size_of(shard._replace(data_bytes=0))
    return min(_MOST, metadata / whole) if whole else 0.0

"""How much the same shard takes on an OSD, and at a position of its PG.

OSDs that were made with another min_alloc_size, or that compress, allocate more or less for what
they store. In an EC-optimized pool parity is as large as the first data shard, and the others hold
what is left of an object (Ceph's ECUtil.h; exact to the byte on 20.2.4).
"""

from __future__ import annotations

from typing import Dict, List, Optional, Tuple

from .usage import ShardBytes

_PAGE = 4096


class ShardRatios:
    """Ratios to what shards take elsewhere; 1 unless set."""

    def __init__(self) -> None:
        #: (pool id, or None for all others; OSD) → allocated ÷ stored bytes
        self.allocation: Dict[Tuple[Optional[int], int], float] = {}
        #: Pool id → at each position, bytes ÷ (num_bytes / k)
        self.positions: Dict[int, Tuple[float, ...]] = {}

    @property
    def is_plain(self) -> bool:
        """True if no ratio is set."""
        return not self.allocation and not self.positions

    def stored(self, pool_id: int, position: int, shard: ShardBytes) -> ShardBytes:
        """The shard with the bytes that it stores at its position."""
        ratios = self.positions.get(pool_id)
        if ratios is None or position >= len(ratios):
            return shard
        return shard._replace(data=int(shard.data * ratios[position]))

    def ratio(self, pool_id: int, osd: int) -> float:
        """Allocated ÷ stored bytes of a pool on an OSD."""
        return self.allocation.get((pool_id, osd), self.allocation.get((None, osd), 1.0))

    def allocated(self, pool_id: int, osd: int, stored: ShardBytes) -> ShardBytes:
        """The shard with the bytes that it takes on an OSD."""
        ratio = self.ratio(pool_id, osd)
        return stored if ratio == 1.0 else stored._replace(data=int(stored.data * ratio))


def position_ratios(size: int, data_chunks: int, chunk: int,
                    object_bytes: int) -> Tuple[float, ...]:
    """Of an EC-optimized pool of objects of `object_bytes`, cut into chunks of `chunk` bytes."""
    whole, rest = divmod(object_bytes, chunk * data_chunks)
    by_shard: List[int] = [
        -(-(whole * chunk + max(0, min(chunk, rest - shard * chunk))) // _PAGE) * _PAGE
        for shard in range(data_chunks)]
    return tuple(by_shard[position if position < data_chunks else 0]
                 * data_chunks / object_bytes for position in range(size))

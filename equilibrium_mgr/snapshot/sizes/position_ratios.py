"""Sizes of the shards of an EC-optimized pool by position, computed by its mean object.

Without that flag all shards of a PG are equally large. With it (since Ceph 20) an object's bytes
fill chunk after chunk, and what is missing in its last stripe is not padded: parity is as large as
the first shard, and the other data shards of a small object hold nothing (20.2.4: of 10,000 B, 4+2,
stripe unit 16 KiB, 12,288 B at positions 0, 4 and 5). What was written before the flag was set is
not so; each OSD's own report and the residual of it take that up as shards arrive.
"""
from __future__ import annotations

from typing import Any, Iterable, List, Mapping, Tuple

from ..acting_sets import nonprimary_shards
from .osd_factors import exact_ratio

#: A shard of an object takes whole pages of so many bytes.
_PAGE = 4096
#: Sizes that differ by less than this ratio are alike.
_ALIKE = 0.02


class Layout:
    """How a pool cuts its objects: `data_shards` of `size` positions, in stripes of bytes."""

    def __init__(self, data_shards: int, size: int, stripe_width: int,
                 later: Iterable[int] = ()) -> None:
        """`later`: positions of all data shards but the first; the first positions unless given."""
        self.data_shards = data_shards
        self.size = size
        self.stripe_width = stripe_width
        positions = sorted(later) or range(1, data_shards)
        self._kinds = {position: kind for kind, position in enumerate(positions, start=1)
                       if kind < data_shards}

    def kind(self, position: int) -> int:
        """The data shard that a position is as large as: parity as the first."""
        return self._kinds.get(position, 0)

    def object_bytes(self, size: float) -> List[int]:
        """Bytes of an object of `size` bytes at each data shard (Ceph's ECUtil.h: ro_offset)."""
        whole, rest = divmod(int(size), self.stripe_width) if self.stripe_width else (0, 0)
        chunk = self.stripe_width // self.data_shards
        return [-(-(whole * chunk + max(0, min(chunk, rest - kind * chunk))) // _PAGE) * _PAGE
                for kind in range(self.data_shards)]

    def ratios(self, size: float) -> Tuple[float, ...]:
        """Position → its bytes ÷ the mean of all, of objects of so many bytes; empty where they are
        alike."""
        by_kind = self.object_bytes(size)
        sizes = [by_kind[self.kind(position)] for position in range(self.size)]
        mean = sum(sizes) / len(sizes)
        if mean <= 0.0 or max(sizes) - min(sizes) <= _ALIKE * mean:
            return ()
        return tuple([exact_ratio(size / mean) for size in sizes])


def layout_of(pool: Mapping[str, Any], data_shards: int) -> Layout:
    """Of a pool's dump in the osdmap."""
    return Layout(data_shards, pool["size"], int(pool.get("stripe_width", 0)),
                  nonprimary_shards(pool))

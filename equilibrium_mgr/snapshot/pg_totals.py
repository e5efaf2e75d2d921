"""Sums over the PGs of a snapshot."""
from __future__ import annotations

from typing import Dict, List, Mapping

from .immovable_reasons import Immovable
from .model import Pg, Pool, transfers


class PgTotals:
    """Whole numbers, so that the sums are the same in whatever order PGs are added."""

    def __init__(self) -> None:
        self.objects: Dict[int, int] = {}    # by pool id
        self.skipped: Dict[Immovable, int] = {}    # reason → PGs that cannot be moved for it
        self.inbound: Dict[int, int] = {}    # by OSD, as what follows; bytes
        self.outbound: Dict[int, int] = {}
        self.up_bytes: Dict[int, int] = {}   # of the shards by the up sets
        self.moving: List[str] = []          # pgids

    def add(self, pg: Pg, pool: Pool) -> None:
        """Adds a PG."""
        self.objects[pg.pool] = self.objects.get(pg.pool, 0) + pg.objects
        if pg.immovable:
            self.skipped[pg.immovable] = self.skipped.get(pg.immovable, 0) + 1
        size, up_bytes = pg.shard_bytes, self.up_bytes
        for osd in pg.up:
            up_bytes[osd] = up_bytes.get(osd, 0) + (
                size if pool.is_uniform else pool.bytes_on(pg.shard_bytes, osd, pg.up))
        if pg.is_moving:
            self._add_moving(pg, pool)

    def _add_moving(self, pg: Pg, pool: Pool) -> None:
        self.moving.append(pg.pgid)
        gains, losses = transfers(pg, pool.erasure)
        for osd in gains:
            self.inbound[osd] = self.inbound.get(osd, 0) + int(
                pool.bytes_on(pg.shard_bytes, osd, pg.up) * pg.uncopied_ratio)
        for osd in losses:
            self.outbound[osd] = self.outbound.get(osd, 0) + pool.bytes_on(
                pg.shard_bytes, osd, pg.holders)

    def object_copies(self, pools: Mapping[int, Pool]) -> int:
        """Object copies of all PGs, as their pools want them."""
        return sum(count * pools[pool].size for pool, count in self.objects.items())

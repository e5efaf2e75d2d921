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
        self.omap: Dict[int, int] = {}       # held by the PGs
        self.pgs: Dict[int, int] = {}        # of which an OSD holds a whole shard
        self.moving: List[str] = []          # pgids

    def add(self, pg: Pg, pool: Pool, omap_bytes: int) -> None:
        """Adds a PG."""
        self.objects[pg.pool] = self.objects.get(pg.pool, 0) + pg.objects
        if pg.immovable:
            self.skipped[pg.immovable] = self.skipped.get(pg.immovable, 0) + 1
        size, up_bytes, pgs = pg.shard_bytes, self.up_bytes, self.pgs
        for osd in pg.up:
            up_bytes[osd] = up_bytes.get(osd, 0) + (
                size if pool.is_uniform else pool.bytes_on(pg.shard_bytes, osd, pg.up))
            pgs[osd] = pgs.get(osd, 0) + 1
        if omap_bytes:
            self._add_omap(pg, omap_bytes)
        if pg.is_moving:
            self._add_moving(pg, pool)

    def _add_moving(self, pg: Pg, pool: Pool) -> None:
        self.moving.append(pg.pgid)
        gains, losses = transfers(pg, pool.erasure)
        for osd in gains:
            self.inbound[osd] = self.inbound.get(osd, 0) + int(
                pool.bytes_on(pg.shard_bytes, osd, pg.up) * pg.uncopied_ratio)
            self.pgs[osd] = self.pgs.get(osd, 0) - 1
        for osd in losses:
            self.outbound[osd] = self.outbound.get(osd, 0) + pool.bytes_on(
                pg.shard_bytes, osd, pg.holders)
            self.pgs[osd] = self.pgs.get(osd, 0) + 1

    def _add_omap(self, pg: Pg, omap_bytes: int) -> None:
        for osd in {*pg.holders, *pg.up}:
            # an OSD reports what comes as it arrives
            there = 1.0 if osd in pg.holders else 1.0 - pg.uncopied_ratio
            self.omap[osd] = self.omap.get(osd, 0) + int(there * omap_bytes)

    def object_copies(self, pools: Mapping[int, Pool]) -> int:
        """Object copies of all PGs, as their pools want them."""
        return sum(count * pools[pool].size for pool, count in self.objects.items())

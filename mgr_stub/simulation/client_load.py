"""Writes and deletes of clients, which change the size of PGs and the bytes on OSDs."""

from __future__ import annotations

from typing import Dict, List, Optional

from ..cluster import pg_reports
from ..cluster.cluster import Cluster
from ..cluster.pg import Pg
from ..cluster.shard_copies import account_copied, mark_missed_writes
from ..crush.constants import NONE
from ..osdmap.pool_entry import share_of
from .backfill import Backfill
from .timers import Timer

#: Bytes of an object in an empty pool.
OBJECT_BYTES = 4 << 20

#: Seconds between two steps of a continuous load, with up to and above `_MANY_PGS` PGs.
_STEP_SECONDS = 60.0
_LONG_STEP_SECONDS = 300.0
_MANY_PGS = 2000


class ClientLoad(Timer):
    """Writes and deletes, single or continuous; each PG of a pool gets its share by hash."""

    def __init__(self, cluster: Cluster, backfill: Backfill) -> None:
        self._cluster = cluster
        self._backfill = backfill
        #: {pool: bytes per second}
        self.rates: Dict[int, float] = {}
        self._last: Dict[int, float] = {}
        self._object_bytes: Dict[int, int] = {}

    # -- continuous ---------------------------------------------------------------------------

    def grow(self, pool_id: int, bytes_per_second: float) -> None:
        """Sets the rate at which a pool grows (negative: shrinks), in user bytes; 0 stops it."""
        self.run()
        self.rates.pop(pool_id, None)
        if bytes_per_second:
            self.rates[pool_id] = bytes_per_second
            self._last[pool_id] = self._cluster.clock.now

    def next_moment(self) -> Optional[float]:
        if not self.rates:
            return None
        pgs = sum(int(self._cluster.map.pools[pool]["pg_num"]) for pool in self.rates
                  if pool in self._cluster.map.pools)
        step = _STEP_SECONDS if pgs <= _MANY_PGS else _LONG_STEP_SECONDS
        return min(self._last[pool] for pool in self.rates) + step

    def run(self) -> None:
        now = self._cluster.clock.now
        for pool_id, rate in list(self.rates.items()):
            if pool_id not in self._cluster.map.pools:
                del self.rates[pool_id]
                continue
            self.write(pool_id, int(rate * (now - self._last[pool_id])))
            self._last[pool_id] = now

    # -- at once ------------------------------------------------------------------------------

    def write(self, pool_id: int, count: int) -> int:
        """Adds user bytes to a pool (negative: deletes); returns the number of bytes added.

        A PG takes no writes if one of its OSDs is above the full ratio or if it is inactive.
        """
        pgs = self._cluster.pgs_of(pool_id)
        pg_num = int(self._cluster.map.pools[pool_id]["pg_num"])
        shares = [share_of(pg.order[1], pg_num) for pg in pgs]
        total, done, taken = sum(shares), 0, 0
        given = 0
        for pg, share in zip(pgs, shares):
            done += share
            part = count * done // total - given
            given += part
            if part < 0 or self._can_write(pg):
                taken += self._resize(pg, part)
        self._cluster.invalidate_sums()
        self._backfill.replan()
        return taken

    def _can_write(self, pg: Pg) -> bool:
        cluster = self._cluster
        if not pg.movable:
            return False
        if pg.pgid in cluster.unclean and "active" not in pg_reports.state_of(cluster, pg):
            return False
        usage, full = cluster.usage, cluster.map.ratio("full_ratio")
        for osd in cluster.map.acting(pg.pgid):
            if osd != NONE and usage[osd].utilization >= full:
                return False
        return True

    def _resize(self, pg: Pg, change: int) -> int:
        """Changes the size of a PG on all OSDs that are up; returns the change in bytes."""
        cluster = self._cluster
        change = max(change, -max(0, pg.num_bytes))
        if not change or not pg.movable:
            return 0
        size = self._object_size(pg.pool_id)
        objects = (pg.num_bytes + change) // size - pg.num_bytes // size
        if pg.transfers:
            account_copied(cluster, pg)
        if any(osd != NONE and not cluster.map.is_up(osd) for osd in pg.held):
            mark_missed_writes(cluster, pg)
        pg.forget_reports()
        pg.num_bytes += change
        if pg.num_bytes:
            objects = max(objects, 1 - pg.num_objects)
        else:
            objects = -pg.num_objects
        pg.num_objects += objects
        if pg.writes is not None:
            pg.writes += max(1, abs(objects))
            if pg.writes >= self._cluster.log_length():
                pg.writes = None
        pg.short_logs = frozenset()  # a write trims all logs to the same entry
        pg.complete_strays = frozenset()
        pg.num_copies += objects * cluster.size_of(pg)
        old, pg.shard = pg.shard, cluster.shard_bytes(pg)
        difference = pg.shard.minus(old)
        for position, osd in pg.held_places():
            cluster.store(pg.pool_id, osd, difference, position)
        for transfer in pg.transfers.values():
            transfer.resize(pg.shard)
        if pg.transfers:
            account_copied(cluster, pg)
        return change

    def _object_size(self, pool_id: int) -> int:
        """Bytes of an object of the pool: the mean at the pool's first write."""
        if pool_id not in self._object_bytes:
            pgs: List[Pg] = self._cluster.pgs_of(pool_id)
            stored, objects = sum(pg.num_bytes for pg in pgs), sum(pg.num_objects for pg in pgs)
            self._object_bytes[pool_id] = max(1, stored // objects) if objects and stored > 0 \
                else OBJECT_BYTES
        return self._object_bytes[pool_id]

"""Writes and deletes of clients, which change the size of PGs and the bytes on OSDs.

Omap as real daemons report it: found by deep scrubs, shown by the OSDs' stores with a delay.

Seen on 16.2.15 and 20.2.4: a PG's num_omap_bytes is 0 until its first deep scrub, then what that
scrub found. `store_stats` of the pool and `pool_statfs` of the OSDs show what RocksDB has written
out: soon on 20; on 16 OSD by OSD, when 256 MiB have come together or the store is compacted.
Omap that leaves an OSD is free only after its store has been compacted, and counts as omap of its
pool until then.

Noise on the bytes that PGs and OSDs report: a factor for each, drawn again with each report.
"""
from __future__ import annotations

import random
from itertools import compress
from operator import is_not
from typing import Any, Dict, Iterable, List, Optional, Tuple

from ..cluster import operations, pg_reports
from ..cluster.cluster import Cluster
from ..cluster.pg import Pg
from ..cluster.shard_copies import account_copied, mark_missed_writes
from ..cluster.usage import ShardBytes
from ..crush.hashes import NONE
from ..frozen import ReadOnlyDict, ReadOnlyRecords
from ..osdmap.osd_map import share_of
from .backfill import Backfill
from .deletion import Schedule, Timer


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
        #: {primary OSD: (nanoseconds, number)} of the ops that clients have waited for so far
        self.ops: Dict[int, Tuple[int, int]] = {}
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
        step = _STEP_SECONDS
        if pgs > _MANY_PGS:
            step = _LONG_STEP_SECONDS
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
        total = sum(shares)
        done = 0
        taken = 0
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
        if pg.creating:   # clients wait until it has peered, which takes a second
            return bool(pg.holders())
        if pg.pgid in cluster.unclean and "active" not in pg_reports.state_of(cluster, pg):
            return False
        usage = cluster.usage
        full = cluster.map.ratio("full_ratio")
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
        writes = max(1, abs(objects))
        operations.count_writes(cluster, pg, writes, max(0, change) >> 10)
        pg.written = pg.written[0] + writes, pg.written[1] + max(0, change)
        if pg.writes is not None:
            pg.writes += writes
            if pg.writes >= self._cluster.log_length():
                pg.writes = None
        pg.short_logs = frozenset()  # a write trims all logs to the same entry
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
        """Returns the bytes of an object of the pool: the mean at the pool's first write."""
        if pool_id not in self._object_bytes:
            pgs: List[Pg] = self._cluster.pgs_of(pool_id)
            stored = sum(pg.num_bytes for pg in pgs)
            objects = sum(pg.num_objects for pg in pgs)
            self._object_bytes[pool_id] = OBJECT_BYTES
            if objects and stored > 0:
                self._object_bytes[pool_id] = max(1, stored // objects)
        return self._object_bytes[pool_id]


def report_by_scrub(cluster: Cluster, schedule: Schedule) -> None:
    """Makes PGs report omap as real daemons do.

    What PGs hold now counts as found by their last deep scrub.
    """
    cluster.omap_written = held_bytes(cluster)
    for pg in cluster.pgs.values():
        pg.omap_reported = pg.omap_bytes
        pg.forget_reports()

    def free_later(pool_id: int, osd: int, count: int) -> None:
        place = (pool_id, osd)
        cluster.uncompacted[place] = cluster.uncompacted.get(place, 0) + count
        schedule.at(cluster.clock.now + cluster.compaction_seconds,
                    lambda: free_uncompacted(cluster, pool_id, osd, count))
    cluster.on_omap_freed = free_later
    cluster.invalidate_sums()


def free_uncompacted(cluster: Cluster, pool_id: int, osd: int, limit: int) -> None:
    """Frees up to `limit` bytes of omap that left the OSD and still take space on it."""
    count = min(limit, cluster.uncompacted.get((pool_id, osd), 0))
    if count > 0:
        cluster.uncompacted[pool_id, osd] -= count
        cluster.store(pool_id, osd, ShardBytes(0, -count, 0))
        cluster.invalidate_sums()


def held_bytes(cluster: Cluster) -> Dict[int, Dict[int, int]]:
    """Returns OSD → pool id → bytes of omap of the shards that the OSD holds completely."""
    held: Dict[int, Dict[int, int]] = {}
    for pg in cluster.pgs.values():
        if not (pg.omap_bytes and pg.movable):
            continue
        for osd in pg.holders():
            pools = held.setdefault(osd, {})
            pools[pg.pool_id] = pools.get(pg.pool_id, 0) + pg.omap_bytes
    return held


def hidden(cluster: Cluster) -> Dict[int, int]:
    """Returns OSD → bytes of omap not written out yet, which its statistics count as metadata."""
    if cluster.release >= 18:
        return {}
    return {osd: max(0, sum(pools.values()) - sum(cluster.omap_written.get(osd, {}).values()))
            for osd, pools in held_bytes(cluster).items()}


def stored(cluster: Cluster, pool_id: int) -> int:
    """Returns omap_allocated of the pool's store_stats: bytes written out on all OSDs."""
    if cluster.release < 18:
        return sum(written.get(pool_id, 0) for written in cluster.omap_written.values())
    gone = sum(count for (pool, _), count in cluster.uncompacted.items() if pool == pool_id)
    if pool_id not in cluster.pgs_with_omap:
        cluster.pgs_with_omap[pool_id] = [pg for pg in cluster.pgs_of(pool_id) if pg.omap_bytes]
    return gone + sum(pg.omap_bytes * len(pg.holders()) for pg in cluster.pgs_with_omap[pool_id]
                      if pg.movable)


_Record = Dict[str, Any]


class Noise:
    """Adds noise to readings; keeps the noisy records of PGs while their originals and factors
    last.
    """

    def __init__(self) -> None:
        #: "pgs" or "osds" → what the factors were drawn from, and they themselves.
        self._factors: Dict[str, Tuple[Tuple[str, float, int], List[float]]] = {}
        #: The records of PGs that were last given noise, the factors, and both together.
        self._pgs: Tuple[List[_Record], List[float], ReadOnlyRecords] = [], [], ReadOnlyRecords()

    def added(self, name: str, value: Any, noise: float, seed: str) -> Any:
        """Returns a structure of `MgrModule.get` with noise; `seed` has a place for "pgs" or
        "osds".
        """
        if name == "pg_progress":
            factors = self._drawn("pgs", noise, seed, len(value["pgs"]))
            return {**value, "pgs": self._noisy_progress(value["pgs"], factors)}
        noisy = dict(value)
        if "pg_stats" in noisy:
            records = noisy["pg_stats"]
            noisy["pg_stats"] = _noisy_pgs(
                records, self._drawn("pgs", noise, seed, len(records)))
        if "osd_stats" in noisy:
            records = noisy["osd_stats"]
            noisy["osd_stats"] = _noisy_osds(
                records, self._drawn("osds", noise, seed, len(records)))
        return noisy

    def _drawn(self, kind: str, noise: float, seed: str, count: int) -> List[float]:
        """Returns a factor for each PG or OSD, in their order."""
        key = (seed, noise, count)
        if kind not in self._factors or self._factors[kind][0] != key:
            draw = random.Random(seed % kind).random   # a local name: drawn for every PG
            self._factors[kind] = key, [1.0 + noise * (2.0 * draw() - 1.0) for _ in range(count)]
        return self._factors[kind][1]

    def _noisy_progress(self, records: Dict[str, _Record],
                        factors: List[float]) -> ReadOnlyRecords:
        """Returns the records with noise; its cost is that of the changes since the last call."""
        now = list(records.values())
        before, last_factors, last = self._pgs
        changed: Iterable[Tuple[str, _Record, float]] = zip(records, now, factors)
        if last_factors is factors and list(last) == list(records):
            noisy = ReadOnlyRecords(last)
            changed = compress(changed, map(is_not, now, before))
        else:
            noisy = ReadOnlyRecords()
        for pgid, record, factor in changed:
            noisy[pgid] = ReadOnlyDict(
                {**record, "num_bytes": int(record["num_bytes"] * factor)})
        self._pgs = now, factors, noisy
        return ReadOnlyRecords(noisy)


def _noisy_osds(records: List[_Record], factors: List[float]) -> List[_Record]:
    noisy: List[_Record] = []
    for record, factor in zip(records, factors):
        statfs = record["statfs"]
        total = int(statfs["total"])
        used = min(total, int((total - int(statfs["available"])) * factor))
        noisy.append(ReadOnlyDict({
            **record, "kb_used": used >> 10, "kb_avail": (total - used) >> 10,
            "statfs": ReadOnlyDict({**statfs, "available": total - used})}))
    return noisy


def _noisy_pgs(records: List[_Record], factors: List[float]) -> List[_Record]:
    return [{**record, "stat_sum": {
        **record["stat_sum"], "num_bytes": int(record["stat_sum"]["num_bytes"] * factor)}}
        for record, factor in zip(records, factors)]

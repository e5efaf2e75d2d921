"""Bytes on the simulated OSDs: the size of a shard, and the statistics of it.

A shard has num_bytes (erasure-coded: num_bytes / k, rounded down) of data, all of the PG's omap
bytes, and metadata: bytes per object, the slope of a regression line through (objects on the OSD,
`internal_metadata` of the OSD) over all OSDs. The line's value at zero objects belongs to the
device and never moves. The slope is kept between 0 and the lowest metadata per object of any OSD,
so that no OSD's metadata can become negative.

A shard takes different bytes on different OSDs, and at different positions of its PG.

OSDs with another min_alloc_size, or with compression, allocate more or fewer bytes than they store.
In an EC-optimized pool parity is as large as the first data shard, and the others store the rest of
an object (Ceph's ECUtil.h; exact to the byte on 20.2.4).
"""
from __future__ import annotations

from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Tuple

from ..frozen import ReadOnlyDict


_STATFS_KEYS = ("total", "available", "internally_reserved", "allocated", "data_stored",
                "data_compressed", "data_compressed_allocated", "data_compressed_original",
                "omap_allocated", "internal_metadata")


def share(part: float, whole: float, of_nothing: float = 0.0) -> float:
    """Returns the part ÷ the whole; `of_nothing` if there is no whole."""
    if whole > 0:
        return part / whole
    return of_nothing


class ShardBytes(NamedTuple):
    """Bytes of one shard of a PG on an OSD, by the statistics that count them."""

    data: int
    omap: int
    metadata: int

    @property
    def total(self) -> int:
        data, omap, metadata = self
        return data + omap + metadata

    def part(self, copied: float) -> ShardBytes:
        """Returns the part of the shard when `copied` of its total bytes have arrived."""
        if copied >= self.total:
            return self
        share = copied / self.total
        return ShardBytes(int(self.data * share), int(self.omap * share),
                          int(self.metadata * share))

    def minus(self, other: ShardBytes) -> ShardBytes:
        return ShardBytes(self.data - other.data, self.omap - other.omap,
                          self.metadata - other.metadata)


NOTHING = ShardBytes(0, 0, 0)


def metadata_per_object(points: Iterable[Tuple[int, int]]) -> float:
    """Returns the bytes of metadata per object from (objects, internal_metadata) of every OSD."""
    known = [(float(x), float(y)) for x, y in points if y > 0]
    ceiling = min((y / x for x, y in known if x > 0), default=0.0)
    if not known:
        return 0.0
    mean_x = sum(x for x, _ in known) / len(known)
    mean_y = sum(y for _, y in known) / len(known)
    spread = sum((x - mean_x) ** 2 for x, _ in known)
    if spread <= 0:
        return ceiling
    slope = sum((x - mean_x) * (y - mean_y) for x, y in known) / spread
    return max(0.0, min(slope, ceiling))


class OsdUsage:
    """The `osd_stats` record of one OSD: the file's figures plus all changes since."""

    __slots__ = ("_record", "_data", "_omap", "_metadata", "_padding", "_pgs", "is_flat", "_dumped",
                 "shown", "total", "used")

    def __init__(self, record: Dict[str, Any]) -> None:
        self._record = record
        self._data = 0
        self._omap = 0
        self._metadata = 0
        #: Allocated minus stored bytes: above 0 by min_alloc_size, below 0 by compression.
        self._padding = 0
        self._pgs = 0
        #: True if the file's record has no lists, which its read-only copies would share.
        self.is_flat = not any(isinstance(value, (list, dict)) for key, value in record.items()
                               if key != "statfs")
        #: The last result of `dump` with its hidden omap; None after a change.
        self._dumped: Optional[Tuple[int, ReadOnlyDict]] = None
        #: The OSD's entry in the map, the result of `dump` and the reporting period that the last
        #: record was made of (simulation/statistics.py), and that record.
        self.shown: Tuple[Any, Any, int, ReadOnlyDict] = (None, None, 0, ReadOnlyDict())
        #: Size of the device in bytes.
        self.total = int(record["statfs"]["total"])
        #: Used bytes now, as total - available.
        self.used = self.total - int(record["statfs"]["available"])

    @property
    def utilization(self) -> float:
        """Returns used / size, 0..1; 0 for a device without a size."""
        if self.total:
            return self.used / self.total
        return 0.0

    def _changed(self) -> int:
        return self._data + self._omap + self._metadata

    def add(self, shard: ShardBytes, stored: Optional[int] = None) -> None:
        """Adds an allocated shard. `stored`: its stored bytes of data, if these are others."""
        data, omap, metadata = shard
        self._dumped = None
        if stored is not None:
            self._padding += data - stored
        self._data += data
        self._omap += omap
        self._metadata += metadata
        self.used += data + omap + metadata

    def remove(self, shard: ShardBytes) -> None:
        self.add(NOTHING.minus(shard))

    def count_pg(self, difference: int) -> None:
        self._dumped = None
        self._pgs += difference

    def statfs(self, hidden_omap: int = 0) -> Dict[str, int]:
        """Returns the statfs figures now; never negative. Hidden omap counts as metadata."""
        file = self._record["statfs"]
        now = {key: int(file.get(key, 0)) for key in _STATFS_KEYS}
        now["available"] -= self._changed()
        now["allocated"] += self._data
        now["data_stored"] += self._data - self._padding
        now["omap_allocated"] += self._omap - hidden_omap
        now["internal_metadata"] += self._metadata + hidden_omap
        return {key: max(0, value) for key, value in now.items()}

    def dump(self, hidden_omap: int = 0) -> ReadOnlyDict:
        """Returns the osd_stats[] record now; equal to the file's while nothing has moved."""
        if self._dumped is None or self._dumped[0] != hidden_omap:
            self._dumped = hidden_omap, self._dump(hidden_omap)
        return self._dumped[1]

    def _dump(self, hidden_omap: int) -> ReadOnlyDict:
        changed = self._changed()
        now = dict(self._record)
        if not changed and not self._pgs:
            return ReadOnlyDict({**now, "statfs": ReadOnlyDict(self._record["statfs"])})
        for key, delta in (("kb_used", changed), ("kb_avail", -changed),
                           ("kb_used_data", self._data),
                           ("kb_used_omap", self._omap - hidden_omap),
                           ("kb_used_meta", self._metadata + hidden_omap)):
            now[key] = max(0, int(self._record.get(key, 0)) + _kilobytes(delta))
        now["num_pgs"] = max(0, int(self._record.get("num_pgs", 0)) + self._pgs)
        now["statfs"] = ReadOnlyDict({**self._record["statfs"], **self.statfs(hidden_omap)})
        return ReadOnlyDict(now)


def _kilobytes(change: int) -> int:
    return int(round(change / 1024))


class PoolUsage:
    """The `pool_statfs` table: allocated bytes per (pool, OSD), if the file has one."""

    def __init__(self, records: List[Dict[str, Any]]) -> None:
        self._records = {(int(r["poolid"]), int(r["osd"])): r for r in records}
        #: (pool id, OSD) → the increase since: allocated bytes, omap, stored bytes
        self._changed: Dict[Tuple[int, int], Tuple[int, int, int]] = {}
        self._is_shown = bool(records)
        self._has_begun = False

    def begin(self) -> None:
        """Makes a table that the file does not have begin empty."""
        self._is_shown = self._has_begun = True

    def by_pool(self) -> Dict[int, Dict[str, int]]:
        """Returns pool id → the data of its `store_stats`: sums over its OSDs, like the mgr's.
        Empty if the file's own are shown.
        """
        sums: Dict[int, Dict[str, int]] = {}
        if not self._has_begun:
            return sums
        for record in self.dump():
            of_pool = sums.setdefault(record["poolid"], {"allocated": 0, "data_stored": 0})
            for key in of_pool:
                of_pool[key] += record[key]
        return sums

    def add(self, pool_id: int, osd: int, shard: ShardBytes, stored: int) -> None:
        """Adds an allocated shard, and its stored bytes of data."""
        if self._is_shown:
            data, omap, held = self._changed.get((pool_id, osd), (0, 0, 0))
            self._changed[pool_id, osd] = (data + shard.data, omap + shard.omap, held + stored)

    def forget_pool(self, pool_id: int) -> None:
        for key in [k for k in self._records if k[0] == pool_id]:
            del self._records[key]
        for key in [k for k in self._changed if k[0] == pool_id]:
            del self._changed[key]

    def dump(self) -> List[Dict[str, Any]]:
        """Returns the pool_statfs[] records now, sorted by pool and OSD."""
        shown = []
        for pool_id, osd in sorted(set(self._records) | set(self._changed)):
            record: Optional[Dict[str, Any]] = self._records.get((pool_id, osd))
            now = {**dict.fromkeys(_STATFS_KEYS, 0), **(record or {}), "poolid": pool_id,
                   "osd": osd}
            data, omap, held = self._changed.get((pool_id, osd), (0, 0, 0))
            for key, delta in (("allocated", data), ("data_stored", held),
                               ("omap_allocated", omap)):
                now[key] = max(0, int(now[key]) + delta)
            shown.append(now)
        return shown


def empty_record(osd: int, size: int) -> Dict[str, Any]:
    """Returns the osd_stats[] record of an OSD of `size` bytes that has nothing yet."""
    zeros = dict.fromkeys(("num_pgs", "kb_used", "kb_used_data", "kb_used_omap", "kb_used_meta"), 0)
    return {"osd": osd, **zeros, "kb": size >> 10, "kb_avail": size >> 10,
            "statfs": {**dict.fromkeys(_STATFS_KEYS, 0), "total": size, "available": size}}


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
        """Returns True if no ratio is set."""
        return not self.allocation and not self.positions

    def stored(self, pool_id: int, position: int, shard: ShardBytes) -> ShardBytes:
        """Returns the shard with the bytes that it stores at its position."""
        ratios = self.positions.get(pool_id)
        if ratios is None or position >= len(ratios):
            return shard
        return shard._replace(data=int(shard.data * ratios[position]))

    def ratio(self, pool_id: int, osd: int) -> float:
        """Returns allocated ÷ stored bytes of a pool on an OSD."""
        return self.allocation.get((pool_id, osd), self.allocation.get((None, osd), 1.0))

    def allocated(self, pool_id: int, osd: int, stored: ShardBytes) -> ShardBytes:
        """Returns the shard with the bytes that it takes on an OSD."""
        ratio = self.ratio(pool_id, osd)
        if ratio == 1.0:
            return stored
        return stored._replace(data=int(stored.data * ratio))


def position_ratios(size: int, data_chunks: int, chunk: int,
                    object_bytes: int) -> Tuple[float, ...]:
    """Returns the ratios of an EC-optimized pool: objects of `object_bytes`, cut into chunks of
    `chunk` bytes.
    """
    whole, rest = divmod(object_bytes, chunk * data_chunks)
    by_shard: List[int] = [
        -(-(whole * chunk + max(0, min(chunk, rest - shard * chunk))) // _PAGE) * _PAGE
        for shard in range(data_chunks)]
    by_shard += by_shard[:1] * (size - data_chunks)   # parity
    return tuple(taken * data_chunks / object_bytes for taken in by_shard)

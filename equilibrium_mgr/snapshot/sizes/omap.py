"""Omap of PGs that do not tell it.

PG statistics say 0 until the PG's deep scrub, days or weeks later; the pool's own statistics
(`store_stats.omap_allocated`, raw bytes of all copies) tell what the OSDs' RocksDB has written
out, and nothing of what its write buffers hold. Since Ceph 18 those are small (16 MiB, not 256),
and that is as good as all. What the PGs do not tell of it is spread over them by their objects.
Before Ceph 18 it is the least that they can have: it counts, but a PG of which more than a few
objects have omap stays until its deep scrub. There OSDs give omap that has left back late as well,
so that one plan after the other would take more from them.
"""
from __future__ import annotations

from typing import Any, Collection, Dict, Iterable, Mapping, NamedTuple

from ..reading import PgRecord

#: Releases by `require_osd_release` whose OSDs write omap out 256 MiB at a time, up to 1 GiB late
#: (bluestore_rocksdb_options: write_buffer_size, max_total_wal_size).
_REPORTED_LATE = frozenset(("luminous", "mimic", "nautilus", "octopus", "pacific", "quincy"))
#: An object has at most so many times what it has in the mean of the pool. Where few PGs do not tell
#: and more than that is left for them, others may have grown since their deep scrubs.
_MOST_OF_MEAN = 4.0
#: Doubtful omap below this ratio of a PG's bytes is of no account.
_DOUBTFUL_RATIO = 0.1
#: Known omap above this ratio of a PG's bytes is much of it.
_MUCH_OMAP_RATIO = 0.1
#: Omap is much of what a PG holds where more than this ratio of its objects have any; and where it
#: is told late, so that no later plan would put a mistake right. An image has one or two of thousands.
_MOSTLY_OMAP, _MUCH_OMAP_REPORTED_LATE = 0.5, 0.1
#: An object with fewer bytes than this is as good as empty.
_NEARLY_NO_BYTES = 64


class OmapEstimate(NamedTuple):
    """How a pool's omap is shared out."""

    ratio: float = 1.0         # of what PGs tell themselves
    per_object: float = 0.0    # bytes for each object of the PGs that do not tell
    #: What each of those objects has if all that is left is theirs; 0 where that is not in doubt.
    doubtful_per_object: float = 0.0

    def bytes_of(self, record: PgRecord) -> int:
        """Omap bytes of one copy of a PG."""
        if record.omap_bytes > 0:
            return int(record.omap_bytes * self.ratio)
        return int(self.per_object * omap_objects(record))

    def is_unknown(self, record: PgRecord) -> bool:
        """Is what the PG may have of omap in doubt, and much beside its bytes?"""
        if record.omap_bytes > 0:
            return False
        return self.doubtful_per_object * omap_objects(record) > _DOUBTFUL_RATIO * record.num_bytes


class _OmapSums:
    def __init__(self) -> None:
        self.told = 0       # raw bytes, as PGs tell them
        self.told_objects = 0    # copies of objects in those PGs
        self.objects = 0    # copies of objects in PGs that do not tell

    def add(self, record: PgRecord, copies: int) -> None:
        if record.omap_bytes > 0:
            self.told += record.omap_bytes * copies
            self.told_objects += omap_objects(record) * copies
        else:
            self.objects += omap_objects(record) * copies


class OmapFit:
    """Adds up what PGs tell; `fit` then gives a pool's shares."""

    def __init__(self, pool_stats: Iterable[Mapping[str, Any]],
                 uncompacted: Mapping[int, int] = {}) -> None:
        """`uncompacted`: pool id → bytes that are counted and that no PG holds any more."""
        self._allocated: Dict[int, int] = {
            pool["poolid"]: max(1, pool["store_stats"]["omap_allocated"]
                                - uncompacted.get(pool["poolid"], 0)) for pool in pool_stats
            if pool.get("store_stats", {}).get("omap_allocated", 0) > 0}
        self._sums: Dict[int, _OmapSums] = {pool: _OmapSums() for pool in self._allocated}

    @property
    def pools(self) -> Collection[int]:
        """Those whose own statistics tell their omap."""
        return self._sums

    def add(self, pool: int, record: PgRecord, copies: int) -> None:
        """`copies`: the PG's shards on OSDs that have reported."""
        self._sums[pool].add(record, copies)

    def fit(self) -> Dict[int, OmapEstimate]:
        """Pool → its shares."""
        shares: Dict[int, OmapEstimate] = {}
        for pool, found in self._sums.items():
            allocated = self._allocated[pool]
            shares[pool] = OmapEstimate()
            if found.objects > 0:
                rest = max(0, allocated - found.told)
                most = _MOST_OF_MEAN * allocated / (found.objects + found.told_objects)
                per_object = rest / found.objects
                shares[pool] = OmapEstimate(1.0, per_object) if per_object <= most else OmapEstimate(
                    1.0, most, per_object)
            elif found.told > 0:   # it may have grown since the deep scrubs
                shares[pool] = OmapEstimate(max(1.0, allocated / found.told))
        return shares


def omap_objects(record: PgRecord) -> int:
    """Objects that have omap; all of them where that is not told."""
    return record.omap_objects if record.omap_objects >= 0 else record.num_objects


def is_much_omap(omap_bytes: int, data_bytes: int) -> bool:
    """Is so much omap of account beside so many bytes of objects?"""
    return omap_bytes > _MUCH_OMAP_RATIO * data_bytes


def is_reported_late(osd_map: Mapping[str, Any]) -> bool:
    """Do pools' statistics know of omap only when much of it has come together on an OSD?"""
    return osd_map.get("require_osd_release", "") in _REPORTED_LATE


def is_unmeasured(record: PgRecord, reported_late: bool) -> bool:
    """Is omap much of what the PG holds, and has it not been measured? Where the pool's own
    statistics do not tell either, or late, its size is unknown then."""
    if record.omap_bytes > 0 or record.num_objects <= 0:
        return False
    if record.omap_objects >= 0:
        least = _MUCH_OMAP_REPORTED_LATE if reported_late else _MOSTLY_OMAP
        return record.omap_objects > least * record.num_objects
    return record.num_bytes < _NEARLY_NO_BYTES * record.num_objects

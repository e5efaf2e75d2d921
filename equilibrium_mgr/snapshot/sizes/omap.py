"""Estimates the omap of PGs whose statistics show none.

PG statistics show 0 until the PG's deep scrub, days or weeks later. The pool's own statistics
(`store_stats.omap_allocated`, raw bytes of all copies) have the bytes that the OSDs' RocksDB has
written out, without its write buffers. Since Ceph 18 those buffers are small (16 MiB, not 256). The
rest of the pool's figure is apportioned to the PGs without one, by their objects. If all PGs have
one, or the rest is less than as many objects of the others have, all PGs count by one ratio. It is
below 1 if RocksDB compresses (LZ4, the default if its buffers are small) or clients have deleted
since, and above 1 if they have written.

Before Ceph 18 the figure is only a lower limit. It counts, but a PG is immovable until its deep
scrub if more than a few of its objects have omap. OSDs of these releases also free omap late, so
one plan after the other would take more.
"""
from __future__ import annotations

from typing import NamedTuple, Optional

from ..model import PgRecord

#: Releases by `require_osd_release` whose OSDs write omap out 256 MiB at a time, up to 1 GiB late
#: (bluestore_rocksdb_options: write_buffer_size, max_total_wal_size).
REPORTED_LATE = frozenset(("luminous", "mimic", "nautilus", "octopus", "pacific", "quincy"))
#: Objects of PGs without a figure get at most this many times the mean of the pool. If more is left
#: for them, other PGs have probably grown since their deep scrubs.
_MOST_OF_MEAN = 4.0
#: The omap of a PG is much if it is more than this ratio of the PG's bytes of data.
MUCH_OMAP_RATIO = 0.1
#: Omap is much of a PG if more than this ratio of its objects have any. The second ratio is for
#: releases that report it late: no later plan corrects a mistake there. An RBD image has one or two
#: such objects of thousands.
_MOSTLY_OMAP = 0.5
_MUCH_OMAP_REPORTED_LATE = 0.1
#: An object with fewer bytes than this is as good as empty.
_NEARLY_NO_BYTES = 64


class OmapEstimate(NamedTuple):
    """The estimate of the omap of a pool's PGs."""

    ratio: float = 1.0         # factor of a PG's own figure
    per_object: float = 0.0    # bytes for each object of a PG without a figure

    def bytes_of(self, record: PgRecord) -> int:
        """Returns the omap bytes of one copy of a PG."""
        if record.omap_bytes > 0:
            return int(record.omap_bytes * self.ratio)
        return int(self.per_object * omap_objects(record))


class OmapSums:
    """Adds up the PGs of one pool that have a record: `add` them, then `estimate`."""

    _reported_bytes = 0     # raw bytes in the figures of PGs
    _reported_objects = 0   # copies of objects in those PGs
    _objects = 0            # copies of objects in PGs without a figure
    _moved_bytes = _moved_objects = 0   # of copies that may be there or not

    def add(self, record: PgRecord, copies: int, moved: int) -> None:
        """Adds one PG. `copies`: its shards on OSDs that have reported; `moved`: shards that are
        being copied, or whose space may not be free yet."""
        omap_bytes = record.omap_bytes
        objects = omap_objects(record)
        if omap_bytes > 0:
            self._reported_bytes += omap_bytes * copies
            self._reported_objects += objects * copies
            self._moved_bytes += omap_bytes * moved
        else:
            self._objects += objects * copies
            self._moved_objects += objects * moved

    def estimate(self, allocated: int, kept: Optional[OmapEstimate],
                 reported_late: bool) -> OmapEstimate:
        """Returns the estimate for the PGs. `allocated`: raw bytes by the pool's statistics;
        `kept`: the last estimate, which is kept between two bounds while copies move."""
        # PGs without a figure have the rest of the pool's figure, if that gives their objects as
        # much as others have; else all PGs count by one ratio
        reported = self._reported_bytes
        objects = self._objects
        mean = reported / max(1, self._reported_objects)
        whole = reported + mean * objects
        if objects > 0 and (reported_late or allocated >= whole):
            rest = max(0, allocated - reported)
            high = rest / objects
            low = max(0, rest - self._moved_bytes) / (objects + self._moved_objects)
            most = _MOST_OF_MEAN * allocated / (objects + self._reported_objects)
            if kept is not None:
                high = min(max(kept.per_object, low), high)
            return OmapEstimate(1.0, min(high, most))
        if whole > 0:   # PGs grow after their deep scrubs, and RocksDB compresses
            high = allocated / whole
            low = allocated / (whole + self._moved_bytes + mean * self._moved_objects)
            if kept is not None:
                high = min(max(kept.ratio, low), high)
            if reported_late:
                high = max(1.0, high)
            return OmapEstimate(high, high * mean)
        return OmapEstimate()


def omap_objects(record: PgRecord) -> int:
    """Returns the number of objects that have omap; all objects if that is not known."""
    if record.omap_objects < 0:
        return record.num_objects
    return record.omap_objects


def is_unmeasured(record: PgRecord, reported_late: bool) -> bool:
    """Returns True if omap is probably much of the PG and nobody has measured it.

    The PG's size is unknown then, unless the pool's own statistics show it in time.
    """
    objects = record.num_objects
    if record.omap_bytes > 0 or objects <= 0:
        return False
    if record.omap_objects >= 0:
        least = _MOSTLY_OMAP
        if reported_late:
            least = _MUCH_OMAP_REPORTED_LATE
        return record.omap_objects > least * objects
    return record.num_bytes < _NEARLY_NO_BYTES * objects

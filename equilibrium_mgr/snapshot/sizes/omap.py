"""Estimates the omap of PGs whose statistics do not have it.

PG statistics show 0 until the PG's deep scrub, days or weeks later. The pool's own statistics
(`store_stats.omap_allocated`, raw bytes of all copies) have what the OSDs' RocksDB has written out,
without its write buffers. Since Ceph 18 those are small (16 MiB, not 256), so the rest of the
pool's figure is apportioned to the PGs without one, by their objects. Where it is less than PGs'
own figures, RocksDB compresses (LZ4, the default where its buffers are small) or clients have
deleted since: all PGs count less alike. Before Ceph 18 it is only a lower limit: it counts, but a
PG of which more than a few objects have omap is immovable until its deep scrub. There OSDs also
free late what has left, and one plan after the other would take more.
"""
from __future__ import annotations

from typing import NamedTuple, Optional

from ..model import PgRecord

#: Releases by `require_osd_release` whose OSDs write omap out 256 MiB at a time, up to 1 GiB late
#: (bluestore_rocksdb_options: write_buffer_size, max_total_wal_size).
REPORTED_LATE = frozenset(("luminous", "mimic", "nautilus", "octopus", "pacific", "quincy"))
#: An object has at most this many times the mean of the pool. Where more than that is left for the
#: PGs without a figure, other PGs may have grown since their deep scrubs.
_MOST_OF_MEAN = 4.0
#: Known omap above this ratio of a PG's bytes is much of it.
MUCH_OMAP_RATIO = 0.1
#: Omap is much of what a PG holds where more than this ratio of its objects have any. The second
#: ratio is for releases that report it late, where no later plan corrects a mistake. An RBD image
#: has one or two such objects of thousands.
_MOSTLY_OMAP, _MUCH_OMAP_REPORTED_LATE = 0.5, 0.1
#: An object with fewer bytes than this is as good as empty.
_NEARLY_NO_BYTES = 64


class OmapEstimate(NamedTuple):
    """How the omap of a pool's PGs is estimated."""

    ratio: float = 1.0         # by which a PG's own figure is multiplied
    per_object: float = 0.0    # bytes for each object of a PG without a figure

    def bytes_of(self, record: PgRecord) -> int:
        """Omap bytes of one copy of a PG."""
        return int(record.omap_bytes * self.ratio if record.omap_bytes > 0
                   else self.per_object * omap_objects(record))


class OmapSums:
    """Sums over the PGs of one pool that have a record: `add` them, then `estimate`."""

    def __init__(self) -> None:
        self._reported_bytes = 0     # raw bytes in the figures of PGs
        self._reported_objects = 0   # copies of objects in those PGs
        self._objects = 0            # copies of objects in PGs without a figure
        self._moved_bytes = self._moved_objects = 0   # the same of copies that may be there or not

    def add(self, record: PgRecord, copies: int, moved: int) -> None:
        """Adds one PG. `copies`: its shards on OSDs that have reported; `moved`: those that are
        being copied, or whose space may not have been freed."""
        if record.omap_bytes > 0:
            self._reported_bytes += record.omap_bytes * copies
            self._reported_objects += omap_objects(record) * copies
            self._moved_bytes += record.omap_bytes * moved
        else:
            self._objects += omap_objects(record) * copies
            self._moved_objects += omap_objects(record) * moved

    def estimate(self, allocated: int, kept: Optional[OmapEstimate],
                 reported_late: bool) -> OmapEstimate:
        """How the omap of the PGs is estimated. `allocated`: raw bytes by the pool's statistics;
        `kept`: the last estimate, as far as it can be while copies move."""
        # an object of a PG without a figure has as much as others; what is beyond that, the PGs
        # without a figure have
        mean = self._reported_bytes / max(1, self._reported_objects)
        whole = self._reported_bytes + mean * self._objects
        if self._objects > 0 and (reported_late or allocated >= whole):
            rest = max(0, allocated - self._reported_bytes)
            high = rest / self._objects
            low = max(0, rest - self._moved_bytes) / (self._objects + self._moved_objects)
            most = _MOST_OF_MEAN * allocated / (self._objects + self._reported_objects)
            per_object = min(max(kept.per_object, low), high) if kept is not None else high
            return OmapEstimate(1.0, min(per_object, most))
        if whole > 0:   # PGs may have grown since their deep scrubs, and RocksDB compresses
            high = allocated / whole
            low = allocated / (whole + self._moved_bytes + mean * self._moved_objects)
            ratio = max(float(reported_late), min(max(kept.ratio, low), high) if kept else high)
            return OmapEstimate(ratio, ratio * mean)
        return OmapEstimate()


def omap_objects(record: PgRecord) -> int:
    """Objects that have omap; all objects where that is not known."""
    return record.omap_objects if record.omap_objects >= 0 else record.num_objects


def is_unmeasured(record: PgRecord, reported_late: bool) -> bool:
    """True where omap is much of what the PG holds and has not been measured.

    The PG's size is unknown then, unless the pool's own statistics have it in time.
    """
    if record.omap_bytes > 0 or record.num_objects <= 0:
        return False
    if record.omap_objects >= 0:
        least = _MUCH_OMAP_REPORTED_LATE if reported_late else _MOSTLY_OMAP
        return record.omap_objects > least * record.num_objects
    return record.num_bytes < _NEARLY_NO_BYTES * record.num_objects

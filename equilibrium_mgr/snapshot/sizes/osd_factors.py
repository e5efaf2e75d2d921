"""What the same shard takes on one OSD more or less than on others, fitted from what OSDs report.

OSDs of one class may have been made with different `min_alloc_size`, compress by themselves, or
stand on drives that compress: an object of 10 kB takes 12 KiB on one and 64 KiB on another (16.2.15
and 20.2.4). BlueStore tells for each pool what it has stored and what it has allocated for that
(`pool_statfs`): where their ratio on an OSD is clearly not the one of most OSDs of the pool, the
data of that pool has a factor there. On a drive that compresses less is used than is allocated.
What RocksDB holds of an object, its omap included, is in neither figure and takes what it takes
anywhere: the more of it a pool's shards have, the less they differ.

Where nothing is clear there are no factors.

Sizes of the shards of an EC-optimized pool by position, computed by its mean object.

Without that flag all shards of a PG are equally large. With it (since Ceph 20) an object's bytes
fill chunk after chunk, and what is missing in its last stripe is not padded: parity is as large as
the first shard, and the other data shards of a small object hold nothing (20.2.4: of 10,000 B, 4+2,
stripe unit 16 KiB, 12,288 B at positions 0, 4 and 5). What was written before the flag was set is
not so; each OSD's own report and the residual of it take that up as shards arrive.
"""
from __future__ import annotations

from math import exp, log
from typing import Any, Collection, Dict, Iterable, List, Mapping, NamedTuple, Sequence, Set, Tuple

from ...runtime.time_slice import piecewise
from ..in_flight import nonprimary_shards
from ..model import PoolStatfs


#: A pool that has less than this ratio of an OSD's size there says nothing of the OSD.
_LEAST_RATIO = 0.001
#: Less used than allocated tells of a drive that compresses, where as much of it is allocated.
_LEAST_OF_DRIVE = 0.01
#: OSDs of a pool below which there are no usual ones.
_LEAST_OSDS = 3
#: A factor is clear beyond this ratio, and beyond this many times the spread of the others.
_CLEAR_RATIO = 1.10
_CLEAR_SPREAD = 2.0
#: No hardware makes more of a difference: of min_alloc_sizes of 4 and 64 KiB, and of compression
#: into one allocation unit of 4 KiB, a factor of 16. What is beyond is a figure gone wrong.
_MOST_RATIO = 32.0
#: A factor that is used stays while it is beyond the first ratio, and as it is within the second.
_STILL_CLEAR_RATIO = 1.05
_SAME_RATIO = 1.03
_PARTS = 1024.0   # a power of two
#: (allocated ÷ stored, OSD id) of one pool. Plain: the garbage collector would go
#: over as many named ones as there are pools times OSDs.
_Stored = Tuple[float, int]
_ROWS_A_PIECE = 1500   # before it gives way again: about a millisecond


class OsdFactors(NamedTuple):
    """Ratios to what the same data takes on usual OSDs; what is 1 is left out."""

    allocation: Mapping[int, Mapping[int, float]] = {}   # pool id → OSD → allocated bytes of data
    drives: Mapping[int, float] = {}   # OSD → bytes on the drive for each that is allocated
    usual: Mapping[int, float] = {}    # pool id → allocated ÷ stored on usual OSDs

    @property
    def osds(self) -> Set[int]:
        """OSDs with a ratio."""
        return {osd for factors in self.allocation.values() for osd in factors}.union(self.drives)

    def allocated(self, pool: int, osd: int) -> float:
        """The factor of what BlueStore allocates for a pool's data on an OSD."""
        return self.allocation.get(pool, _NONE).get(osd, 1.0)

    def of_shard(self, pool: int, osd: int, metadata: float = 0.0) -> float:
        """The factor of a pool's shards on an OSD's device. `metadata`: what RocksDB holds of a
        shard on usual OSDs, as a ratio of all its bytes there; 0 for its data alone."""
        return of_whole(self.allocated(pool, osd), metadata) * self.drives.get(osd, 1.0)

    def beside_osd(self, pool: int, metadata: float,
                   size_factors: Mapping[int, float]) -> Dict[int, float]:
        """OSD → the factor of a pool's shards as a ratio of the OSD's own, where that is not 1."""
        ratios = {osd: exact_ratio(self.of_shard(pool, osd, metadata) / factor)
                  for osd, factor in size_factors.items()}
        return {osd: ratio for osd, ratio in ratios.items() if ratio != 1.0}


NO_FACTORS = OsdFactors()
_NONE: Mapping[int, float] = {}


def of_whole(of_data: float, metadata: float) -> float:
    """The ratio of the bytes of a shard whose data has a ratio: its metadata has none."""
    return 1.0 + (of_data - 1.0) * (1.0 - metadata) if metadata else of_data


def exact_ratio(ratio: float) -> float:
    """The ratio to a thousandth. Sums of such are exact, in whatever order they are made."""
    return round(ratio * _PARTS) / _PARTS


def fit_osd_factors(pool_statfs: Sequence[PoolStatfs], osd_stats: Iterable[Mapping[str, Any]],
                    kept: OsdFactors) -> OsdFactors:
    """Both readings are of the same moment; `kept`: the last factors."""
    statfs = {stats["osd"]: stats.get("statfs") or {} for stats in osd_stats}
    drives = _drives(statfs, kept.drives)
    allocation: Dict[int, Dict[int, float]] = {}
    usual: Dict[int, float] = {}
    for pool, rows in piecewise(_by_pool(pool_statfs, statfs).items(), 1):
        usual[pool], factors = _of_pool(rows, kept.allocation.get(pool, _NONE))
        if factors:
            allocation[pool] = factors
    return OsdFactors(allocation, drives, usual) if allocation or drives else NO_FACTORS


def fit_size_factors(factors: OsdFactors, expected: Mapping[int, Mapping[int, float]],
                     metadata: Mapping[int, float], kept: Mapping[int, float]) -> Dict[int, float]:
    """OSD → bytes on it of a shard of its mean pool, as a ratio of what it takes on usual OSDs.
    `expected`: OSD → pool id → bytes that usual OSDs would have of what it holds."""
    found: Dict[int, float] = {}
    for osd in sorted(expected):
        whole = sum(expected[osd].values())
        factor = sum([count * factors.of_shard(pool, osd, metadata.get(pool, 0.0))
                      for pool, count in expected[osd].items()]) / whole if whole else (
            factors.drives.get(osd, 1.0))
        before = kept.get(osd)
        is_kept = before is not None and _is_within(factor / before, _SAME_RATIO)
        found[osd] = before if before is not None and is_kept else round(factor, 3)
    return found


def _by_pool(pool_statfs: Sequence[PoolStatfs],
             statfs: Mapping[int, Mapping[str, Any]]) -> Dict[int, List[_Stored]]:
    """Pool id → what OSDs have of it, where that can be and is enough to tell something."""
    sizes = {osd: figures.get("total", 0) for osd, figures in statfs.items()}
    found: Dict[int, List[_Stored]] = {}
    for pool, osd, allocated, stored in piecewise(pool_statfs, _ROWS_A_PIECE):
        size, most = sizes.get(osd, 0), max(allocated, stored)
        if stored > 0 < allocated <= _MOST_RATIO * size and most >= _LEAST_RATIO * size:
            found.setdefault(pool, []).append((allocated / stored, osd))
    for pool, rows in piecewise(found.items(), 1):
        usual = _usual([ratio for ratio, _ in rows])
        if not all(_is_within(ratio / usual, _MOST_RATIO) for ratio, _ in rows):
            found[pool] = [row for row in rows if _is_within(row[0] / usual, _MOST_RATIO)]
    return found


def _of_pool(rows: Sequence[_Stored],
             kept: Mapping[int, float]) -> Tuple[float, Dict[int, float]]:
    """(allocated ÷ stored on usual OSDs, OSD → factor of those that clearly have another)."""
    ratios = sorted([ratio for ratio, _ in rows])
    usual = _usual(ratios)
    if len(rows) < _LEAST_OSDS or (not kept and ratios[-1] <= _CLEAR_RATIO * usual
                                   and ratios[0] * _CLEAR_RATIO >= usual):
        return usual, {}
    # two kinds of OSDs lie far apart and close to their like; where all differ no kind is clear
    gaps = sorted([log(b / a) for a, b in zip(ratios, ratios[1:])])
    spread = exp(_CLEAR_SPREAD * len(gaps) * gaps[(len(gaps) - 1) // 2])
    factors: Dict[int, float] = {}
    for ratio, osd in rows:
        _add_clear(factors, osd, ratio / usual, kept, max(_CLEAR_RATIO, spread))
    return usual, factors


def _drives(statfs: Mapping[int, Mapping[str, Any]], kept: Mapping[int, float]) -> Dict[int, float]:
    """OSD → used ÷ allocated bytes, of drives that compress unlike most; usual is 1."""
    ratios: Dict[int, float] = {}
    for osd, figures in statfs.items():
        total, allocated = figures.get("total", 0), figures.get("allocated", 0)
        if total > 0 < allocated and allocated >= _LEAST_OF_DRIVE * total:
            ratio = (total - figures.get("available", total)) / allocated
            if ratio * _MOST_RATIO >= 1.0:
                ratios[osd] = min(1.0, ratio)
    if all(ratio * _CLEAR_RATIO >= 1.0 for ratio in ratios.values()) and not kept:
        return {}
    usual = _usual(ratios.values()) if ratios else 1.0
    factors: Dict[int, float] = {}
    for osd, ratio in ratios.items():
        _add_clear(factors, osd, ratio / usual, kept, _CLEAR_RATIO)
    return factors


def _add_clear(factors: Dict[int, float], osd: int, factor: float, kept: Mapping[int, float],
               clear: float) -> None:
    """Adds a factor that is clear; the kept one where it is as good."""
    before = kept.get(osd)
    if before is not None and _is_within(factor / before, _SAME_RATIO):
        factors[osd] = before
    elif not _is_within(factor, clear if before is None else _STILL_CLEAR_RATIO):
        factors[osd] = round(factor, 3)


def _usual(ratios: Collection[float]) -> float:
    """The median, the lower one of two."""
    return sorted(ratios)[(len(ratios) - 1) // 2]


def _is_within(ratio: float, limit: float) -> bool:
    return 1.0 / limit <= ratio <= limit


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

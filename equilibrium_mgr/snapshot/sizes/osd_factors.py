"""What the same shard takes on one OSD more or less than on others, fitted from what OSDs report.

OSDs of one class may have been made with different `min_alloc_size`, or compress: an object of
10 kB takes 12 KiB on one and 64 KiB on another (16.2.15 and 20.2.4). BlueStore tells for each pool
what it has stored and what it has allocated for that (`pool_statfs`): where their ratio on an OSD
is clearly not the one of most OSDs of the pool, the data of that pool has a factor there. What
RocksDB holds of an object, its omap included, is in neither figure and takes what it takes
anywhere: the more of it a pool's shards have, the less they differ.

No factor is fitted for a drive that compresses unlike others of its class: shards take less there
than is expected, and each look finds what is left to move.

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
from typing import Any, Collection, Dict, Iterable, List, Mapping, Sequence, Tuple

from ...runtime.time_slice import piecewise
from ..model import PoolStatfs
from ..pools import nonprimary_shards


#: A pool that has less than this ratio of an OSD's size there says nothing of the OSD.
_LEAST_RATIO = 0.001
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


#: pool id → OSD → allocated bytes of the pool's data, as a ratio of what the same takes on usual
#: OSDs; what is 1 is left out
Factors = Mapping[int, Mapping[int, float]]
_NONE: Mapping[int, float] = {}


def factor_of(factors: Factors, pool: int, osd: int, metadata: float = 0.0) -> float:
    """The factor of a pool's shards on an OSD. `metadata`: what RocksDB holds of a shard on usual
    OSDs, as a ratio of all its bytes there; 0 for its data alone."""
    return of_whole(factors.get(pool, _NONE).get(osd, 1.0), metadata)


def of_whole(of_data: float, metadata: float) -> float:
    """The ratio of the bytes of a shard whose data has a ratio: its metadata has none."""
    return 1.0 + (of_data - 1.0) * (1.0 - metadata) if metadata else of_data


def exact_ratio(ratio: float) -> float:
    """The ratio to a thousandth. Sums of such are exact, in whatever order they are made."""
    return round(ratio * _PARTS) / _PARTS


def fit_osd_factors(pool_statfs: Sequence[PoolStatfs], osd_stats: Iterable[Mapping[str, Any]],
                    kept: Factors) -> Factors:
    """Both readings are of the same moment; `kept`: the last factors."""
    sizes = {stats["osd"]: (stats.get("statfs") or {}).get("total", 0) for stats in osd_stats}
    found = {pool: _of_pool(rows, kept.get(pool, _NONE))
             for pool, rows in piecewise(_by_pool(pool_statfs, sizes).items(), 1)}
    return {pool: factors for pool, factors in found.items() if factors}


def _by_pool(pool_statfs: Sequence[PoolStatfs],
             sizes: Mapping[int, int]) -> Dict[int, List[_Stored]]:
    """Pool id → what OSDs have of it, where that can be and is enough to tell something. `sizes`:
    bytes by OSD."""
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
             kept: Mapping[int, float]) -> Dict[int, float]:
    """OSD → factor of those that clearly have another ratio than most."""
    ratios = sorted([ratio for ratio, _ in rows])
    usual = _usual(ratios)
    if len(rows) < _LEAST_OSDS or (not kept and ratios[-1] <= _CLEAR_RATIO * usual
                                   and ratios[0] * _CLEAR_RATIO >= usual):
        return {}
    # two kinds of OSDs lie far apart and close to their like; where all differ no kind is clear
    gaps = sorted([log(b / a) for a, b in zip(ratios, ratios[1:])])
    spread = exp(_CLEAR_SPREAD * len(gaps) * gaps[(len(gaps) - 1) // 2])
    factors: Dict[int, float] = {}
    for ratio, osd in rows:
        factor, before = ratio / usual, kept.get(osd)
        if before is not None and is_same(factor, before):
            factors[osd] = before
        elif not _is_within(factor, max(_CLEAR_RATIO, spread) if before is None
                            else _STILL_CLEAR_RATIO):
            factors[osd] = round(factor, 3)
    return factors


def _usual(ratios: Collection[float]) -> float:
    """The median, the lower one of two."""
    return sorted(ratios)[(len(ratios) - 1) // 2]


def is_same(factor: float, before: float) -> bool:
    """True where a factor that is used serves as well as a new one."""
    return _is_within(factor / before, _SAME_RATIO)


def _is_within(ratio: float, limit: float) -> bool:
    return 1.0 / limit <= ratio <= limit


#: A shard of an object takes whole pages of so many bytes.
_PAGE = 4096
#: Sizes that differ by less than this ratio are alike.
_ALIKE = 0.02


def position_ratios(pool: Mapping[str, Any], data_shards: int,
                    object_size: float) -> Tuple[float, ...]:
    """Position → its bytes ÷ the mean of all, of objects of so many bytes, by a pool's dump in the
    osdmap; empty where they are alike (Ceph's ECUtil.h: ro_offset)."""
    stripe_width = int(pool.get("stripe_width", 0))
    whole, rest = divmod(int(object_size), stripe_width) if stripe_width else (0, 0)
    chunk = stripe_width // data_shards
    by_data_shard = [
        -(-(whole * chunk + max(0, min(chunk, rest - number * chunk))) // _PAGE) * _PAGE
        for number in range(data_shards)]
    # shards that cannot be primary are the data shards but the first; parity is as large as that
    later = sorted(nonprimary_shards(pool)) or range(1, data_shards)
    sizes = [by_data_shard[0]] * pool["size"]
    for position, count in zip(later, by_data_shard[1:]):
        sizes[position] = count
    mean = sum(sizes) / len(sizes)
    if mean <= 0.0 or max(sizes) - min(sizes) <= _ALIKE * mean:
        return ()
    return tuple([exact_ratio(size / mean) for size in sizes])

"""Fits how much more or less space the same shard takes on one OSD than on others.

OSDs of one class can have different `min_alloc_size`, or compress: an object of 10 kB takes 12 KiB
on one and 64 KiB on another (16.2.15 and 20.2.4). BlueStore reports for each pool how many bytes it
has stored, and how many it has allocated for these (`pool_statfs`). If their ratio on an OSD
clearly differs from that on most OSDs of the pool, the pool's data has a factor there. Neither
figure includes the bytes of an object in RocksDB, omap among them: these take the same space on any
OSD. The more of them a pool's shards have, the less the shards differ.

A drive that compresses unlike others of its class gets no factor. Shards take less space there than
predicted, and each reading shows how much is left to move.

If no OSD clearly differs there are no factors.

Also computes the sizes by position of the shards of an EC-optimized pool (allow_ec_optimizations),
from the mean object of the pool.

Without that flag all shards of a PG are equally large. With it (since Ceph 20) an object's bytes
fill chunk after chunk, without padding in its last stripe. Parity is as large as the first shard,
and the other data shards of a small object are empty (20.2.4: of 10,000 B, 4+2, stripe unit 16 KiB,
12,288 B at positions 0, 4 and 5). Objects written before the flag was set are still padded. The
reports of OSDs, and so their residuals, include that as shards arrive.
"""
from __future__ import annotations

from collections import defaultdict
from math import exp, log
from typing import Any, Collection, Dict, List, Mapping, Sequence, Tuple

from ...runtime.time_slice import piecewise
from ..model import Osd, PoolStatfs
from ..pools import nonprimary_shards


#: A pool with less than this ratio of an OSD's size there shows nothing about the OSD.
_LEAST_RATIO = 0.001
#: With fewer OSDs than this a pool has no usual ones.
_LEAST_OSDS = 3
#: A factor is clear above this ratio (or below the inverse), and above this many times the spread
#: of the others.
_CLEAR_RATIO = 1.10
_CLEAR_SPREAD = 2.0
#: Different min_alloc_size (4 and 64 KiB) and compression into one allocation unit of 4 KiB explain
#: a factor of at most 16. A factor above this ratio is a wrong reading.
_MOST_RATIO = 32.0
#: A factor in use stays while it is above the first ratio, and keeps its value within the second.
_STILL_CLEAR_RATIO = 1.05
_SAME_RATIO = 1.03
_PARTS = 1024.0   # a power of two
#: (allocated ÷ stored, OSD id) of one pool. No NamedTuple: the garbage collector would visit as
#: many as there are pools times OSDs.
_Stored = Tuple[float, int]
_ROWS_A_PIECE = 1500   # between two calls of `give_way`: about a millisecond


#: pool id → OSD → allocated bytes of the pool's data, as a ratio of its usual bytes; without
#: ratios of 1
Factors = Mapping[int, Mapping[int, float]]
_NONE: Mapping[int, float] = {}


def factor_of(factors: Factors, pool: int, osd: int, metadata: float = 0.0) -> float:
    """Returns the factor of a pool's shards on an OSD. `metadata`: the bytes of a shard in RocksDB
    on usual OSDs, as a ratio of all its bytes there; 0 for its data alone."""
    return of_whole(factors.get(pool, _NONE).get(osd, 1.0), metadata)


def of_whole(of_data: float, metadata: float) -> float:
    """Returns the ratio of all bytes of a shard whose data has a ratio: its metadata has none."""
    if not metadata:
        return of_data
    return 1.0 + (of_data - 1.0) * (1.0 - metadata)


def exact_ratio(ratio: float) -> float:
    """Returns the ratio to a 1024th: sums of such ratios are exact, in any order."""
    return round(ratio * _PARTS) / _PARTS


def fit_osd_factors(pool_statfs: Sequence[PoolStatfs], osds: Mapping[int, Osd],
                    kept: Factors) -> Factors:
    """Returns the factors of pools on OSDs. `osds`: OSDs of the same moment; `kept`: the last
    factors."""
    found = {pool: _of_pool(rows, kept.get(pool, _NONE))
             for pool, rows in piecewise(_by_pool(pool_statfs, osds).items(), 1)}
    return {pool: factors for pool, factors in found.items() if factors}


def _by_pool(pool_statfs: Sequence[PoolStatfs],
             osds: Mapping[int, Osd]) -> Dict[int, List[_Stored]]:
    """Returns pool id → its ratios on OSDs. Leaves out impossible figures, and OSDs that have too
    little of the pool."""
    found: Dict[int, List[_Stored]] = defaultdict(list)
    for pool, number, allocated, stored in piecewise(pool_statfs, _ROWS_A_PIECE):
        osd = osds.get(number)
        if osd is None or not stored > 0 < allocated <= _MOST_RATIO * osd.size_bytes:
            continue
        if max(allocated, stored) >= _LEAST_RATIO * osd.size_bytes:
            found[pool].append((allocated / stored, number))
    for pool, rows in piecewise(found.items(), 1):
        usual = _usual([ratio for ratio, _ in rows])
        found[pool] = [row for row in rows if _is_within(row[0] / usual, _MOST_RATIO)]
    return found


def _of_pool(rows: Sequence[_Stored],
             kept: Mapping[int, float]) -> Dict[int, float]:
    """Returns OSD → factor, for the OSDs whose ratio clearly differs from most. `kept`: their last
    factors."""
    ratios = sorted([ratio for ratio, _ in rows])
    if len(rows) < _LEAST_OSDS:
        return {}
    usual = _usual(ratios)
    are_alike = ratios[-1] <= _CLEAR_RATIO * usual and ratios[0] * _CLEAR_RATIO >= usual
    if are_alike and not kept:
        return {}
    # two kinds of OSDs lie far apart, and close to others of their kind; if all OSDs differ no kind
    # is clear
    gaps = sorted([log(b / a) for a, b in zip(ratios, ratios[1:])])
    spread = exp(_CLEAR_SPREAD * len(gaps) * _usual(gaps))
    least = max(_CLEAR_RATIO, spread)
    factors: Dict[int, float] = {}
    for ratio, osd in rows:
        factor = ratio / usual
        before = kept.get(osd)
        if before is None:
            if not _is_within(factor, least):
                factors[osd] = round(factor, 3)
        elif is_same(factor, before):
            factors[osd] = before
        elif not _is_within(factor, _STILL_CLEAR_RATIO):
            factors[osd] = round(factor, 3)
    return factors


def _usual(ratios: Collection[float]) -> float:
    """Returns the median, the lower one of two."""
    return sorted(ratios)[(len(ratios) - 1) // 2]


def is_same(factor: float, before: float) -> bool:
    """Returns True if a factor in use serves as well as a new one."""
    return _is_within(factor / before, _SAME_RATIO)


def _is_within(ratio: float, limit: float) -> bool:
    """Returns True if a ratio is at most the limit, and at least its inverse."""
    return 1.0 / limit <= ratio <= limit


#: A shard of an object takes whole pages of this many bytes.
_PAGE = 4096
#: Sizes that differ by at most this ratio are alike.
_ALIKE = 0.02


def position_ratios(pool: Mapping[str, Any], data_shards: int,
                    object_size: float) -> Tuple[float, ...]:
    """Returns position → its bytes ÷ the mean of all positions; empty if they are alike.

    `pool`: its dump in the osdmap; `object_size`: bytes of its mean object. Source: ro_offset in
    Ceph's ECUtil.h.
    """
    stripe_width = int(pool.get("stripe_width", 0))
    if not stripe_width:
        return ()
    whole, rest = divmod(int(object_size), stripe_width)
    chunk = stripe_width // data_shards
    by_data_shard: List[int] = []
    for number in range(data_shards):
        in_last_stripe = max(0, min(chunk, rest - number * chunk))
        by_data_shard.append(-(-(whole * chunk + in_last_stripe) // _PAGE) * _PAGE)
    # shards that cannot be primary are the data shards but the first; parity is as large as that
    later = sorted(nonprimary_shards(pool)) or range(1, data_shards)
    sizes = [by_data_shard[0]] * pool["size"]
    for position, count in zip(later, by_data_shard[1:]):
        sizes[position] = count
    mean = sum(sizes) / len(sizes)
    if mean <= 0.0 or max(sizes) - min(sizes) <= _ALIKE * mean:
        return ()
    return tuple([exact_ratio(size / mean) for size in sizes])

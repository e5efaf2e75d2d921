"""Robert Jenkins' 32-bit hash ("rjenkins1") of two or three integers, as CRUSH seeds it.

All arithmetic is done on lanes: one Python integer may hold many 32-bit numbers, one in every
`LANE_BITS` bits, and each operation works on all of them at once. A single number is one lane.
This makes CRUSH fast enough: Python's cost is per operation, not per lane.

Constants of CRUSH maps.

CRUSH's logarithm, 2^44 * log2(x + 1) for a 16-bit x, in fixed point as Ceph computes it.

Ceph adds two table entries, one for the upper 8 bits of the normalized x and one for the rest. Most
entries follow a formula; those of the second table that do not are listed here. They are correct by
definition: every cluster has been placed by them.

Drawing an item from a straw2 bucket.

The CRUSH input x of a PG.
"""
from __future__ import annotations

from decimal import Decimal, localcontext
from functools import cache
from operator import floordiv
from struct import Struct
from typing import Any, List, Mapping, NamedTuple, Sequence, Tuple

#: Bits from one lane to the next: the widest shift to the left (16) has to fit over 32 bits.
LANE_BITS = 48

_WORD = 0xFFFFFFFF
_SEED = 1315423911
_X = 231232
_Y = 1232


class Lanes(NamedTuple):
    """The constants for a number of lanes."""

    #: 1 in every lane: times a number, it puts the number into every lane.
    ones: int
    #: The initial values of the hashes.
    seed: int
    x: int
    y: int
    #: 32 set bits in every lane.
    mask: int
    #: A multiple of 2^32 in every lane that keeps the subtractions from borrowing.
    lift: int


@cache
def lanes(count: int) -> Lanes:
    """Returns the constants for `count` lanes."""
    ones = sum(1 << (LANE_BITS * lane) for lane in range(count))
    return Lanes(ones, ones * _SEED, ones * _X, ones * _Y, ones * _WORD, ones << 33)


ONE_LANE = lanes(1)


def hash2(a: int, b: int, of: Lanes = ONE_LANE) -> int:
    """Returns the hash of two numbers per lane."""
    _, seed, x, y, mask, lift = of
    seed ^= a ^ b
    a, b, seed = _mix(a, b, seed, mask, lift)
    x, a, seed = _mix(x, a, seed, mask, lift)
    return _mix(b, y, seed, mask, lift)[2]


def hash3(a: int, b: int, c: int, of: Lanes = ONE_LANE) -> int:
    """Returns the hash of three numbers per lane."""
    _, seed, x, y, mask, lift = of
    seed ^= a ^ b ^ c
    a, b, seed = _mix(a, b, seed, mask, lift)
    c, x, seed = _mix(c, x, seed, mask, lift)
    y, a, seed = _mix(y, a, seed, mask, lift)
    b, x, seed = _mix(b, x, seed, mask, lift)
    return _mix(y, c, seed, mask, lift)[2]


def _mix(a: int, b: int, c: int, mask: int, lift: int) -> Tuple[int, int, int]:
    """Jenkins' mixing of three numbers; the mask clears bits shifted into other lanes."""
    a = (a + lift - b - c ^ c >> 13) & mask
    b = (b + lift - c - a ^ a << 8) & mask
    c = (c + lift - a - b ^ b >> 13) & mask
    a = (a + lift - b - c ^ c >> 12) & mask
    b = (b + lift - c - a ^ a << 16) & mask
    c = (c + lift - a - b ^ b >> 5) & mask
    a = (a + lift - b - c ^ c >> 3) & mask
    b = (b + lift - c - a ^ a << 10) & mask
    c = (c + lift - a - b ^ b >> 15) & mask
    return a, b, c


#: CRUSH_ITEM_NONE: a hole in a mapping, a position without an OSD.
NONE = 0x7FFFFFFF

#: 1.0 in 16.16 fixed point, of weights, reweights and primary affinities.
WEIGHT_ONE = 0x10000


_ONE = 1 << 48

#: Excess over the formula of all but a few entries of the second table.
_EXCESS = 5493489664

#: Entries of the second table without excess...
_WITHOUT_EXCESS = frozenset((
    0, 1, 203, 216, 222, 233, 237, 238, 239, 243, 244, 245, 246, 248, 249, 250, 251, 252, 253,
    254, 255))

#: ... and with a different excess.
_OWN_EXCESS = {
    56: 5349423536, 127: 978272901, 134: 3588789669, 181: 4007963589, 184: 5423282367,
    188: 2201924427, 193: 3829329171, 198: 2511158322, 199: 2670353280, 200: 3807665765,
    207: 5045407031, 210: 4635559696, 212: 3670382108, 225: 3209098745, 227: 1514328394,
    228: 2662093655, 229: 561838844, 231: 3537203772, 235: 4861921003, 236: 5281046906,
    240: 2650193885, 241: 4203558265, 247: 362109528}

#: The one entry of the first table that deviates from the formula: log2(2), slightly below 1.
_LAST_OF_FIRST = 0xFFFF00000000


@cache
def distances() -> List[int]:
    """Returns 2^48 - ln(u) for each 16-bit hash u: what a straw2 draw divides by the weight.

    The smallest quotient wins the draw. Computed once; 65536 integers below 2^48.
    """
    upper = _upper_table()
    lower = _lower_table()
    return [_ONE - _ln(value, upper, lower) for value in range(0x10000)]


def _ln(value: int, upper: List[int], lower: List[int]) -> int:
    """Returns 2^44 * log2(value + 1)."""
    number = value + 1
    exponent = min(number.bit_length() - 1, 15)
    number <<= 15 - exponent  # from 2^15 on; 2^16 only for the largest value
    segment = (number >> 8) - 128
    reciprocal = -(-(1 << 55) // (128 + segment))
    rest = number * reciprocal >> 48 & 0xFF
    return (exponent << 44) + (upper[segment] + lower[rest] >> 4)


def _upper_table() -> List[int]:
    """Returns 2^48 * log2(1 + k/128)."""
    return [_scaled_log2(128 + k, 128) for k in range(128)] + [_LAST_OF_FIRST]


def _lower_table() -> List[int]:
    """Returns 2^48 * log2(1 + k/2^15), with Ceph's deviations."""
    return [_scaled_log2((1 << 15) + k, 1 << 15)
            + (0 if k in _WITHOUT_EXCESS else _OWN_EXCESS.get(k, _EXCESS)) for k in range(256)]


def _scaled_log2(numerator: int, denominator: int) -> int:
    """Returns 2^48 * log2 of a quotient >= 1, rounded down; floats would depend on the machine."""
    with localcontext() as context:
        context.prec = 40
        return int(_ONE * (Decimal(numerator) / Decimal(denominator)).ln() / Decimal(2).ln())


_LANE_BYTES = LANE_BITS // 8


class Straw2:
    """The items of one bucket with one set of weights; it must have items.

    `weights` are 16.16, `hash_ids` the ids that stand for the items in the hash.
    """

    __slots__ = ("_items", "_weights", "_ids", "_lanes", "_low_words", "_bytes", "_distances")

    def __init__(self, items: Sequence[int], weights: Sequence[int],
                 hash_ids: Sequence[int]) -> None:
        # an item without weight never wins, unless no item has weight: then the first does
        able = [index for index, weight in enumerate(weights) if weight] or [0]
        self._items = [items[index] for index in able]
        self._weights = [weights[index] for index in able]
        self._ids = sum((hash_ids[index] & _WORD) << (LANE_BITS * lane)
                        for lane, index in enumerate(able))
        self._lanes = lanes(len(able))
        self._bytes = _LANE_BYTES * len(able)
        self._low_words = Struct("<" + "H4x" * len(able))
        self._distances = distances()

    def draw(self, x: int, r: int) -> int:
        """Returns the item that wins for a CRUSH input x (0..2^32-1) and a trial number r."""
        if len(self._items) == 1:
            return self._items[0]
        of = self._lanes
        hashed = hash3(x * of.ones, self._ids, r * of.ones, of)
        words = self._low_words.unpack(hashed.to_bytes(self._bytes, "little"))
        quotients = list(map(floordiv, map(self._distances.__getitem__, words), self._weights))
        return self._items[quotients.index(min(quotients))]


_HASHPSPOOL = 1


def stable_mod(value: int, count: int) -> int:
    """Returns `value` modulo `count`, such that growing the count only splits, never shuffles."""
    mask = (1 << (count - 1).bit_length()) - 1
    return value & mask if value & mask < count else value & mask >> 1


def placement_seed(pool_id: int, seed: int, pgp_num: int, hashpspool: bool = True) -> int:
    """Returns the CRUSH input of PG `pool_id.seed` (32 bits).

    PGs with the same x are on the same OSDs: after a split until pgp_num follows pg_num, and among
    pools without the flag hashpspool.
    """
    folded = stable_mod(seed, pgp_num)
    if hashpspool:
        return hash2(folded, pool_id & 0xFFFFFFFF)
    return (folded + pool_id) & 0xFFFFFFFF


def has_hashpspool(pool: Mapping[str, Any]) -> bool:
    """Returns True if a pool of the osdmap dump has the flag, as every pool created since 2013."""
    if "flags" in pool:
        return bool(int(pool["flags"]) & _HASHPSPOOL)
    return "hashpspool" in str(pool.get("flags_names", "hashpspool")).split(",")

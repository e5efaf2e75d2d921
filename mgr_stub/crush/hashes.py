"""Robert Jenkins' 32-bit hash ("rjenkins1") of two or three integers, as CRUSH seeds it.

All arithmetic is done on lanes: one Python integer may hold many 32-bit numbers, one in every
`LANE_BITS` bits, and each operation works on all of them at once. A single number is one lane.
This makes CRUSH fast enough: Python's cost is per operation, not per lane.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple, Tuple

#: Bits from one lane to the next: the widest shift to the left (16) has to fit over 32 bits.
LANE_BITS = 48

_WORD = 0xFFFFFFFF
_SEED = 1315423911
_X, _Y = 231232, 1232


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
    """The constants for `count` lanes."""
    ones = sum(1 << (LANE_BITS * lane) for lane in range(count))
    return Lanes(ones, ones * _SEED, ones * _X, ones * _Y, ones * _WORD, ones << 33)


ONE_LANE = lanes(1)


def hash2(a: int, b: int, of: Lanes = ONE_LANE) -> int:
    """The hash of two numbers per lane."""
    _, seed, x, y, mask, lift = of
    seed ^= a ^ b
    a, b, seed = _mix(a, b, seed, mask, lift)
    x, a, seed = _mix(x, a, seed, mask, lift)
    return _mix(b, y, seed, mask, lift)[2]


def hash3(a: int, b: int, c: int, of: Lanes = ONE_LANE) -> int:
    """The hash of three numbers per lane."""
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

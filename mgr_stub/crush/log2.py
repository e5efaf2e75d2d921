"""CRUSH's logarithm, 2^44 * log2(x + 1) for a 16-bit x, in fixed point as Ceph computes it.

Ceph adds two table entries, one for the upper 8 bits of the normalized x and one for the rest. Most
entries follow a formula; those of the second table that do not are listed here. They are correct by
definition: every cluster has been placed by them.
"""

from __future__ import annotations

from decimal import Decimal, localcontext
from functools import cache
from typing import List

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
    """2^48 - ln(u) for each 16-bit hash u: what a straw2 draw divides by the weight.

    The smallest quotient wins the draw. Computed once; 65536 integers below 2^48.
    """
    upper, lower = _upper_table(), _lower_table()
    return [_ONE - _ln(value, upper, lower) for value in range(0x10000)]


def _ln(value: int, upper: List[int], lower: List[int]) -> int:
    """2^44 * log2(value + 1)."""
    number = value + 1
    exponent = min(number.bit_length() - 1, 15)
    number <<= 15 - exponent  # from 2^15 on; 2^16 only for the largest value
    segment = (number >> 8) - 128
    reciprocal = -(-(1 << 55) // (128 + segment))
    rest = number * reciprocal >> 48 & 0xFF
    return (exponent << 44) + (upper[segment] + lower[rest] >> 4)


def _upper_table() -> List[int]:
    """2^48 * log2(1 + k/128)."""
    return [_scaled_log2(128 + k, 128) for k in range(128)] + [_LAST_OF_FIRST]


def _lower_table() -> List[int]:
    """2^48 * log2(1 + k/2^15), with Ceph's deviations."""
    return [_scaled_log2((1 << 15) + k, 1 << 15)
            + (0 if k in _WITHOUT_EXCESS else _OWN_EXCESS.get(k, _EXCESS)) for k in range(256)]


def _scaled_log2(numerator: int, denominator: int) -> int:
    """2^48 * log2 of a quotient >= 1, rounded down; floats would depend on the machine."""
    with localcontext() as context:
        context.prec = 40
        return int(_ONE * (Decimal(numerator) / Decimal(denominator)).ln() / Decimal(2).ln())

"""Sets of count vectors, each an integer with one bit per vector, and their sums.

A vector says how many shards of each class are on an OSD, or in a bucket. The sets here are closed
downwards: with a vector they hold every smaller one, since fewer shards break no limit.
"""
from __future__ import annotations

from itertools import product
from typing import Dict, Iterable, Iterator, List, Sequence, Tuple

Vector = Tuple[int, ...]


class CountSpace:
    """Vectors with coordinates from 0 to `most`; bit numbers leave room for sums of two."""

    def __init__(self, most: Sequence[int]) -> None:
        self.most = tuple(most)
        self._widths = [2 * m + 2 for m in most]
        self.strides: List[int] = []
        self.bits = 1
        for width in self._widths:
            self.strides.append(self.bits)
            self.bits *= width
        self._at_most: Dict[Tuple[int, int], int] = {}
        self._at_least: Dict[Tuple[int, int], int] = {}
        self._all = self.at_most(self.most)

    def bit(self, vector: Sequence[int]) -> int:
        return sum(n * stride for n, stride in zip(vector, self.strides))

    def holds(self, counts: int, vector: Sequence[int]) -> bool:
        return bool(counts >> self.bit(vector) & 1)

    def at_most(self, limits: Sequence[int]) -> int:
        """All vectors with no coordinate above its limit."""
        mask = (1 << self.bits) - 1
        for coordinate, limit in enumerate(limits):
            mask &= self._coordinate_at_most(coordinate, limit)
        return mask

    def exactly(self, counts: int, coordinate: int, value: int) -> int:
        """The vectors of a set with this coordinate."""
        found = counts & self._coordinate_at_most(coordinate, value)
        return found & self._coordinate_at_least(coordinate, value)

    def sum(self, one: int, other: int) -> int:
        """All sums of a vector of each that are in the space."""
        if not one or not other:
            return 0
        found = 0
        for bit in bits_of(self._largest(other)):
            found |= one << bit
        return self.closed(found & self._all)

    def closed(self, counts: int) -> int:
        """The set with every smaller vector."""
        for coordinate, stride in enumerate(self.strides):
            step = 1
            while step <= self.most[coordinate]:
                counts |= (counts & self._coordinate_at_least(coordinate, step)) >> step * stride
                step *= 2
        return counts

    def _largest(self, counts: int) -> int:
        """The vectors that no other one of a closed set is above."""
        smaller = 0
        for coordinate, stride in enumerate(self.strides):
            smaller |= (counts & self._coordinate_at_least(coordinate, 1)) >> stride
        return counts & ~smaller

    def _coordinate_at_most(self, coordinate: int, limit: int) -> int:
        key = coordinate, limit
        if key not in self._at_most:
            stride, width = self.strides[coordinate], self._widths[coordinate]
            self._at_most[key] = _repeated((1 << min(limit + 1, width) * stride) - 1,
                                           width * stride, self.bits)
        return self._at_most[key]

    def _coordinate_at_least(self, coordinate: int, limit: int) -> int:
        key = coordinate, limit
        if key not in self._at_least:
            self._at_least[key] = (1 << self.bits) - 1 & ~self._coordinate_at_most(
                coordinate, limit - 1)
        return self._at_least[key]


def bits_of(number: int) -> Iterator[int]:
    """The numbers of the bits that are set."""
    text = bin(number)[:1:-1]
    at = text.find("1")
    while at >= 0:
        yield at
        at = text.find("1", at + 1)


def number_of(bits: Iterable[int]) -> int:
    """The reverse of bits_of."""
    found = list(bits)
    text = bytearray(max(found, default=0) // 8 + 1)
    for bit in found:
        text[bit >> 3] |= 1 << (bit & 7)
    return int.from_bytes(text, "little")


def up_to(limits: Sequence[int]) -> Iterator[Vector]:
    """All vectors with no coordinate above its limit."""
    return product(*[range(limit + 1) for limit in limits])


def _repeated(pattern: int, period: int, bits: int) -> int:
    while period < bits:
        pattern |= pattern << period
        period *= 2
    return pattern & (1 << bits) - 1

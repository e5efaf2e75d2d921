"""Drawing an item from a straw2 bucket."""

from __future__ import annotations

from operator import floordiv
from struct import Struct
from typing import Sequence

from .hashes import LANE_BITS, hash3, lanes
from .log2 import distances

_LANE_BYTES = LANE_BITS // 8
_WORD = 0xFFFFFFFF


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
        """The item that wins for a CRUSH input x (0..2^32-1) and a trial number r."""
        if len(self._items) == 1:
            return self._items[0]
        of = self._lanes
        hashed = hash3(x * of.ones, self._ids, r * of.ones, of)
        words = self._low_words.unpack(hashed.to_bytes(self._bytes, "little"))
        quotients = list(map(floordiv, map(self._distances.__getitem__, words), self._weights))
        return self._items[quotients.index(min(quotients))]

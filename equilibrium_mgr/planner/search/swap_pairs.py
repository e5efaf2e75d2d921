"""Pairs of shards of two OSDs whose swap moves about the bytes that are wanted."""
from __future__ import annotations

from bisect import bisect_left
from typing import Iterator, List, Tuple

Offer = Tuple[int, int, int]      # (bytes, PG, group)


def pairs_of_shards(mine: List[Offer], sizes: List[int], theirs: List[Offer], want: float,
                    least: float, most: float) -> Iterator[Tuple[Offer, Offer]]:
    """Yields pairs whose difference in bytes is about `want` and between `least` and `most`.

    Both lists are sorted; `sizes` are the bytes of the first one, the same for all partners of an
    OSD. Iterates over the shorter list and finds partners in the other one by bisection.
    """
    if len(theirs) <= len(mine):
        smallest, largest = sizes[0], sizes[-1]
        for other in theirs:
            size = other[0]
            if int(size + most) < smallest:
                continue
            if int(size + least) > largest:
                break
            low = bisect_left(sizes, int(size + least))
            high = bisect_left(sizes, int(size + most) + 1, low)
            at = bisect_left(sizes, int(size + want))
            for k in range(max(low, min(at, high) - 1), min(high, max(at, low) + 2)):
                yield mine[k], other
    else:
        sizes = [offer[0] for offer in theirs]
        smallest, largest = sizes[0], sizes[-1]
        for offer in mine:
            size = offer[0]
            if int(size - least) < smallest:
                continue
            if int(size - most) > largest:
                break
            low = bisect_left(sizes, int(size - most))
            high = bisect_left(sizes, int(size - least) + 1, low)
            at = bisect_left(sizes, int(size - want))
            for k in range(max(low, min(at, high) - 2), min(high, max(at, low) + 1)):
                yield offer, theirs[k]

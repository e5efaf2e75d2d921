"""Placements and upmap items, also as text: `3 1 4` and `0>3 2>4`."""
from __future__ import annotations

from typing import Iterable, Sequence, Tuple, Union

Osds = Union[str, Sequence[int]]
Pairs = Union[str, Iterable[Tuple[int, int]]]


def osds(given: Osds) -> Tuple[int, ...]:
    if isinstance(given, str):
        return tuple(map(int, given.split()))
    return tuple(given)


def pairs(given: Pairs) -> Tuple[Tuple[int, int], ...]:
    """Of `0>2 1>3`: the pairs from osd.0 to osd.2 and from osd.1 to osd.3."""
    if isinstance(given, str):
        flat = osds(given.replace(">", " "))
        return tuple(zip(flat[::2], flat[1::2]))
    return tuple(given)

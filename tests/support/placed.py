"""Placements and upmap items as text: `3 1 4` and `0>3 2>4`."""
from __future__ import annotations

from typing import Tuple


def osds(text: str) -> Tuple[int, ...]:
    return tuple(map(int, text.split()))


def pairs(text: str) -> Tuple[Tuple[int, int], ...]:
    """Of `0>2 1>3`: the pairs from osd.0 to osd.2 and from osd.1 to osd.3."""
    flat = osds(text.replace(">", " "))
    return tuple(zip(flat[::2], flat[1::2]))

"""Apportionment of a pool's shards to OSDs, so that none limits the pool's free space early."""
from __future__ import annotations

import math
from typing import Dict, List, Sequence, Tuple

from ...runtime.time_slice import give_way
from .placement_state import PlacementState
from .shard_groups import ShardGroup

_PRECISION = 1e-4   # of the result, a ratio
_ROUNDING = 1e-9


def pressures(placement: PlacementState, group: ShardGroup,
              free: Sequence[float]) -> Tuple[float, float]:
    """(least, even) shards of the group per free byte; `free` is bytes per OSD index, 0 where
    nothing can be placed.

    Least is the lowest M so that M shards per free byte, rounded down, place all of them. No OSD
    need hold more than M × its free bytes, whatever the failure domains. This is D'Hondt's method
    of apportioning seats, which maximizes the smallest free space per shard. Even is the highest
    pressure where each OSD has its part of the shards by size, rounded up: about what balancing PG
    counts alone comes to. Failure domains are not counted there.
    """
    osds = [i for i in group.osds if placement.is_usable[i] and free[i] > 0.0]
    if not osds or not group.shard_count:
        return 0.0, 0.0
    total = sum(placement.capacity_bytes[i] for i in osds)
    even = max(math.ceil(group.shard_count * placement.capacity_bytes[i] / total - _ROUNDING)
               / free[i] for i in osds)
    give_way()
    pgs = group.shard_count // max(1, group.block.positions)
    levels = _domain_levels(placement, group, osds, pgs)

    def places_all(pressure: float) -> bool:
        """True where the shards have a place with at most so many per free byte."""
        give_way()
        sums = [min(pgs, int(pressure * free[i])) for i in osds]
        for parent, buckets, most in levels:
            above = [0] * buckets
            for index, value in zip(parent, sums):
                above[index] += value
            sums = [min(most, value) for value in above]
        return sum(sums) >= group.shard_count
    low = high = group.shard_count / sum(free[i] for i in osds)
    most = 4.0 * group.shard_count / min(free[i] for i in osds)
    while high < most and not places_all(high):
        low, high = high, high * 1.5
    while high - low > _PRECISION * high:
        middle = (low + high) / 2.0
        low, high = (low, middle) if places_all(middle) else (middle, high)
    return high, even


def _domain_levels(placement: PlacementState, group: ShardGroup, osds: List[int],
                   pgs: int) -> List[Tuple[List[int], int, int]]:
    """From the innermost domain: (bucket number per child, buckets, most shards per bucket)."""
    levels: List[Tuple[List[int], int, int]] = []
    children = [placement.osd_ids[i] for i in osds]          # one OSD stands for each child
    for domain in reversed(group.block.domains):
        number: Dict[int, int] = {}
        first: List[int] = []
        parent: List[int] = []
        for osd in children:
            bucket = domain.bucket_of[osd]
            if bucket not in number:
                number[bucket] = len(number)
                first.append(osd)
            parent.append(number[bucket])
        levels.append((parent, len(number), domain.shards_per_bucket * pgs))
        children = first
    return levels

"""Apportionment of a pool's shards to OSDs, so that none limits the pool's free space early."""
from __future__ import annotations

import math
from typing import Dict, List, Sequence, Tuple

from ...runtime.time_slice import give_way
from .placement_state import PlacementState
from .shard_groups import ShardGroup

_PRECISION = 1e-4   # of the result, a ratio
_ROUNDING = 1e-9

#: (the group's block, its shards) → pressure: pools of one shape share the work
PressureCache = Dict[Tuple[int, int], float]


def min_pressure(placement: PlacementState, group: ShardGroup, free: Sequence[float],
                 known: PressureCache) -> float:
    """The least M so that M shards per free byte, rounded down, place all shards of the group.

    No OSD need hold more than M × its free bytes, whatever the failure domains. This is D'Hondt's
    method of apportioning seats, which maximizes the smallest free space per shard.
    `free` is bytes per OSD index; 0 where nothing can be placed.
    """
    key = (id(group.block), group.shard_count)
    if key not in known:
        known[key] = _search(placement, group, free)
    return known[key]


def even_pressure(placement: PlacementState, group: ShardGroup, free: Sequence[float],
                  known: PressureCache) -> float:
    """The highest pressure where each OSD has its part of the group's shards by size, rounded up:
    about what balancing PG counts alone comes to. Failure domains are not counted."""
    key = (id(group.block), group.shard_count)
    if key not in known:
        known[key] = _even_pressure(placement, group, free)
        give_way()
    return known[key]


def _even_pressure(placement: PlacementState, group: ShardGroup, free: Sequence[float]) -> float:
    sizes = {i: placement.capacity_bytes[i] for i in group.osds
             if placement.is_usable[i] and free[i] > 0.0}
    total = sum(sizes.values())
    return max((math.ceil(group.shard_count * size / total - _ROUNDING) / free[i]
                for i, size in sizes.items()), default=0.0)


def _search(placement: PlacementState, group: ShardGroup, free: Sequence[float]) -> float:
    osds = [i for i in group.osds if placement.is_usable[i] and free[i] > 0.0]
    if not osds or not group.shard_count:
        return 0.0
    give_way()
    domains = _Domains(placement, group, osds)
    give_way()
    low = group.shard_count / sum(free[i] for i in osds)
    high = low
    most = 4.0 * group.shard_count / min(free[i] for i in osds)
    while high < most and domains.placed(free, high) < group.shard_count:
        low, high = high, high * 1.5
        give_way()
    while high - low > _PRECISION * high:
        middle = (low + high) / 2.0
        if domains.placed(free, middle) >= group.shard_count:
            high = middle
        else:
            low = middle
        give_way()
    return high


class _Domains:
    """Shards that can be placed, added up over the failure domains with each domain's limit."""

    def __init__(self, placement: PlacementState, group: ShardGroup, osds: List[int]) -> None:
        self._osds = osds
        self._pgs = group.shard_count // max(1, group.block.positions)
        #: from the innermost domain: (bucket number per child, buckets, most shards per bucket)
        self._domains: List[Tuple[List[int], int, int]] = []
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
            self._domains.append((parent, len(number), domain.shards_per_bucket * self._pgs))
            children = first

    def placed(self, free: Sequence[float], pressure: float) -> int:
        """The shards that can be placed with at most `pressure` shards per free byte."""
        pgs = self._pgs
        sums = [min(pgs, int(pressure * free[i])) for i in self._osds]
        for parent, buckets, most in self._domains:
            above = [0] * buckets
            for index, value in zip(parent, sums):
                above[index] += value
            sums = [min(most, value) for value in above]
        return sum(sums)

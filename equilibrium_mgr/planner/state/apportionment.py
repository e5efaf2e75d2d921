"""How many shards of a pool an OSD may hold before it limits the pool's free space."""
from __future__ import annotations

from typing import Dict, List, Sequence, Tuple

from ...runtime.checkpoints import Checkpoint
from .placement_state import PlacementState
from .shard_groups import ShardGroup

_PRECISION = 1e-4

#: (the group's block, its shards) → shards per free byte: pools of one shape share the work
PressureCache = Dict[Tuple[int, int], float]


def min_pressure(placement: PlacementState, group: ShardGroup, free: Sequence[float], known: PressureCache,
                         checkpoint: Checkpoint) -> float:
    """The least M so that M shards per free byte, rounded down, place all shards of the group.

    No OSD need hold more than M × its free bytes, whatever the failure domains: this is D'Hondt's
    way of sharing whole seats, and makes the smallest free space per shard as large as can be.
    `free` is bytes per OSD index; 0 where nothing can be placed.
    """
    key = (id(group.block), group.shard_count)
    if key not in known:
        known[key] = _search(placement, group, free, checkpoint)
    return known[key]


def _search(placement: PlacementState, group: ShardGroup, free: Sequence[float],
            checkpoint: Checkpoint) -> float:
    osds = [i for i in group.osds if placement.is_target[i] and free[i] > 0.0]
    if not osds or not group.shard_count:
        return 0.0
    domains = _Domains(placement, group, osds)
    low = group.shard_count / sum(free[i] for i in osds)
    high = low
    most = 4.0 * group.shard_count / min(free[i] for i in osds)
    while high < most and domains.room(free, high) < group.shard_count:
        low, high = high, high * 1.5
        checkpoint()
    while high - low > _PRECISION * high:
        middle = (low + high) / 2.0
        if domains.room(free, middle) >= group.shard_count:
            high = middle
        else:
            low = middle
        checkpoint()
    return high


class _Domains:
    """Shards that fit, summed up the failure domains, each held at what the rule allows there."""

    def __init__(self, placement: PlacementState, group: ShardGroup, osds: List[int]) -> None:
        self._osds = osds
        self._pgs = group.shard_count // max(1, group.block.positions)
        self._levels: List[Tuple[List[int], int, int]] = []  # (bucket per child, buckets, cap)
        children = [placement.osd_ids[i] for i in osds]          # one OSD stands for each child
        for domain in reversed(group.block.domains):
            number: Dict[int, int] = {}
            first: List[int] = []
            owner: List[int] = []
            for osd in children:
                bucket = domain.bucket_of[osd]
                if bucket not in number:
                    number[bucket] = len(number)
                    first.append(osd)
                owner.append(number[bucket])
            self._levels.append((owner, len(number), domain.shards_per_bucket * self._pgs))
            children = first

    def room(self, free: Sequence[float], most: float) -> int:
        """How many shards can be placed with at most `most` shards per free byte."""
        pgs = self._pgs
        sums = [min(pgs, int(most * free[i])) for i in self._osds]
        for owner, buckets, cap in self._levels:
            above = [0] * buckets
            for index, value in zip(owner, sums):
                above[index] += value
            sums = [min(cap, value) for value in above]
        return sum(sums)

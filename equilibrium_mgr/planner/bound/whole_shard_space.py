"""How much a pool can grow at most because its shards cannot be split.

An OSD has at most as many shards of the pool as fit with their growth, even without any other
pool's; a bucket at most as many of each PG as the rule allows. The largest growth with which all
shards of the pool have a place is a bound: the quotients that the D'Hondt method would divide.
"""
from __future__ import annotations

from typing import Dict, Mapping, Tuple

from ...crush.placement import PlacementBlock
from ...runtime.time_slice import piecewise
from ...snapshot.model import Pool
from .demand import OSDS_AT_ONCE, PoolDemand, binding_domains

#: Room is rounded up to this part of the largest OSD's, so that OSDs of one size count as one.
_STEPS = 4096
_HALVINGS = 40
_SAME = 1e-9

#: Bucket path → room of an OSD → OSDs with so much.
_RoomOf = Dict[Tuple[int, ...], Dict[int, int]]


class WholeShardSpace:
    """`room`: usable OSD → bytes of pools that it can hold."""

    def __init__(self, room: Mapping[int, int]) -> None:
        self._room = room
        self._step = max(1, max(room.values(), default=0) // _STEPS)
        self._known: Dict[PlacementBlock, _RoomOf] = {}

    def most_growth(self, pool: Pool, part: PoolDemand, at_most: float) -> float:
        """Bytes that can come to a position of the pool, `at_most` or fewer. Room is rounded up."""
        if at_most <= 0.0 or self._fits(pool, part, at_most):
            return at_most
        low, high = 0.0, at_most
        for _ in range(_HALVINGS):
            middle = (low + high) / 2.0
            low, high = (middle, high) if self._fits(pool, part, middle) else (low, middle)
            if high - low <= _SAME * high:
                break
        return high

    def _fits(self, pool: Pool, part: PoolDemand, growth: float) -> bool:
        """True if all of the part's shards have a place, each of the size of the smallest."""
        lightest = 0.5 if pool.pg_num & (pool.pg_num - 1) else 1.0   # see plan.usage.shard_weight
        if not pool.is_uniform:
            lightest *= min([1.0, *pool.osd_ratios.values()]) * min([1.0, *pool.position_ratios])
        smallest = part.least_bytes + lightest * growth / pool.pg_num
        if smallest <= 0.0:
            return True
        most = part.single_shards
        domains = binding_domains(part.block)
        counts: Dict[Tuple[int, ...], float] = {}
        for path, osds in self._room_of(part).items():
            counts[path] = sum([number * min(most, room // smallest)
                                for room, number in osds.items()])
        for domain in reversed(domains):
            above: Dict[Tuple[int, ...], float] = {}
            for path, count in counts.items():
                above[path[:-1]] = above.get(path[:-1], 0.0) + min(
                    count, domain.shards_per_bucket * most)
            counts = above
        return counts.get((), 0.0) >= part.all_shards

    def _room_of(self, part: PoolDemand) -> _RoomOf:
        if part.block not in self._known:
            domains = binding_domains(part.block)
            found: _RoomOf = {}
            for osd in piecewise(part.osds, OSDS_AT_ONCE):
                inside = found.setdefault(tuple([d.bucket_of[osd] for d in domains]), {})
                room = -(-max(0, self._room[osd]) // self._step) * self._step
                inside[room] = inside.get(room, 0) + 1
            self._known[part.block] = found
        return self._known[part.block]

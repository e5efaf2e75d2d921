"""How full the fullest OSD of a set is at least likely to be when shards cannot be split: a model.

Pools are placed anew, those with the largest shards first, each PG on the OSDs that are least full
with a shard of it, in distinct failure domains. Shards of less than _FINE of the smallest OSD fill
what is left as if they could be split. A balancer that moves from the present placement may end a
point of utilization above the model, or below it.
"""
from __future__ import annotations

import heapq
from typing import Dict, List, Mapping, NamedTuple, Sequence, Tuple

from ...crush.placement import PlacementBlock
from ...runtime.time_slice import give_way
from ...snapshot.model import Snapshot
from .lower_bound import OsdSet

#: Shards that are a smaller ratio of the smallest OSD are as good as split.
_FINE = 0.001
#: pg_num is raised to this many times its value at most by an advice.
_MOST_TIMES = 32
#: An advice that is nearer to the bound than this (a ratio) is good enough.
_NEAR = 0.005
#: PG shards per OSD that an advice does not pass where Ceph tells no limit.
_MOST_SHARDS = 250


class PgNumAdvice(NamedTuple):
    """A pg_num that would make the shards of a pool small enough; utilizations are ratios."""

    pool: int
    pg_num: int
    now: float      # the highest utilization of the set by the model
    then: float     # the same with that pg_num


class _PoolShards(NamedTuple):
    """One take of a pool in a set, and the bytes of one shard of each PG."""

    pool: int
    block: PlacementBlock
    sizes: List[int]


def pg_num_advice(snapshot: Snapshot, osd_set: OsdSet, pool: int,
                  max_shards: int) -> Tuple[PgNumAdvice, ...]:
    """The least pg_num that brings the set near its bound, or as near as a pg_num can; empty where
    none helps by a tenth of a point. `max_shards`: PG shards per OSD that Ceph allows, 0: unknown.
    """
    parts = _pool_shards(snapshot, osd_set)
    now = highest_with_whole_shards(snapshot, osd_set, parts, {})
    best = PgNumAdvice(pool, snapshot.pools[pool].pg_num, now, now)
    present = sum(part.block.positions * len(part.sizes) for part in parts)
    own = sum(part.block.positions * len(part.sizes) for part in parts if part.pool == pool)
    times = 2
    while times <= _MOST_TIMES:
        if present + own * (times - 1) > (max_shards or _MOST_SHARDS) * len(osd_set.osds):
            break
        then = highest_with_whole_shards(snapshot, osd_set, parts, {pool: times})
        if then < best.then - 0.001:
            best = PgNumAdvice(pool, snapshot.pools[pool].pg_num * times, now, then)
        if then - osd_set.bound < _NEAR:
            break
        times *= 2
    return (best,) if best.then < now - 0.001 else ()


def highest_with_whole_shards(snapshot: Snapshot, osd_set: OsdSet, parts: Sequence[_PoolShards],
                              times: Mapping[int, int]) -> float:
    """The highest utilization by the model. `times`: pool → factor of its pg_num."""
    used = _fixed_bytes(snapshot, osd_set)
    size = {osd: snapshot.osds[osd].size_bytes for osd in osd_set.osds}
    fine = _FINE * min(size.values())
    highest = osd_set.bound
    for part in sorted(parts, key=lambda p: -(sum(p.sizes) / len(p.sizes)) / times.get(p.pool, 1)):
        split = times.get(part.pool, 1)
        mean = sum(part.sizes) / len(part.sizes) / split
        if mean < fine:
            break
        targets = [osd for osd in part.block.weights if osd in used]
        domain = _domain_of(part.block, targets)
        heap = [((used[osd] + mean) / size[osd], osd) for osd in targets]
        heapq.heapify(heap)
        for shard in sorted(part.sizes, reverse=True):
            for _ in range(split):
                give_way()
                for osd in _place(heap, part.block.positions, domain):
                    used[osd] += shard / split
                    highest = max(highest, used[osd] / size[osd])
                    heapq.heappush(heap, ((used[osd] + mean) / size[osd], osd))
    return highest


def _place(heap: List[Tuple[float, int]], shards: int, domain: Mapping[int, int]) -> List[int]:
    """Takes the least full OSDs of distinct domains from the heap; the caller puts them back."""
    chosen: List[int] = []
    skipped: List[Tuple[float, int]] = []
    seen = set()
    while heap and len(chosen) < shards:
        entry = heapq.heappop(heap)
        if domain[entry[1]] in seen:
            skipped.append(entry)
            continue
        seen.add(domain[entry[1]])
        chosen.append(entry[1])
    for entry in skipped:
        heapq.heappush(heap, entry)
    return chosen


def _domain_of(block: PlacementBlock, osds: Sequence[int]) -> Dict[int, int]:
    """OSD → the bucket that holds one shard of a PG at most; the OSD itself where none is."""
    for domain in block.domains:
        if domain.shards_per_bucket == 1:
            return {osd: domain.bucket_of[osd] for osd in osds}
    return {osd: osd for osd in osds}


def _pool_shards(snapshot: Snapshot, osd_set: OsdSet) -> List[_PoolShards]:
    """One for each take of a pool with data whose OSDs are in the set."""
    sizes: Dict[int, List[int]] = {}
    for pg in snapshot.pgs.values():
        sizes.setdefault(pg.pool, []).append(pg.shard_bytes)
    members = frozenset(osd_set.osds)
    return [_PoolShards(number, block, sizes[number])
            for number, pool in sorted(snapshot.pools.items()) if pool.rule is not None
            for block in pool.rule.blocks
            if sum(sizes.get(number, ())) and not members.isdisjoint(block.weights)]


def _fixed_bytes(snapshot: Snapshot, osd_set: OsdSet) -> Dict[int, float]:
    """OSD → bytes on it that are of no shard."""
    fixed = {osd: float(snapshot.osds[osd].target_bytes) for osd in osd_set.osds}
    for pg in snapshot.pgs.values():
        for osd in pg.up:
            if osd in fixed:
                fixed[osd] -= pg.shard_bytes
    return {osd: max(0.0, left) for osd, left in fixed.items()}

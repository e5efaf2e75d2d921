"""Utilization of a placement per OSD set, free space per pool, and the most bytes of an OSD with a
lowered weight.

Peers of such an OSD are the OSDs that the same takes of rules may use. With S the sum of their used
bytes and C the sum of their capacities (size × share), all would be at the utilization S ÷ C of
their capacity if they were equally full.
"""
from __future__ import annotations

from collections import defaultdict
from math import inf, sqrt
from operator import truediv
from typing import Dict, FrozenSet, List, Mapping, Optional, Sequence, Set, Tuple

from ..runtime.time_slice import give_way, grouped, piecewise
from ..snapshot.model import Osd, Pool, Snapshot, pg_number
from ..snapshot.operator_weights import BY_CRUSH_WEIGHT
from .model import ClassUsage, PoolSpace, Room, Usage

#: Pool id → OSD id → shards, each with its `shard_weight`.
ShardCounts = Mapping[int, Mapping[int, float]]

#: By chance CRUSH may give an OSD up to so many standard deviations more shards than its weight
#: says. The OSD then gets a higher share, but at most _MOST_SHARE, so that it still counts as
#: lowered.
_CHANCE = 2.5
_MOST_SHARE = 0.99
#: A smaller sum of weights is a rounding error.
_NO_SHARD = 1e-9

#: Counted between two yields: a few milliseconds.
_PGS_A_PIECE = 200
_OSDS_A_PIECE = 1000


class _FreeBytes(Dict[int, float]):
    """OSD id → free bytes; an unknown OSD limits nothing."""

    def __missing__(self, osd: int) -> float:
        return inf


def shard_weight(pool: Pool, pgid: str) -> float:
    """Returns how much clients write to a PG, relative to the mean of its pool.

    That is 1 if pg_num is a power of two. Otherwise some PGs are not split yet, and get twice as
    much as the others (ceph_stable_mod in Ceph's include/ceph_hash.h).
    """
    pg_num = pool.pg_num
    whole = 1 << (pg_num - 1).bit_length()
    if whole == pg_num:
        return 1
    half = whole >> 1
    number = pg_number(pgid)
    parts = 1
    if number < half and number + half >= pg_num:   # not split yet
        parts = 2
    return parts * pg_num / whole


def shard_counts(snapshot: Snapshot) -> Dict[int, Dict[int, float]]:
    """Returns the shards of every pool, where the up sets of its PGs put them."""
    counts: Dict[int, Dict[int, float]] = {
        pool_id: defaultdict(int) for pool_id in snapshot.pools}
    is_even = {pool.id: not pool.pg_num & (pool.pg_num - 1) for pool in snapshot.pools.values()}
    for pg in piecewise(snapshot.pgs.values(), _PGS_A_PIECE):
        number = pg.pool
        osds = pg.up
        shards = counts[number]
        pool = snapshot.pools[number]
        weight = 1 if is_even[number] else shard_weight(pool, pg.pgid)
        for osd in osds:
            growth = _growth_on(pool, weight, osd, osds)
            if growth:   # a shard without data limits nothing
                shards[osd] += growth
    return counts


def counted_usage(snapshot: Snapshot, used_bytes: Mapping[int, int], counts: ShardCounts,
                  growth: Optional[Mapping[int, float]] = None,
                  classes: Optional[Mapping[str, ClassUsage]] = None) -> Usage:
    """Returns utilization and free space for used bytes per OSD id and the shards of each pool.

    `growth`, `classes`: `growth_bytes` of the shards and `class_usage` of the bytes, if the caller
    knows them already.
    """
    free = _FreeBytes({
        osd.id: max(0.0, osd.size_bytes * snapshot.full_ratio - used_bytes[osd.id])
        for osd in snapshot.osds.values() if osd.has_statistics})
    pools = {pool.name: _pool_space(pool, counts[pool.id], free)
             for pool in piecewise(sorted(snapshot.pools.values(), key=lambda p: p.id), 1)}
    if growth is None:
        growth = growth_bytes(snapshot, counts)
    give_way()
    if classes is None:
        classes = class_usage(snapshot, used_bytes)
    return Usage(dict(classes), pools, _room(snapshot, free, growth))


def _room(snapshot: Snapshot, free: Mapping[int, float], growth: Mapping[int, float]) -> Room:
    """Returns the bytes that fit if every pool grows by the same ratio: the first full OSD ends it.

    Each written byte counts on all OSDs that store it. So the result is at most the free bytes of
    all OSDs ÷ the smallest replication factor.
    """
    stored = sum([pool.stored_bytes for pool in snapshot.pools.values()])
    best = min([(free[osd] / rate, osd) for osd, rate in growth.items()
                if rate > 0.0 and osd in free], default=None)
    if best is None:
        return Room(0, None)
    return Room(int(best[0] * stored), best[1])


def recount(shards: Dict[int, float], pool: Pool, pgid: str, before: Sequence[int],
            after: Sequence[int]) -> None:
    """Counts a PG's shards at `after` in place of `before`. `shards`: OSD id → shards of its pool,
    from shard_counts."""
    weight = shard_weight(pool, pgid)
    for osds, sign in ((before, -1), (after, 1)):
        for osd in osds:
            shards[osd] = shards.get(osd, 0) + sign * _growth_on(pool, weight, osd, osds)
            if abs(shards[osd]) < _NO_SHARD:
                del shards[osd]


def _growth_on(pool: Pool, weight: float, osd: int, osds: Sequence[int]) -> float:
    """Returns how much clients write to the shard of a PG on an OSD, relative to the mean of the
    pool. `weight`: the same of the PG's mean shard."""
    if pool.is_uniform:
        return weight
    return weight * pool.ratio_on(osd, osds)


def class_usage(snapshot: Snapshot, used_bytes: Mapping[int, int],
                with_drained: bool = False) -> Dict[str, ClassUsage]:
    """Returns the utilization per OSD set, without OSDs that are out or have no statistics.

    The fullest OSD is one that is up, if any is: nothing can be moved off the others.
    `with_drained`: include OSDs being drained, as `ceph osd df` does. Predicted utilization
    excludes them, because they receive no data.
    """
    #: set → (utilization, OSD)
    members: Dict[str, List[Tuple[float, int]]] = defaultdict(list)
    for osd in piecewise(snapshot.osds.values(), _OSDS_A_PIECE):
        counts = osd.is_for_data or with_drained and osd.is_in
        if osd.has_statistics and counts:
            number = osd.id
            members[snapshot.set_of(number)].append(
                (used_bytes[number] / osd.size_bytes, number))
    usage: Dict[str, ClassUsage] = {}
    for name in sorted(members):
        give_way()
        usage[name] = _usage_of_set(snapshot, used_bytes, sorted(members[name]))
    return usage


def _usage_of_set(snapshot: Snapshot, used_bytes: Mapping[int, int],
                  ratios: List[Tuple[float, int]]) -> ClassUsage:
    """Returns the usage of a set. `ratios`: (utilization, OSD), sorted."""
    osds = snapshot.osds
    count = len(ratios)
    mean = sum([u for u, _ in ratios]) / count
    variance = sum([(u - mean) ** 2 for u, _ in ratios]) / count
    fullest = max([entry for entry in ratios if osds[entry[1]].up] or ratios)
    return ClassUsage(
        osds=count,
        size_bytes=sum([osds[number].device_size for _, number in ratios]),
        used_bytes=sum([osds[number].device_bytes(used_bytes[number]) for _, number in ratios]),
        max=fullest[0],
        min=ratios[0][0],
        mean=mean,
        stddev=variance ** 0.5,
        fullest_osd=fullest[1])


def _pool_space(pool: Pool, shards: Mapping[int, float], free: _FreeBytes) -> PoolSpace:
    """Returns the free space of a pool. Its shards grow equally, so the first full OSD is the
    limit.

    `shards`: per OSD id. `free`: bytes per OSD id.
    """
    # the fewest free bytes for each shard, and of equals the lowest id. Built-in functions are fast
    # enough for the many pairs of all pools
    least, osd = min(zip(map(truediv, map(free.__getitem__, shards), shards.values()), shards),
                     default=(inf, 0))
    if least == inf:
        return PoolSpace(pool.id, pool.stored_bytes, 0, None)
    free_bytes = int(free[osd] / (shards[osd] * (1.0 / pool.chunks)))
    return PoolSpace(pool.id, pool.stored_bytes, free_bytes, osd)


def growth_bytes(snapshot: Snapshot, counts: ShardCounts) -> Mapping[int, float]:
    """Returns OSD id → raw bytes that it gets if all pools double."""
    growth: Dict[int, float] = defaultdict(float)
    for pool in snapshot.pools.values():
        give_way()
        shard_bytes = pool.stored_bytes / pool.chunks
        for osd, count in counts[pool.id].items():
            growth[osd] += count * shard_bytes
    return growth


def share_utilizations(snapshot: Snapshot) -> Dict[int, float]:
    """Returns OSD with a lowered weight → the utilization of its peers, a ratio of capacity."""
    held = [osd.id for osd in snapshot.osds.values() if osd.share < 1.0]
    if not held:
        return {}
    takes = _takes_of(snapshot)
    wanted = {takes[number] for number in held if number in takes}
    used: Dict[FrozenSet[int], int] = dict.fromkeys(wanted, 0)
    capacity = dict(used)
    for number, known in takes.items():
        osd = snapshot.osds.get(number)
        if known not in wanted or osd is None or osd.unusable_reason() is not None:
            continue
        used[known] += max(0, osd.target_bytes - osd.spared_bytes)
        capacity[known] += osd.capacity_bytes
    levels = {known: used[known] / size for known, size in capacity.items() if size}
    return {number: levels[takes[number]] for number in held if takes.get(number) in levels}


def _takes_of(snapshot: Snapshot) -> Dict[int, FrozenSet[int]]:
    """Returns OSD → the buckets above it that the rules of pools take."""
    under: Dict[int, List[int]] = defaultdict(list)
    seen: Set[int] = set()
    for pool in snapshot.pools.values():
        for block in pool.blocks:
            take = block.take
            if take not in seen:
                seen.add(take)
                for number in block.weights:
                    under[number].append(take)
    return {number: frozenset(above) for number, above in under.items()}


def with_chance(snapshot: Snapshot) -> Snapshot:
    """Returns the snapshot with higher shares of the OSDs to which CRUSH has given more bytes than
    their weights say, by chance.

    CRUSH follows its weights itself. A share is raised only if it would gain nothing to move these
    bytes away: no OSD of full weight is more than a shard above the mean of the OSD's peers.
    """
    levels = share_utilizations(snapshot)
    if not levels:
        return snapshot
    whole = grouped((snapshot.set_of(osd.id), osd) for osd in snapshot.osds.values()
                    if osd.share >= 1.0 and osd.unusable_reason() is None)
    totals = {name: _totals(peers) for name, peers in whole.items()}
    raised: Dict[int, Osd] = {}
    for number, level in levels.items():
        osd = snapshot.osds[number]
        if not _has_more_by_chance(osd, level):
            continue
        highest, used, size = totals.get(snapshot.set_of(number), (inf, 0, 0))
        own = osd.target_bytes / osd.size_bytes
        if highest > level + own / osd.pg_shards:
            continue
        share = min(_MOST_SHARE, own * size / max(1, used))
        raised[number] = osd._replace(base_bytes=0, share=share)
    if not raised:
        return snapshot
    return snapshot._replace(osds={**snapshot.osds, **raised})


def _totals(osds: Sequence[Osd]) -> Tuple[float, int, int]:
    """Returns the highest utilization, the used bytes and the size of OSDs."""
    highest = max([osd.target_bytes / osd.size_bytes for osd in osds])
    used = sum([osd.target_bytes for osd in osds])
    return highest, used, sum([osd.size_bytes for osd in osds])


def _has_more_by_chance(osd: Osd, level: float) -> bool:
    """Returns True if an OSD is above its share by no more than chance explains. `level`: the
    utilization of its peers."""
    if osd.held_by != BY_CRUSH_WEIGHT or not osd.pg_shards:
        return False
    limit = level * osd.capacity_bytes + osd.spared_bytes
    shard = osd.target_bytes / osd.pg_shards
    return limit < osd.target_bytes <= limit + _CHANCE * sqrt(limit * shard)


def share_limits(snapshot: Snapshot) -> Dict[int, int]:
    """Returns OSD with a lowered weight → the used bytes that our moves must not exceed."""
    snapshot = with_chance(snapshot)
    limits: Dict[int, int] = {}
    for number, utilization in share_utilizations(snapshot).items():
        osd = snapshot.osds[number]
        limits[number] = int(utilization * osd.capacity_bytes) + osd.spared_bytes
    return limits


def share_limits_within(snapshot: Snapshot,
                        utilizations: Mapping[int, float]) -> Dict[int, int]:
    """Returns the `share_limits` of OSDs that have a given utilization (a ratio of size), at most
    the bytes of this."""
    limits: Dict[int, int] = {}
    for number, limit in share_limits(snapshot).items():
        if number in utilizations:
            most = int(utilizations[number] * snapshot.osds[number].size_bytes)
            limits[number] = min(limit, most)
    return limits


def bytes_beyond_share(snapshot: Snapshot) -> Dict[int, int]:
    """Returns OSD with a lowered weight → bytes above its limit when all in flight has arrived;
    only OSDs with such bytes."""
    found: Dict[int, int] = {}
    for number, limit in sorted(share_limits(snapshot).items()):
        more = snapshot.osds[number].target_bytes - limit
        if more > 0:
            found[number] = more
    return found

"""Utilization of a placement per OSD set, free space per pool, and the bytes that an OSD may
hold whose operator's weights hold it to a share of its size.

Peers of such an OSD are those that the same takes of rules may use. With S the sum of their used
bytes and C that of their capacities (size × share), all would be at the utilization S ÷ C of
their capacity if they were equally full.
"""
from __future__ import annotations

from collections import defaultdict
from math import inf, sqrt
from operator import truediv
from typing import Dict, FrozenSet, List, Mapping, Optional, Sequence

from ..runtime.time_slice import give_way, grouped, piecewise
from ..snapshot.model import Osd, Pool, Snapshot, pg_number
from ..snapshot.operator_weights import BY_CRUSH_WEIGHT
from .model import ClassUsage, PoolSpace, Room, Usage

#: Pool id → OSD id → shards, each counted by its `shard_weight`.
ShardCounts = Mapping[int, Mapping[int, float]]

#: Standard deviations by which CRUSH may give an OSD more shards than its weight says, and the
#: share that it has at most then: it is still held.
_CHANCE, _MOST_SHARE = 2.5, 0.99
#: What rounding may leave of a sum of weights.
_NO_SHARD = 1e-9

#: Counted before it gives way again: a few milliseconds.
_PGS_A_PIECE, _OSDS_A_PIECE = 200, 1000


class _FreeBytes(Dict[int, float]):
    """OSD id → free bytes; an OSD that is not known limits nothing."""

    def __missing__(self, osd: int) -> float:
        return inf


def shard_weight(pool: Pool, pgid: str) -> float:
    """What clients write to a PG, relative to the mean of its pool.

    1 where pg_num is a power of two. Else some PGs are still to be split, and get twice as much as
    those that have been (ceph_stable_mod in Ceph's include/ceph_hash.h).
    """
    whole = 1 << (pool.pg_num - 1).bit_length()
    if whole == pool.pg_num:
        return 1
    half, number = whole >> 1, pg_number(pgid)
    parts = 2 if number < half and number + half >= pool.pg_num else 1
    return parts * pool.pg_num / whole


def shard_counts(snapshot: Snapshot) -> Dict[int, Dict[int, float]]:
    """Counts the shards of every PG by its up set."""
    counts: Dict[int, Dict[int, float]] = {pool_id: {} for pool_id in snapshot.pools}
    is_even = {pool.id: not pool.pg_num & (pool.pg_num - 1) for pool in snapshot.pools.values()}
    for pg in piecewise(snapshot.pgs.values(), _PGS_A_PIECE):
        osds, shards, pool = pg.up, counts[pg.pool], snapshot.pools[pg.pool]
        weight = 1 if is_even[pg.pool] else shard_weight(pool, pg.pgid)
        for osd in osds:
            growth = _growth_on(pool, weight, osd, osds)
            if growth:   # a shard without data limits nothing
                shards[osd] = shards.get(osd, 0) + growth
    return counts


def counted_usage(snapshot: Snapshot, used_bytes: Mapping[int, int], counts: ShardCounts,
                  growth: Optional[Mapping[int, float]] = None,
                  classes: Optional[Mapping[str, ClassUsage]] = None) -> Usage:
    """Utilization and free space for used bytes per OSD id and the shards of each pool on it.
    `growth` and `classes`: `growth_bytes` of the shards and `class_usage` of the bytes, where they
    are known already."""
    free = _FreeBytes({
        osd.id: max(0.0, osd.size_bytes * snapshot.full_ratio - used_bytes[osd.id])
        for osd in snapshot.osds.values() if osd.has_statistics})
    pools = {pool.name: _pool_space(pool, counts[pool.id], free)
             for pool in piecewise(sorted(snapshot.pools.values(), key=lambda p: p.id), 1)}
    if growth is None:
        growth = growth_bytes(snapshot, counts)
    give_way()
    # what fits if every pool grows by the same ratio: the OSD that is full first ends it. Each
    # written byte is counted on all OSDs that it goes to, so this is never more than the free bytes
    # of all OSDs ÷ the smallest replication factor
    stored = sum(pool.stored_bytes for pool in snapshot.pools.values())
    best = min(((free[osd] / rate, osd) for osd, rate in growth.items()
                if rate > 0.0 and osd in free), default=None)
    room = Room(0, None) if best is None else Room(int(best[0] * stored), best[1])
    return Usage(dict(classes) if classes is not None
                 else class_usage(snapshot, used_bytes),
                 pools, room)


def recount(shards: Dict[int, float], pool: Pool, pgid: str, before: Sequence[int],
            after: Sequence[int]) -> None:
    """Counts a PG's shards at `after` in place of `before`. `shards`: of its pool, by OSD id, as
    shard_counts has them."""
    weight = shard_weight(pool, pgid)
    for osds, sign in ((before, -1), (after, 1)):
        for osd in osds:
            shards[osd] = shards.get(osd, 0) + sign * _growth_on(pool, weight, osd, osds)
            if abs(shards[osd]) < _NO_SHARD:
                del shards[osd]


def _growth_on(pool: Pool, weight: float, osd: int, osds: Sequence[int]) -> float:
    """What clients write to the shard of a PG on an OSD, of `weight` to its mean shard."""
    return weight if pool.is_uniform else weight * pool.ratio_on(osd, osds)


def class_usage(snapshot: Snapshot, used_bytes: Mapping[int, int],
                with_drained: bool = False) -> Dict[str, ClassUsage]:
    """Per OSD set; OSDs that are out or without statistics do not count. OSDs that are being
    drained do where the figures are of now (`with_drained`), as `ceph osd df` has them: what is
    to be is asked of those that take data. The fullest is one that is up, where any is: nothing
    can be moved off the others."""
    members = grouped(
        (snapshot.set_of(osd.id), (used_bytes[osd.id] / osd.size_bytes, osd.id))
        for osd in piecewise(snapshot.osds.values(), _OSDS_A_PIECE)
        if osd.has_statistics and (osd.is_for_data or with_drained and osd.is_in))
    usage: Dict[str, ClassUsage] = {}
    for name in sorted(members):
        ratios = sorted(members[name])
        mean = sum(u for u, _ in ratios) / len(ratios)
        variance = sum((u - mean) ** 2 for u, _ in ratios) / len(ratios)
        give_way()
        fullest = max([entry for entry in ratios if snapshot.osds[entry[1]].up] or ratios)
        usage[name] = ClassUsage(
            osds=len(ratios),
            size_bytes=sum(snapshot.osds[o].device_size for _, o in ratios),
            used_bytes=sum(snapshot.osds[o].device_bytes(used_bytes[o]) for _, o in ratios),
            max=fullest[0], min=ratios[0][0], mean=mean, stddev=variance ** 0.5,
            fullest_osd=fullest[1])
    return usage


def _pool_space(pool: Pool, shards: Mapping[int, float], free: _FreeBytes) -> PoolSpace:
    """Free space of a pool: its shards grow equally, and the OSD that is full first is the limit.

    `shards` is per OSD id, `free` bytes per OSD id.
    """
    # the fewest free bytes for each shard; of equals the lowest id. Built-in functions go over what
    # is many pairs for all pools
    least, osd = min(zip(map(truediv, map(free.__getitem__, shards), shards.values()), shards),
                     default=(inf, 0))
    limit = None if least == inf else osd
    per_shard = 1.0 / (pool.pg_num * pool.data_shards)
    return PoolSpace(pool_id=pool.id, stored_bytes=pool.stored_bytes,
                     free_bytes=(0 if limit is None
                                 else int(free[limit] / (shards[limit] * per_shard))),
                     limiting_osd=limit)


def growth_bytes(snapshot: Snapshot, counts: ShardCounts) -> Mapping[int, float]:
    """OSD id → raw bytes that come to it when all pools double."""
    growth: Dict[int, float] = defaultdict(float)
    for pool in snapshot.pools.values():
        give_way()
        shard_bytes = pool.stored_bytes / (pool.pg_num * pool.data_shards)
        for osd, count in counts[pool.id].items():
            growth[osd] += count * shard_bytes
    return growth


def share_utilizations(snapshot: Snapshot) -> Dict[int, float]:
    """Held OSD → the utilization of its peers, a ratio of capacity. Empty where no OSD is held."""
    held = [osd for osd in snapshot.osds.values() if osd.share < 1.0]
    if not held:
        return {}
    under: Dict[int, List[int]] = {}   # OSD → the buckets above it that pools' rules take
    seen = set()
    for pool in snapshot.pools.values():
        for block in pool.blocks:
            if block.take not in seen:
                seen.add(block.take)
                for number in block.weights:
                    under.setdefault(number, []).append(block.take)
    takes = {number: frozenset(above) for number, above in under.items()}
    wanted = {takes[osd.id] for osd in held if osd.id in takes}
    used: Dict[FrozenSet[int], int] = dict.fromkeys(wanted, 0)
    capacity: Dict[FrozenSet[int], int] = dict.fromkeys(wanted, 0)
    for number, known in takes.items():
        osd = snapshot.osds.get(number)
        if known in wanted and osd is not None and osd.unusable_reason() is None:
            used[known] += max(0, osd.target_bytes - osd.spared_bytes)
            capacity[known] += osd.capacity_bytes
    return {osd.id: used[takes[osd.id]] / capacity[takes[osd.id]] for osd in held
            if osd.id in takes and capacity[takes[osd.id]]}


def with_chance(snapshot: Snapshot) -> Snapshot:
    """The same cluster, OSDs held to what they have where chance has given them more than their
    CRUSH weight says. CRUSH follows its weights by itself: where no other OSD is fuller by a
    shard than it would be without that, nothing is won."""
    raised: Dict[int, Osd] = {}
    levels = share_utilizations(snapshot)
    whole = grouped((snapshot.set_of(osd.id), osd) for osd in snapshot.osds.values()
                    if levels and osd.share >= 1.0 and osd.unusable_reason() is None)
    totals = {name: (max(osd.target_bytes / osd.size_bytes for osd in osds),
                     sum(osd.target_bytes for osd in osds), sum(osd.size_bytes for osd in osds))
              for name, osds in whole.items()}
    for number, level in levels.items():
        osd = snapshot.osds[number]
        if osd.held_by != BY_CRUSH_WEIGHT or not osd.pg_shards:
            continue
        limit = level * osd.capacity_bytes + osd.spared_bytes
        shard = osd.target_bytes / osd.pg_shards
        if not limit < osd.target_bytes <= limit + _CHANCE * sqrt(limit * shard):
            continue
        highest, used, size = totals.get(snapshot.set_of(number), (inf, 0, 0))
        if highest <= level + shard / osd.size_bytes:
            own = osd.target_bytes / osd.size_bytes
            share = min(_MOST_SHARE, own * size / max(1, used))
            raised[number] = osd._replace(base_bytes=0, share=share)
    return snapshot._replace(osds={**snapshot.osds, **raised}) if raised else snapshot


def share_limits(snapshot: Snapshot) -> Dict[int, int]:
    """Held OSD → used bytes that no move of ours may take it beyond."""
    snapshot = with_chance(snapshot)
    return {number: int(utilization * snapshot.osds[number].capacity_bytes)
            + snapshot.osds[number].spared_bytes
            for number, utilization in share_utilizations(snapshot).items()}


def share_limits_within(snapshot: Snapshot,
                        utilizations: Mapping[int, float]) -> Dict[int, int]:
    """Held OSD → the limit of `share_limits`, at most what the given utilizations (ratios of sizes)
    come to."""
    return {number: min(limit, int(utilizations[number] * snapshot.osds[number].size_bytes))
            for number, limit in share_limits(snapshot).items() if number in utilizations}


def bytes_beyond_share(snapshot: Snapshot) -> Dict[int, int]:
    """Held OSD → bytes beyond its limit once all in flight has arrived; only those with some."""
    return {number: snapshot.osds[number].target_bytes - limit
            for number, limit in sorted(share_limits(snapshot).items())
            if snapshot.osds[number].target_bytes > limit}

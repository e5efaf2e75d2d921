"""The bytes that pools have to place, and the OSDs where their rules let them.

A pool's bytes on an OSD are a free number if the sums keep its rule. T is the sum of one shard of
each PG of the pool. If the rule lets a bucket have at most m shards of one PG, the pool may have at
most m · T bytes there, and on one OSD at most T. Splitting every PG separately would allow no
more: each PG can have the proportions of its pool.

PGs that cannot be moved at the moment count as movable. The bounds of utilization leave two kinds
of shards on their OSDs: those on OSDs where the pool's rule places none, and the few bytes that any
of several OSD sets may hold (snapshot/osds.py). A cut that proves a bound lets them leave. Shards
on drained OSDs have to be placed on the others, as far as the failure domains allow.

The proof of a bound is a cut: a set of OSDs, the bytes on them, and how many of these can leave.

Each PG of a pool can have only so many shards outside the set; the others are always inside. So the
set holds at least its present bytes less those that can leave it:

    highest utilization of the set  ≥  (used − can leave) ÷ size
    growth of a position of a pool  ≤  (full − used + can leave) ÷ shards of a PG that are kept

Both can be checked without this module, by arithmetic on the state of the cluster.
"""
from __future__ import annotations

from collections import Counter, defaultdict
from copy import copy
from itertools import chain
from math import ceil
from typing import Dict, FrozenSet, Iterable, List, Mapping, NamedTuple, Sequence, Tuple

from ...crush.placement import NO_OSD, PlacementBlock
from ...plan.usage import shard_weight
from ...runtime.time_slice import give_way, piecewise
from ...snapshot.model import Pg, Pool, Snapshot


#: Items before it gives way again: a few milliseconds at most.
_PGS_AT_ONCE = 500
OSDS_AT_ONCE = 1000


class Reach:
    """The OSDs that may hold what a take block places, and the failure domains that bind there."""

    def __init__(self, block: PlacementBlock, osds: FrozenSet[int],
                 set_names: FrozenSet[str]) -> None:
        self.block = block
        self.osds = osds
        #: name of the OSD set with all of the OSDs; None if the few bytes under this take do not
        #: join the several sets that it reaches
        self.set_name = min(set_names) if len(set_names) == 1 else None
        #: without domains where one bucket may hold all shards of a PG
        self.domains = [d for d in block.domains if d.shards_per_bucket < block.positions]
        #: OSD → the buckets that keep shards apart, from the outermost to the OSD's own
        self.paths: Dict[int, Tuple[int, ...]] = {
            osd: tuple([domain.bucket_of[osd] for domain in self.domains]) for osd in osds}
        #: (CRUSH type, most shards of a PG in one such bucket)
        self.limits = tuple([(d.type_name, d.shards_per_bucket) for d in self.domains])
        self.most = self.most_shards(osds)   # shards of one PG that the OSDs can have together

    def most_shards(self, osds: Iterable[int]) -> int:
        """Returns how many shards of one PG some of the OSDs can have together.

        Each OSD can have one, and a bucket as many as its domain allows.
        """
        counts: Dict[Tuple[int, ...], int] = Counter(map(self.paths.__getitem__, osds))
        for domain in reversed(self.domains):
            above: Dict[Tuple[int, ...], int] = defaultdict(int)
            for path, count in counts.items():
                above[path[:-1]] += min(count, domain.shards_per_bucket)
            counts = above
        return counts[()]

    def shape(self, placed: float, single: float) -> Tuple[object, ...]:
        """Returns a key that is equal for pools that one demand can stand for.

        Shards that must stay lower `placed / single`. Rounding it is safe: the sum of several pools
        only relaxes their limits.
        """
        return self.block.take, self.block.positions, self.limits, round(placed / single, 1)


class Demand:
    """The bytes of pools of one rule and size under one take."""

    all_bytes = 0      # of all shards
    single_bytes = 0   # of one shard of each PG: T

    def __init__(self, reach: Reach, shape: Tuple[object, ...]) -> None:
        self.reach = reach
        self.shape = shape           # the same for all pools in it
        self.pools: List[int] = []

    def with_bytes(self, all_bytes: int, single_bytes: int) -> Demand:
        """Returns a copy of the demand with other bytes."""
        other = copy(self)
        other.all_bytes = all_bytes
        other.single_bytes = single_bytes
        return other

    def osd_limit_counts(self) -> bool:
        """Returns True if an OSD could have more than T while its bucket keeps its own limit."""
        return self.all_bytes > self.single_bytes and (
            not self.reach.domains or self.reach.domains[-1].shards_per_bucket > 1)


class PoolDemand:
    """The part of one pool in a demand, with or without bytes."""

    all_bytes = 0
    single_bytes = 0
    all_shards = 0
    all_weight = 0.0      # of all shards, each with its shard_weight
    single_weight = 0.0   # of one shard of each PG

    def __init__(self, pool: int, reach: Reach) -> None:
        self.pool = pool
        self.reach = reach

    def growth_shape(self) -> Tuple[object, ...]:
        """Returns the shape of the bytes that clients write to the pool."""
        return self.reach.shape(self.all_weight, self.single_weight)


class MovableBytes(NamedTuple):
    """Bytes that can be moved, and the OSDs that have them."""

    demands: List[Demand]     # those with bytes, in an order that depends on the cluster only
    on_osd: Counter[int]      # usable OSD → bytes on it that belong to a demand
    pools: Dict[int, List[PoolDemand]]   # pool id, in order → its parts, one for each take
    #: usable OSD → bytes on it of pools whose rule places none there, and of parts without a set
    outside: Counter[int]

    def parts(self) -> List[PoolDemand]:
        """Returns the parts of all pools, by pool id."""
        return list(chain.from_iterable(self.pools.values()))


def movable_bytes(snapshot: Snapshot, fixed_pools: FrozenSet[int]) -> MovableBytes:
    """Returns the demands of all pools except fixed ones and those whose rule is not understood."""
    usable = frozenset(
        osd.id for osd in piecewise(snapshot.osds.values(), OSDS_AT_ONCE)
        if osd.unusable_reason() is None)
    pools = _empty_parts(snapshot, fixed_pools, usable)
    movable = MovableBytes([], Counter(dict.fromkeys(sorted(usable), 0)), pools, Counter())
    drained = snapshot.drained_osds
    # PGs of a pool weigh the same if pg_num is a power of two
    split = {pool.id for pool in snapshot.pools.values() if pool.pg_num & (pool.pg_num - 1)}
    for pg in piecewise(snapshot.pgs.values(), _PGS_AT_ONCE):
        pool = snapshot.pools[pg.pool]
        weight = shard_weight(pool, pg.pgid) if pool.id in split else 1.0
        for part in pools.get(pool.id, ()):
            _add_pg(movable, part, pg, pool, weight, drained)
    movable.demands.extend(_merged(movable.parts()))
    return movable


def _empty_parts(snapshot: Snapshot, fixed_pools: FrozenSet[int],
                 usable: FrozenSet[int]) -> Dict[int, List[PoolDemand]]:
    """Returns pool id → its parts without bytes, in the order of the pools' ids."""
    reaches: Dict[PlacementBlock, Reach] = {}
    parts: Dict[int, List[PoolDemand]] = defaultdict(list)
    for number, pool in sorted(snapshot.pools.items()):
        if number in fixed_pools:
            continue
        for block in pool.blocks:
            if block not in reaches:
                give_way()
                osds = usable & block.osds
                reaches[block] = Reach(block, osds, frozenset(map(snapshot.set_of, osds)))
            parts[number].append(PoolDemand(number, reaches[block]))
    return parts


def _add_pg(movable: MovableBytes, part: PoolDemand, pg: Pg, pool: Pool, weight: float,
            drained: FrozenSet[int]) -> None:
    """Adds the shards that a PG has under the take of a part."""
    reach = part.reach
    outside = movable.outside
    on_osd = movable.on_osd
    counted = outside if reach.set_name is None else on_osd
    members = reach.block.members(pg.up)
    placed = placed_bytes = 0
    placed_ratio = 0.0
    size = most = pg.shard_bytes
    ratio = highest = 1.0
    is_uniform = pool.is_uniform
    for osd in members:
        if not is_uniform:   # limits use the largest shard: that relaxes them
            size = pool.bytes_on(pg.shard_bytes, osd, pg.up)
            ratio = pool.ratio_on(osd, pg.up)
            most = max(most, size)
            highest = max(highest, ratio)
        if osd in reach.osds:
            counted[osd] += size
            placed += 1
            placed_bytes += size
            placed_ratio += ratio
        elif osd in on_osd:
            outside[osd] += size
    if not drained.isdisjoint(members):
        leaving = sum([osd in drained for osd in members])
        more = max(0, min(leaving, reach.most - placed))
        placed += more
        placed_bytes += more * pg.shard_bytes
        placed_ratio += more
    excess = 1 if pg.immovable is None else _rule_excess(reach.block, members)
    part.all_bytes += placed_bytes
    part.single_bytes += excess * most
    part.all_shards += placed
    part.all_weight += placed_ratio * weight
    part.single_weight += excess * weight * highest


def _merged(parts: Iterable[PoolDemand]) -> List[Demand]:
    """Returns one demand for all parts of one shape; parts without bytes or a set have none."""
    merged: Dict[Tuple[object, ...], Demand] = {}
    for part in parts:
        if part.all_bytes > 0 and part.reach.set_name is not None:
            shape = part.reach.shape(part.all_bytes, part.single_bytes)
            if shape not in merged:
                merged[shape] = Demand(part.reach, shape)
            one = merged[shape]
            one.pools.append(part.pool)
            one.all_bytes += part.all_bytes
            one.single_bytes += part.single_bytes
    return list(merged.values())


def _rule_excess(block: PlacementBlock, members: Sequence[int]) -> int:
    """Returns the factor by which a bucket or an OSD has more shards than the rule allows, or 1.

    A PG that breaks its rule raises the limits by this factor, so that its present placement is
    within them.
    """
    worst = max([1, *[members.count(osd) for osd in set(members) if osd != NO_OSD]])
    for domain in block.domains:
        counts = Counter([domain.bucket_of[osd] for osd in members if osd in domain.bucket_of])
        for count in counts.values():
            worst = max(worst, ceil(count / domain.shards_per_bucket))
    return worst


class KeptBytes(NamedTuple):
    """The bytes of a pool, under one take, that cannot leave a cut."""

    pool: int
    take: str
    shards: int                            # of each PG under the take
    limits: Tuple[Tuple[str, int], ...]    # (CRUSH type, most shards of a PG in one such bucket)
    most_elsewhere: int                    # shards of a PG that OSDs outside the cut can have
    kept_bytes: int                        # of all shards except most_elsewhere of each PG


class Cut(NamedTuple):
    """Sums over a set of OSDs, which prove a bound."""

    osds: Tuple[int, ...]
    size_bytes: int
    used_bytes: int         # when everything in flight has arrived
    full_bytes: int         # at full_ratio, or used bytes if they are more
    can_leave_bytes: int    # shards with a legal place elsewhere, even if it cannot hold them all
    kept: Tuple[KeptBytes, ...]

    @property
    def least_utilization(self) -> float:
        """Returns a ratio; no placement has a lower highest utilization on these OSDs."""
        return (self.used_bytes - self.can_leave_bytes) / self.size_bytes


def full_bytes(snapshot: Snapshot, osd: int) -> int:
    """Returns the most bytes that an OSD can hold: those at full_ratio, or those on it now."""
    entry = snapshot.osds[osd]
    return max(int(entry.size_bytes * snapshot.full_ratio) + 1, entry.target_bytes)


def cuts_of(snapshot: Snapshot, movable: MovableBytes,
            sets: Iterable[FrozenSet[int]]) -> Dict[FrozenSet[int], Cut]:
    """Returns each set of OSDs → its sums."""
    cuts: Dict[FrozenSet[int], Cut] = {}
    for osds in piecewise(dict.fromkeys(sets), 1):
        kept = _kept_bytes(snapshot, movable, osds)
        size = used = full = there = 0
        for osd in piecewise(osds, OSDS_AT_ONCE):
            entry = snapshot.osds[osd]
            size += entry.size_bytes
            used += entry.target_bytes
            full += full_bytes(snapshot, osd)
            there += movable.on_osd[osd] + movable.outside[osd]
        can_leave = there - sum([one.kept_bytes for one in kept])
        cuts[osds] = Cut(tuple(sorted(osds)), size, used, full, can_leave, tuple(kept))
    return cuts


def _kept_bytes(snapshot: Snapshot, movable: MovableBytes,
                osds: FrozenSet[int]) -> List[KeptBytes]:
    """Returns the bytes of each pool that cannot leave the OSDs."""
    elsewhere: Dict[Reach, int] = {}   # → most_elsewhere
    kept: List[KeptBytes] = []
    for part in piecewise(movable.parts(), 10):
        reach = part.reach
        if reach not in elsewhere:
            give_way()
            elsewhere[reach] = reach.most_shards(reach.osds - osds)
        most = elsewhere[reach]
        kept_bytes = part.all_bytes - most * part.single_bytes
        if kept_bytes > 0:
            take = snapshot.crush.name_of(reach.block.take)
            kept.append(KeptBytes(
                part.pool, take, reach.block.positions, reach.limits, most, kept_bytes))
    return kept


def least_moved_bytes(used: Mapping[int, int], sizes: Mapping[int, int], highest: float) -> int:
    """Returns the bytes that have to leave OSDs so that none is above the utilization `highest`.

    A larger set of OSDs proves no more: free space of one OSD does not reduce the excess of
    another.
    """
    return sum([max(0, int(used[osd] - highest * size)) for osd, size in sizes.items()])

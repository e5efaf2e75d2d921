"""The bytes that pools have to place, and the OSDs where their rules let them.

A pool's bytes on an OSD are a free number as long as the sums keep its rule: where the rule lets a
bucket have at most m shards of one PG, the pool may have at most m · T bytes there, with T the sum
of one shard of each PG; on one OSD at most T. Nothing is lost against splitting every PG by itself:
each PG can be given the proportions of its pool.

PGs that cannot be moved at the moment count as movable. Shards on OSDs where the pool's rule places
none, and the few bytes that any of several OSD sets may hold (snapshot/osds.py), stay where they
are in the bounds of utilization; what proves a bound lets them leave. Shards
on OSDs that are being drained have to be placed on the others, as far as the failure domains let
them.

What proves a bound: a set of OSDs, what is on them, and how much of that can be elsewhere.

Each PG of a pool can have only so many shards outside the set; the others are inside, wherever they
are put. So the set holds at least what it holds now less what can leave it:

    highest utilization of the set  ≥  (used − can leave) ÷ size
    growth of a position of a pool  ≤  (full − used + can leave) ÷ shards of a PG that are kept

With a reading of the cluster both can be checked without this module, by arithmetic.
"""
from __future__ import annotations

from collections import Counter
from copy import copy
from typing import Dict, FrozenSet, Iterable, List, Mapping, NamedTuple, Sequence, Tuple

from ...crush.placement import NO_OSD, PlacementBlock
from ...plan.usage import shard_weight
from ...runtime.time_slice import give_way, piecewise
from ...snapshot.model import Snapshot


#: Items before it gives way again: a few milliseconds at most.
_PGS_AT_ONCE = 500
OSDS_AT_ONCE = 1000


class Reach:
    """The OSDs that may hold what a take block places, and the failure domains that bind there."""

    def __init__(self, block: PlacementBlock, osds: FrozenSet[int],
                 set_names: FrozenSet[str]) -> None:
        self.block = block
        self.osds = osds
        #: name of the OSD set that has them all; None where it takes so little of several that they
        #: are not tied by it
        self.set_name = min(set_names) if len(set_names) == 1 else None
        #: without those where one bucket may hold all of its shards
        self.domains = [d for d in block.domains if d.shards_per_bucket < block.positions]
        #: OSD → the buckets that keep shards apart, from the outermost to the OSD's own
        self.paths: Dict[int, Tuple[int, ...]] = {
            osd: tuple([domain.bucket_of[osd] for domain in self.domains]) for osd in osds}
        #: (CRUSH type, most shards of a PG in one such bucket)
        self.limits = tuple([(d.type_name, d.shards_per_bucket) for d in self.domains])
        self.most = self.most_shards(osds)   # shards of one PG that the OSDs can have together

    def most_shards(self, osds: Iterable[int]) -> int:
        """Shards of one PG that some of the OSDs can have together: one each, and no more under a
        bucket than the domains allow."""
        counts: Dict[Tuple[int, ...], int] = Counter(map(self.paths.__getitem__, osds))
        for domain in reversed(self.domains):
            above: Dict[Tuple[int, ...], int] = {}
            for path, count in counts.items():
                parent = path[:-1]
                above[parent] = above.get(parent, 0) + min(count, domain.shards_per_bucket)
            counts = above
        return counts.get((), 0)

    def shape(self, placed: float, single: float) -> Tuple[object, ...]:
        """Equal for pools that one demand can stand for. Shards that must stay lower the ratio:
        rounding it is safe, as adding up only relaxes."""
        return self.block.take, self.block.positions, self.limits, round(placed / single, 1)


class Demand:
    """Bytes that pools of one rule and size have under one take."""

    def __init__(self, reach: Reach, shape: Tuple[object, ...]) -> None:
        self.reach = reach
        self.shape = shape           # equal for pools that it can stand for
        self.pools: List[int] = []
        self.all_bytes = 0           # of all shards: what has to be placed
        self.single_bytes = 0        # of one shard of each PG: T

    def with_bytes(self, all_bytes: int, single_bytes: int) -> Demand:
        """The same demand of so many bytes."""
        other = copy(self)
        other.all_bytes, other.single_bytes = all_bytes, single_bytes
        return other

    def osd_limit_counts(self) -> bool:
        """True if an OSD could be given more than T while its bucket keeps its own limit."""
        return self.all_bytes > self.single_bytes and (
            not self.reach.domains or self.reach.domains[-1].shards_per_bucket > 1)


class PoolDemand:
    """The part of one pool in a demand; it may be without bytes."""

    def __init__(self, pool: int, reach: Reach) -> None:
        self.pool = pool
        self.reach = reach
        self.all_bytes = 0
        self.single_bytes = 0
        self.all_shards = 0        # as all_bytes, in shards
        self.all_weight = 0.0      # as all_shards, each counted by its shard_weight
        self.single_weight = 0.0

    def growth_shape(self) -> Tuple[object, ...]:
        """The shape of the bytes that clients write to the pool."""
        return self.reach.shape(self.all_weight, self.single_weight)


class MovableBytes(NamedTuple):
    """Bytes that can be moved, and where they are."""

    demands: List[Demand]     # those with bytes, in an order that depends on the cluster only
    on_osd: Dict[int, int]    # usable OSD → bytes on it that belong to a demand
    pools: Dict[int, List[PoolDemand]]   # pool id → its parts, one for each take
    #: usable OSD → bytes on it where the pool's rule places none, or few that any set may hold
    outside: Dict[int, int]


def movable_bytes(snapshot: Snapshot, fixed_pools: FrozenSet[int]) -> MovableBytes:
    """The demands of all pools except the fixed ones and those whose rule is not understood."""
    usable = frozenset(
        osd.id for osd in piecewise(snapshot.osds.values(), OSDS_AT_ONCE)
        if osd.unusable_reason() is None)
    drained = snapshot.drained_osds
    reaches: Dict[PlacementBlock, Reach] = {}
    demands: Dict[int, List[PoolDemand]] = {}   # pool → one for each take, without bytes yet
    for pool in snapshot.pools.values():
        for block in () if pool.id in fixed_pools else pool.blocks:
            if block not in reaches:
                give_way()
                reaches[block] = Reach(block, usable & block.osds, frozenset(
                    map(snapshot.set_of, usable & block.osds)))
            demands.setdefault(pool.id, []).append(PoolDemand(pool.id, reaches[block]))
    split = {pool.id for pool in snapshot.pools.values() if pool.pg_num & (pool.pg_num - 1)}
    on_osd = dict.fromkeys(sorted(usable), 0)
    outside: Dict[int, int] = {}
    for pg in piecewise(snapshot.pgs.values(), _PGS_AT_ONCE):
        pool, up = snapshot.pools[pg.pool], pg.up
        weight = 1.0 if pool.id not in split else shard_weight(pool, pg.pgid)
        uniform = pool.is_uniform
        for demand in demands.get(pool.id, ()):
            block, osds = demand.reach.block, demand.reach.osds
            counted = on_osd if demand.reach.set_name is not None else outside
            members = block.members(up)
            placed = placed_bytes = 0
            placed_ratio = 0.0
            size = most = pg.shard_bytes
            ratio = highest = 1.0
            for osd in members:
                if not uniform:   # the largest shard counts where one is a limit: that relaxes it
                    size, ratio = pool.bytes_on(pg.shard_bytes, osd, up), pool.ratio_on(osd, up)
                    most = max(most, size)
                    highest = max(highest, ratio)
                if osd in osds:
                    counted[osd] = counted.get(osd, 0) + size
                    placed += 1
                    placed_bytes += size
                    placed_ratio += ratio
                elif osd in on_osd:
                    outside[osd] = outside.get(osd, 0) + size
            if drained and not drained.isdisjoint(members):
                more = max(0, min(sum(osd in drained for osd in members),
                                  demand.reach.most - placed))
                placed += more
                placed_bytes += more * pg.shard_bytes
                placed_ratio += more
            excess = 1 if pg.immovable is None else _rule_excess(block, members)
            demand.all_bytes += placed_bytes
            demand.single_bytes += excess * most
            demand.all_shards += placed
            demand.all_weight += placed_ratio * weight
            demand.single_weight += excess * weight * highest
    merged: Dict[Tuple[object, ...], Demand] = {}
    for part in [part for number in sorted(demands) for part in demands[number]]:
        if part.all_bytes > 0 and part.reach.set_name is not None:
            shape = part.reach.shape(part.all_bytes, part.single_bytes)
            if shape not in merged:
                merged[shape] = Demand(part.reach, shape)
            one = merged[shape]
            one.pools.append(part.pool)
            one.all_bytes += part.all_bytes
            one.single_bytes += part.single_bytes
    return MovableBytes(list(merged.values()), on_osd, demands, outside)


def _rule_excess(block: PlacementBlock, members: Sequence[int]) -> int:
    """The factor by which a bucket or an OSD has more shards than the rule allows; 1 for legal up
    sets.

    A PG that breaks its rule raises the limits by as much, so that the present placement is within
    them.
    """
    worst = max([1, *[members.count(osd) for osd in set(members) if osd != NO_OSD]])
    for domain in block.domains:
        counts: Dict[int, int] = {}
        for osd in members:
            if osd in domain.bucket_of:
                bucket = domain.bucket_of[osd]
                counts[bucket] = counts.get(bucket, 0) + 1
                worst = max(worst, -(-counts[bucket] // domain.shards_per_bucket))
    return worst


class KeptBytes(NamedTuple):
    """Why bytes of a pool, of the shards under one take, cannot leave a cut."""

    pool: int
    take: str
    shards: int                            # of each PG under the take
    limits: Tuple[Tuple[str, int], ...]    # (CRUSH type, most shards of a PG in one such bucket)
    most_elsewhere: int                    # shards of a PG that OSDs outside the cut can have
    kept_bytes: int                        # of all shards, less most_elsewhere of each PG


class Cut(NamedTuple):
    """Sums over the OSDs of a set."""

    osds: Tuple[int, ...]
    size_bytes: int
    used_bytes: int         # when everything in flight has arrived
    full_bytes: int         # at full_ratio, or used where that is more
    can_leave_bytes: int    # shards on them that have a legal place elsewhere, all at once or not
    kept: Tuple[KeptBytes, ...]

    @property
    def least_utilization(self) -> float:
        """No placement has a lower maximum on these OSDs, a ratio."""
        return (self.used_bytes - self.can_leave_bytes) / self.size_bytes


def full_bytes(snapshot: Snapshot, osd: int) -> int:
    """Bytes that an OSD holds at most: up to full_ratio, or what is on it now."""
    entry = snapshot.osds[osd]
    return max(int(entry.size_bytes * snapshot.full_ratio) + 1, entry.target_bytes)


def cuts_of(snapshot: Snapshot, movable: MovableBytes,
            sets: Iterable[FrozenSet[int]]) -> Dict[FrozenSet[int], Cut]:
    """The sums of each set of OSDs."""
    cuts: Dict[FrozenSet[int], Cut] = {}
    for osds in piecewise(dict.fromkeys(sets), 1):
        elsewhere: Dict[Reach, int] = {}   # → most_elsewhere
        kept: List[KeptBytes] = []
        for _, parts in piecewise(sorted(movable.pools.items()), 10):
            for part in parts:
                reach = part.reach
                if reach not in elsewhere:
                    give_way()
                    elsewhere[reach] = reach.most_shards(reach.osds - osds)
                most, take = elsewhere[reach], reach.block.take
                kept_bytes = part.all_bytes - most * part.single_bytes
                if kept_bytes > 0:
                    kept.append(KeptBytes(
                        part.pool, snapshot.crush.name_of(take), reach.block.positions,
                        reach.limits, most, kept_bytes))
        size = used = full = there = 0
        for osd in piecewise(osds, OSDS_AT_ONCE):
            size += snapshot.osds[osd].size_bytes
            used += snapshot.osds[osd].target_bytes
            full += full_bytes(snapshot, osd)
            there += movable.on_osd.get(osd, 0) + movable.outside.get(osd, 0)
        cuts[osds] = Cut(tuple(sorted(osds)), size, used, full,
                         there - sum([entry.kept_bytes for entry in kept]), tuple(kept))
    return cuts


def least_moved_bytes(used: Mapping[int, int], sizes: Mapping[int, int], highest: float) -> int:
    """Bytes that have to leave OSDs so that none is above the utilization `highest`.

    No larger set of OSDs proves more: what one of them is below it cannot count for another.
    """
    return sum([max(0, int(used[osd] - highest * size)) for osd, size in sizes.items()])

"""The bytes that pools have to place, and the OSDs where their rules let them.

A pool's bytes on an OSD are a free number as long as the sums keep its rule: where the rule lets a
bucket have at most m shards of one PG, the pool may have at most m · T bytes there, with T the sum
of one shard of each PG; on one OSD at most T. Nothing is lost against splitting every PG by itself:
each PG can be given the proportions of its pool.

PGs that cannot be moved at the moment count as movable. Shards on OSDs where the pool's rule places
none stay where they are in the bounds of utilization; what proves a bound lets them leave. Shards
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

from copy import copy
from typing import Dict, FrozenSet, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ...crush.placement import NO_OSD, FailureDomain, PlacementBlock
from ...plan.usage import shard_weight
from ...runtime.time_slice import give_way, piecewise
from ...snapshot.model import Snapshot


#: Items before it gives way again: a few milliseconds at most.
_PGS_AT_ONCE = 500
OSDS_AT_ONCE = 1000


class Demand:
    """Bytes that pools of one rule and size have under one take."""

    def __init__(self, block: PlacementBlock, osds: FrozenSet[int],
                 shape: Tuple[object, ...] = ()) -> None:
        self.take = block.take
        self.domains = binding_domains(block)
        self.osds = osds             # those that may hold them
        self.shape = shape           # equal for pools that it can stand for
        self.pools: List[int] = []
        self.all_bytes = 0           # of all shards: what has to be placed
        self.single_bytes = 0        # of one shard of each PG: T
        #: OSD → the buckets that keep shards apart, from the outermost to the OSD's own
        self.paths: Dict[int, Tuple[int, ...]] = {
            osd: tuple([domain.bucket_of[osd] for domain in self.domains]) for osd in osds}

    def with_bytes(self, all_bytes: int, single_bytes: int) -> Demand:
        """The same demand of so many bytes."""
        other = copy(self)
        other.all_bytes, other.single_bytes = all_bytes, single_bytes
        return other

    def most_shards(self, osds: Iterable[int]) -> int:
        """Shards of one PG that these of its OSDs can have together."""
        return most_shards(self.domains, map(self.paths.__getitem__, osds))

    def osd_limit_counts(self) -> bool:
        """True if an OSD could be given more than T while its bucket keeps its own limit."""
        if self.all_bytes <= self.single_bytes:
            return False
        return not self.domains or self.domains[-1].shards_per_bucket > 1


class PoolDemand:
    """The part of one pool in a demand; it may be without bytes."""

    def __init__(self, pool: int, block: PlacementBlock, osds: FrozenSet[int]) -> None:
        self.pool = pool
        self.block = block
        self.osds = osds
        self.all_bytes = 0
        self.single_bytes = 0
        self.all_shards = 0        # as all_bytes, in shards
        self.single_shards = 0
        self.all_weight = 0.0      # as all_shards, each counted by its shard_weight
        self.single_weight = 0.0
        self.least_bytes = 0       # of its smallest shard
        self._most_shards: Optional[int] = None

    def most_shards(self) -> int:
        """Shards of one PG that its OSDs can have together."""
        if self._most_shards is None:
            domains = binding_domains(self.block)
            self._most_shards = most_shards(domains, (
                tuple([domain.bucket_of[osd] for domain in domains]) for osd in self.osds))
        return self._most_shards

    def shape(self) -> Tuple[object, ...]:
        """As Demand.shape."""
        return (*_rule_shape(self.block), _ratio(self.all_bytes, self.single_bytes))

    def growth_shape(self) -> Tuple[object, ...]:
        """The shape of the bytes that clients write to the pool."""
        return (*_rule_shape(self.block), _ratio(self.all_weight, self.single_weight))


def _rule_shape(block: PlacementBlock) -> Tuple[object, ...]:
    return (block.take, block.positions,
            tuple((d.type_name, d.shards_per_bucket) for d in binding_domains(block)))


def _ratio(placed: float, single: float) -> float:
    """Shards that must stay lower the ratio. Rounding it is safe: adding up only relaxes."""
    return round(placed / single, 1)


class MovableBytes(NamedTuple):
    """Bytes that can be moved, and where they are."""

    demands: List[Demand]     # those with bytes, in an order that depends on the cluster only
    on_osd: Dict[int, int]    # usable OSD → bytes on it that belong to a demand
    pools: Dict[int, List[PoolDemand]]   # pool id → its parts, one for each take
    outside: Dict[int, int]   # usable OSD → bytes on it where the pool's rule places none


def most_shards(domains: Sequence[FailureDomain], paths: Iterable[Tuple[int, ...]]) -> int:
    """Shards of one PG that OSDs with these paths can have together: one each, and no more under a
    bucket than the domains (outermost first) allow."""
    counts: Dict[Tuple[int, ...], int] = {}
    for path in paths:
        counts[path] = counts.get(path, 0) + 1
    return int(most_placed(domains, counts, 1))


def most_placed(domains: Sequence[FailureDomain], counts: Mapping[Tuple[int, ...], float],
                pgs: int) -> float:
    """Shards of so many PGs that OSDs can have which alone could have `counts`, by their paths."""
    for domain in reversed(domains):
        above: Dict[Tuple[int, ...], float] = {}
        for path, count in counts.items():
            parent = path[:-1]
            above[parent] = above.get(parent, 0) + min(count, domain.shards_per_bucket * pgs)
        counts = above
    return counts.get((), 0)


def binding_domains(block: PlacementBlock) -> List[FailureDomain]:
    """The block's failure domains without those where one bucket may hold all of its shards."""
    return [d for d in block.domains if d.shards_per_bucket < block.positions]


def movable_bytes(snapshot: Snapshot, fixed_pools: FrozenSet[int]) -> MovableBytes:
    """The demands of all pools except the fixed ones and those whose rule is not understood."""
    usable = frozenset(
        osd.id for osd in piecewise(snapshot.osds.values(), OSDS_AT_ONCE)
        if osd.unusable_reason() is None)
    drained = snapshot.drained_osds
    osds_of: Dict[PlacementBlock, FrozenSet[int]] = {}
    demands: Dict[int, List[PoolDemand]] = {}   # pool → one for each take, without bytes yet
    for pool in snapshot.pools.values():
        for block in (() if pool.rule is None or pool.id in fixed_pools else pool.rule.blocks):
            if block not in osds_of:
                give_way()
                osds_of[block] = usable.intersection(block.weights)
            demands.setdefault(pool.id, []).append(PoolDemand(pool.id, block, osds_of[block]))
    split = {pool.id for pool in snapshot.pools.values() if pool.pg_num & (pool.pg_num - 1)}
    on_osd = dict.fromkeys(sorted(usable), 0)
    outside: Dict[int, int] = {}
    for pg in piecewise(snapshot.pgs.values(), _PGS_AT_ONCE):
        pool, up = snapshot.pools[pg.pool], pg.up
        weight = 1.0 if pool.id not in split else shard_weight(pool, pg.pgid)
        uniform = pool.is_uniform
        for demand in demands.get(pool.id, ()):
            osds, members = demand.osds, demand.block.members(up)
            placed = placed_bytes = 0
            placed_ratio = 0.0
            size = least = most = pg.shard_bytes
            ratio = highest = 1.0
            for osd in members:
                if not uniform:   # the largest shard counts where one is a limit: that relaxes it
                    size, ratio = pool.bytes_on(pg.shard_bytes, osd, up), pool.ratio_on(osd, up)
                    least, most = min(least, size), max(most, size)
                    highest = max(highest, ratio)
                if osd in osds:
                    on_osd[osd] += size
                    placed += 1
                    placed_bytes += size
                    placed_ratio += ratio
                elif osd in on_osd:
                    outside[osd] = outside.get(osd, 0) + size
            if drained and not drained.isdisjoint(members):
                more = max(0, min(sum(osd in drained for osd in members),
                                  demand.most_shards() - placed))
                placed += more
                placed_bytes += more * pg.shard_bytes
                placed_ratio += more
            excess = 1 if pg.immovable is None else _rule_excess(demand.block, members)
            if not demand.single_shards or least < demand.least_bytes:
                demand.least_bytes = least
            demand.all_bytes += placed_bytes
            demand.single_bytes += excess * most
            demand.all_shards += placed
            demand.single_shards += excess
            demand.all_weight += placed_ratio * weight
            demand.single_weight += excess * weight * highest
    merged: Dict[Tuple[object, ...], Demand] = {}
    for part in [part for number in sorted(demands) for part in demands[number]]:
        if part.all_bytes > 0:
            shape = part.shape()
            if shape not in merged:
                merged[shape] = Demand(part.block, part.osds, shape)
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
    for osds in piecewise(sets, 1):
        if osds not in cuts:
            cuts[osds] = _cut(snapshot, movable, osds)
    return cuts


def _cut(snapshot: Snapshot, movable: MovableBytes, osds: FrozenSet[int]) -> Cut:
    elsewhere: Dict[PlacementBlock, int] = {}   # block → most_elsewhere
    kept: List[KeptBytes] = []
    for _, parts in piecewise(sorted(movable.pools.items()), 10):
        for part in parts:
            if part.block not in elsewhere:
                give_way()
                domains = binding_domains(part.block)
                elsewhere[part.block] = most_shards(domains, [
                    tuple([domain.bucket_of[osd] for domain in domains])
                    for osd in part.osds if osd not in osds])
            most, take = elsewhere[part.block], part.block.take
            kept_bytes = part.all_bytes - most * part.single_bytes
            if kept_bytes > 0:
                kept.append(KeptBytes(
                    part.pool, f"osd.{take}" if take >= 0 else snapshot.crush.buckets[take].name,
                    part.block.positions, tuple([(d.type_name, d.shards_per_bucket)
                                                 for d in binding_domains(part.block)]),
                    most, kept_bytes))
    size = used = full = there = 0
    for osd in piecewise(osds, OSDS_AT_ONCE):
        size += snapshot.osds[osd].size_bytes
        used += snapshot.osds[osd].target_bytes
        full += full_bytes(snapshot, osd)
        there += movable.on_osd.get(osd, 0) + movable.outside.get(osd, 0)
    return Cut(tuple(sorted(osds)), size, used, full,
               there - sum([entry.kept_bytes for entry in kept]), tuple(kept))


def least_moved_bytes(used: Mapping[int, int], sizes: Mapping[int, int], highest: float) -> int:
    """Bytes that have to leave OSDs so that none is above the utilization `highest`.

    No larger set of OSDs proves more: what one of them is below it cannot count for another.
    """
    return sum([max(0, int(used[osd] - highest * size)) for osd, size in sizes.items()])

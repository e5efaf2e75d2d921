"""The bytes that pools have to place, and the OSDs where their rules let them.

A pool's bytes on an OSD are a free number as long as the sums keep its rule: where the rule lets a
bucket have at most m shards of one PG, the pool may have at most m · T bytes there, with T the sum
of one shard of each PG; on one OSD at most T. Nothing is lost against splitting every PG by itself:
each PG can be given the proportions of its pool.

PGs that cannot be moved at the moment count as movable. Shards on OSDs where the pool's rule places
none stay where they are.
"""
from __future__ import annotations

from typing import Dict, FrozenSet, Iterable, List, NamedTuple, Sequence, Tuple

from ...crush.placement import FailureDomain, PlacementBlock
from ...runtime.checkpoints import Checkpoint, with_checkpoints
from ...snapshot.model import Snapshot

#: Items between two checkpoints: a few milliseconds at most.
_PGS_AT_ONCE = 500
OSDS_AT_ONCE = 1000


class Demand:
    """Bytes that pools of one rule and size have under one take."""

    def __init__(self, block: PlacementBlock, osds: FrozenSet[int]) -> None:
        self.take = block.take
        self.domains = binding_domains(block)
        self.osds = osds             # those that may hold them
        self.pools: List[int] = []
        self.all_bytes = 0           # of all shards: what has to be placed
        self.single_bytes = 0        # of one shard of each PG: T

    def path(self, osd: int) -> Tuple[int, ...]:
        """The buckets that keep shards apart, from the outermost to the OSD's own."""
        return tuple([domain.bucket_of[osd] for domain in self.domains])

    def osd_limit_counts(self) -> bool:
        """True if an OSD could be given more than T while its bucket keeps its own limit."""
        if self.all_bytes <= self.single_bytes:
            return False
        return not self.domains or self.domains[-1].shards_per_bucket > 1


class MovableBytes(NamedTuple):
    """Bytes that can be moved, and where they are."""

    demands: List[Demand]     # those with bytes, in an order that depends on the cluster only
    on_osd: Dict[int, int]    # usable OSD → bytes on it that belong to a demand


class _PoolDemand:
    """The part of one pool in a demand."""

    def __init__(self, pool: int, block: PlacementBlock, osds: FrozenSet[int]) -> None:
        self.pool = pool
        self.block = block
        self.osds = osds
        self.all_bytes = 0
        self.single_bytes = 0

    def shape(self) -> Tuple[object, ...]:
        """Equal for pools that one demand can stand for."""
        # Shards that must stay lower the ratio. Rounding it is safe: adding up only relaxes.
        return (self.block.take, self.block.positions,
                tuple((d.type_name, d.shards_per_bucket) for d in binding_domains(self.block)),
                round(self.all_bytes / self.single_bytes, 1))


def binding_domains(block: PlacementBlock) -> List[FailureDomain]:
    """The block's failure domains without those where one bucket may hold all of its shards."""
    return [d for d in block.domains if d.shards_per_bucket < block.positions]


def movable_bytes(snapshot: Snapshot, fixed_pools: FrozenSet[int],
                  checkpoint: Checkpoint) -> MovableBytes:
    """The demands of all pools except the fixed ones and those whose rule is not understood."""
    usable = frozenset(
        osd.id for osd in with_checkpoints(snapshot.osds.values(), OSDS_AT_ONCE, checkpoint)
        if osd.unusable_reason() is None)
    demands = _pool_demands(snapshot, fixed_pools, usable, checkpoint)
    on_osd = dict.fromkeys(sorted(usable), 0)
    for pg in with_checkpoints(snapshot.pgs.values(), _PGS_AT_ONCE, checkpoint):
        shard_bytes = pg.shard_bytes
        for demand in demands.get(pg.pool, ()):
            osds = demand.osds
            members = demand.block.members(pg.up)
            for osd in members:
                if osd in osds:
                    on_osd[osd] += shard_bytes
                    demand.all_bytes += shard_bytes
            if pg.immovable is not None:
                shard_bytes *= _rule_excess(demand.block, members)
            demand.single_bytes += shard_bytes
    return MovableBytes(
        _merged(demand for pool in sorted(demands) for demand in demands[pool]), on_osd)


def _pool_demands(snapshot: Snapshot, fixed_pools: FrozenSet[int], usable: FrozenSet[int],
                  checkpoint: Checkpoint) -> Dict[int, List[_PoolDemand]]:
    """Pool → one demand per take, without bytes yet."""
    osds: Dict[PlacementBlock, FrozenSet[int]] = {}
    demands: Dict[int, List[_PoolDemand]] = {}
    for pool in snapshot.pools.values():
        if pool.rule is None or pool.id in fixed_pools:
            continue
        for block in pool.rule.blocks:
            if block not in osds:
                checkpoint()
                osds[block] = usable.intersection(block.weights)
            demands.setdefault(pool.id, []).append(_PoolDemand(pool.id, block, osds[block]))
    return demands


def _rule_excess(block: PlacementBlock, members: Sequence[int]) -> int:
    """The factor by which a bucket has more shards than the rule allows; 1 for legal up sets.

    A PG that breaks its rule raises the limits by as much, so that the present placement is within
    them.
    """
    worst = 1
    for domain in block.domains:
        counts: Dict[int, int] = {}
        for osd in members:
            if osd in domain.bucket_of:
                bucket = domain.bucket_of[osd]
                counts[bucket] = counts.get(bucket, 0) + 1
                worst = max(worst, -(-counts[bucket] // domain.shards_per_bucket))
    return worst


def _merged(pool_demands: Iterable[_PoolDemand]) -> List[Demand]:
    merged: Dict[Tuple[object, ...], Demand] = {}
    for part in pool_demands:
        if part.all_bytes > 0:
            shape = part.shape()
            if shape not in merged:
                merged[shape] = Demand(part.block, part.osds)
            demand = merged[shape]
            demand.pools.append(part.pool)
            demand.all_bytes += part.all_bytes
            demand.single_bytes += part.single_bytes
    return list(merged.values())

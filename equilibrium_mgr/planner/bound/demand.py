"""What pools need to place and where their rules let them: the bytes that could be moved about.

Each pool's bytes on each OSD are a free number as long as the sums keep its rule: where the rule
lets a bucket have at most m shards of one PG, the pool may have at most m · T bytes there, with T
the sum of one shard of each PG; on one OSD at most T. For whole pools this loses nothing against
splitting every PG by itself: give every PG the proportions of its pool.

PGs that cannot be moved at the moment count as movable; shards that lie where their pool's rule
places none stay where they are.
"""
from __future__ import annotations

from typing import Dict, FrozenSet, Iterable, List, NamedTuple, Sequence, Tuple

from ...crush.placement import PlacementBlock, FailureDomain
from ...runtime.checkpoints import Checkpoint, with_checkpoints
from ...snapshot.model import Snapshot

#: Loops between two checkpoints; each should take a few milliseconds at most.
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
        """Could an OSD be given more than T and yet its bucket be within its own limit?"""
        if self.all_bytes <= self.single_bytes:
            return False
        return not self.domains or self.domains[-1].shards_per_bucket > 1


class MovableBytes(NamedTuple):
    demands: List[Demand]     # those with bytes, in an order that depends on the cluster only
    on_osd: Dict[int, int]    # usable OSD → bytes on it that belong to a demand


class _Share:
    """The part of one pool in a demand."""

    def __init__(self, pool: int, block: PlacementBlock, osds: FrozenSet[int]) -> None:
        self.pool = pool
        self.block = block
        self.osds = osds
        self.all_bytes = 0
        self.single_bytes = 0

    def shape(self) -> Tuple[object, ...]:
        """Equal for shares that one demand can stand for."""
        # Shards that must stay lower the ratio; a coarse one will do, since adding up only relaxes
        return (self.block.take, self.block.positions,
                tuple((d.type_name, d.shards_per_bucket) for d in binding_domains(self.block)),
                round(self.all_bytes / self.single_bytes, 1))


def binding_domains(block: PlacementBlock) -> List[FailureDomain]:
    """Without the levels where one bucket may hold all of the block's shards."""
    return [d for d in block.domains if d.shards_per_bucket < block.positions]


def movable_bytes(snapshot: Snapshot, fixed_pools: FrozenSet[int],
                  checkpoint: Checkpoint) -> MovableBytes:
    """The demands of all pools but the fixed ones and those whose rule is not understood."""
    usable = frozenset(osd.id for osd in with_checkpoints(snapshot.osds.values(), OSDS_AT_ONCE, checkpoint)
                       if osd.unusable_reason() is None)
    shares = _shares(snapshot, fixed_pools, usable, checkpoint)
    on_osd = dict.fromkeys(sorted(usable), 0)
    for pg in with_checkpoints(snapshot.pgs.values(), _PGS_AT_ONCE, checkpoint):
        shard_bytes = pg.shard_bytes
        for share in shares.get(pg.pool, ()):
            osds = share.osds
            members = share.block.members(pg.up)
            for osd in members:
                if osd in osds:
                    on_osd[osd] += shard_bytes
                    share.all_bytes += shard_bytes
            if pg.immovable is not None:
                shard_bytes *= _crowding(share.block, members)
            share.single_bytes += shard_bytes
    return MovableBytes(_merge(share for pool in sorted(shares) for share in shares[pool]), on_osd)


def _shares(snapshot: Snapshot, fixed_pools: FrozenSet[int],
            usable: FrozenSet[int],
            checkpoint: Checkpoint) -> Dict[int, List[_Share]]:
    osds: Dict[PlacementBlock, FrozenSet[int]] = {}
    shares: Dict[int, List[_Share]] = {}
    for pool in snapshot.pools.values():
        if pool.rule is None or pool.id in fixed_pools:
            continue
        for block in pool.rule.blocks:
            if block not in osds:
                checkpoint()
                osds[block] = usable.intersection(block.weights)
            shares.setdefault(pool.id, []).append(_Share(pool.id, block, osds[block]))
    return shares


def _crowding(block: PlacementBlock, members: Sequence[int]) -> int:
    """How many times over a bucket has what the rule allows it; 1 for all legal up sets.

    A PG that breaks its rule raises the limits by as much, so that what is can also be.
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


def _merge(shares: Iterable[_Share]) -> List[Demand]:
    merged: Dict[Tuple[object, ...], Demand] = {}
    for share in shares:
        if share.all_bytes > 0:
            shape = share.shape()
            if shape not in merged:
                merged[shape] = Demand(share.block, share.osds)
            demand = merged[shape]
            demand.pools.append(share.pool)
            demand.all_bytes += share.all_bytes
            demand.single_bytes += share.single_bytes
    return list(merged.values())

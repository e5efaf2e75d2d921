"""What the bounds of a look follow from, to know whether those of an earlier look still hold."""
from __future__ import annotations

from typing import Any, Mapping, NamedTuple, Tuple

from ..runtime.checkpoints import Checkpoint, with_checkpoints
from ..snapshot.immovable_reasons import Immovable
from ..snapshot.model import Snapshot
from .placement_counts import PlacementCounts

#: The ratio of an OSD's size by which the bytes that stay on it may differ, and of a pool's bytes
#: by which these may: no bound is off by more than a twentieth of a point.
_NEAR = 1.0 / 4096.0
_OSDS_A_PIECE = 1000   # between two checkpoints: a millisecond or two


class BoundInputs(NamedTuple):
    """Everything but the sums is compared for equality."""

    crush: Any                           # the very object
    full_ratio: float
    pools: Tuple[Tuple[Any, ...], ...]
    osds: Tuple[Tuple[Any, ...], ...]
    fixed_bytes: Mapping[int, int]       # OSD id → bytes that are of no shard by the up sets
    pool_bytes: Mapping[int, int]        # pool id → bytes of one shard of each PG
    immovable: Mapping[Immovable, int]   # reason → PGs: these raise the limits of their rule

    def is_near(self, later: BoundInputs, checkpoint: Checkpoint) -> bool:
        """True where bounds of these inputs are as good as those of later ones."""
        if self[:4] != later[:4] or self.immovable != later.immovable:
            return False
        if any(rule is None for _, _, rule, *_ in self.pools):
            return False   # shards of such a pool stay where they are, wherever that is
        if self.pool_bytes.keys() != later.pool_bytes.keys() or any(
                abs(count - later.pool_bytes[pool]) > _NEAR * min(count, later.pool_bytes[pool])
                for pool, count in self.pool_bytes.items()):
            return False
        checkpoint()
        sizes = {entry[0]: entry[1] for entry in self.osds}
        return all(abs(count - later.fixed_bytes[osd]) <= _NEAR * sizes[osd]
                   for osd, count in with_checkpoints(self.fixed_bytes.items(), _OSDS_A_PIECE,
                                                      checkpoint))


def bound_inputs(snapshot: Snapshot, counts: PlacementCounts,
                 checkpoint: Checkpoint) -> BoundInputs:
    """The inputs of the bounds of a snapshot."""
    shard_bytes = counts.bytes
    return BoundInputs(
        snapshot.crush, snapshot.full_ratio,
        tuple((pool.id, pool.size, pool.rule, pool.pg_num, pool.data_shards,
               pool.position_ratios, pool.osd_ratios) for pool in snapshot.pools.values()),
        tuple([(osd.id, osd.size_bytes, osd.device_class, osd.unusable_reason(), osd.share,
                osd.is_in, osd.spared_bytes) for osd in with_checkpoints(
                    snapshot.osds.values(), _OSDS_A_PIECE, checkpoint)]),
        {osd.id: osd.target_bytes - shard_bytes.get(osd.id, 0)
         for osd in with_checkpoints(snapshot.osds.values(), _OSDS_A_PIECE, checkpoint)},
        counts.pool_bytes, snapshot.skipped)

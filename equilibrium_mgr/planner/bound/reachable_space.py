"""An upper bound of a pool's free space, whatever the placement."""
from __future__ import annotations

from typing import Dict, FrozenSet, List, Mapping, Optional, Sequence, Set

from ...crush.placement import PlacementBlock
from ...snapshot.model import Pool, Snapshot
from .lower_bound import OsdSet


def best_free_bytes(snapshot: Snapshot, sets: Sequence[OsdSet],
                    used: Mapping[int, int]) -> Dict[int, Optional[int]]:
    """Pool id → client bytes that no placement could leave the pool more of; None where its rule is
    not understood.

    Each `take` of the pool's rule reaches some OSDs, and what is on them could move to the OSDs
    that other pools' rules tie to them (`sets`, see OsdSet). All these together have their sizes at
    full_ratio less what they use; ÷ raw bytes that the take gets of each client byte. Failure
    domains and the size of shards are not counted, so that it is more than can be reached.
    """
    free = {osd.id: osd.size_bytes * snapshot.full_ratio - used[osd.id]
            for osd in snapshot.osds.values() if osd.unusable_reason() is None}
    known: Dict[PlacementBlock, float] = {}   # free bytes of what a block reaches
    best: Dict[int, Optional[int]] = {}
    for pool in snapshot.pools.values():
        best[pool.id] = _of_pool(pool, sets, free, known)
    return best


def _of_pool(pool: Pool, sets: Sequence[OsdSet], free: Mapping[int, float],
             known: Dict[PlacementBlock, float]) -> Optional[int]:
    if pool.rule is None:
        return None
    limits: List[float] = []
    for block in pool.rule.blocks:
        if block not in known:
            known[block] = sum(free[osd] for osd in _reached(block, sets) if osd in free)
        limits.append(max(0.0, known[block]) * pool.data_shards / block.positions)
    return int(min(limits)) if limits else None


def _reached(block: PlacementBlock, sets: Sequence[OsdSet]) -> Set[int]:
    own: FrozenSet[int] = frozenset(block.weights)
    found = set(own)
    for osd_set in sets:
        if not own.isdisjoint(osd_set.osds):
            found.update(osd_set.osds)
    return found

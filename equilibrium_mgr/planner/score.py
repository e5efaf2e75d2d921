"""The score that compares finished placements, and the free space of pools in them."""
from __future__ import annotations

from typing import Dict, List, Sequence

from ..runtime.time_slice import give_way
from .move_order import wanted_changes
from .objective import BEYOND_SHARE, FAR_FREE_SPACE, FAR_MAX_UTILIZATION, ScoreWeights
from .state.constraints import OsdSetState
from .state.placement_state import PlacementState


def score_placement(placement: PlacementState, sets: Sequence[OsdSetState],
                    data_groups: Sequence[int], initial_free_bytes: Dict[int, float],
                    near_free_bytes: Dict[int, float], weights: ScoreWeights) -> float:
    """Returns the score; higher is better. The formula is in planner/objective.py.

    `initial_free_bytes`: `pool_free_bytes` before the first move. `near_free_bytes`: the free space
    below which a pool is far from the space that it can have. Both by pool id.
    """
    gained: List[float] = []
    missing = 0.0
    for pool, free in pool_free_bytes(placement, data_groups).items():
        gained.append(free - initial_free_bytes[pool])
        missing += max(0.0, near_free_bytes[pool] - free)
    displaced = sum([change.bytes * len(change.moves) for change in wanted_changes(placement)])
    above_shares = sum([max(0, placement.used_bytes[i] - limit)
                        for i, limit in placement.share_limit_bytes.items()])
    score = weights.free_space * sum(gained)
    score += weights.min_free_space * min(gained, default=0.0)
    score -= FAR_FREE_SPACE * missing
    score -= displaced
    score -= BEYOND_SHARE * above_shares
    for osd_set in sets:
        highest = osd_set.max_utilization(placement)
        far = max(0.0, highest - osd_set.far_threshold)
        score -= osd_set.size_bytes * (
            weights.max_utilization * (highest - osd_set.bound) + FAR_MAX_UTILIZATION * far)
    return score


def pool_free_bytes(placement: PlacementState, data_groups: Sequence[int]) -> Dict[int, float]:
    """Returns pool id → client bytes that fit before the pool's first OSD is full; only of the
    pools of these groups."""
    full = placement.snapshot.full_ratio
    usable = [max(0.0, full * size - used)
              for size, used in zip(placement.size_bytes, placement.used_bytes)]
    found: Dict[int, float] = {}
    for index in data_groups:
        give_way()
        group = placement.groups[index]
        pool = group.pool
        chunks = pool.chunks / (group.size_ratio or 1.0)
        least = min([free * chunks / count for free, count in zip(usable, group.counts) if count],
                    default=0.0)
        found[pool.id] = min(found.get(pool.id, least), least)
    return found

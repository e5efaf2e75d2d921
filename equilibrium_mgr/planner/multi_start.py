"""Several searches with different weights, where they are cheap, and the best of their results.

A search ends in one of many placements that are nearly equally good. On a small cluster, where one
shard is a percent of an OSD, it matters which, and there a second search costs little.

The score by which finished placements are compared, in bytes moved.
"""
from __future__ import annotations

from typing import Dict, List, Optional, Sequence, Tuple

from ..plan.options import PlanOptions
from ..runtime.time_slice import give_way
from ..snapshot.model import Snapshot
from .bound.lower_bound import UtilizationBounds
from .move_order import wanted_changes
from .objective import AIM_SCORE_WEIGHTS, AIM_WEIGHTS, ScoreWeights, Weights
from .search.search import Search
from .state.constraints import OsdSetState
from .state.placement_state import PlacementState


def score_placement(placement: PlacementState, sets: Sequence[OsdSetState],
                    data_groups: Sequence[int], initial_free_bytes: Dict[int, float],
                    near_free_bytes: Dict[int, float], weights: Weights,
                    score_weights: ScoreWeights) -> float:
    """Higher is better; the formula is in planner/objective.py.

    `initial_free_bytes` is what `pool_free_bytes` gave before the first move, `near_free_bytes`
    the free space below which a pool is far from what it can have; both by pool id.
    """
    free_bytes = pool_free_bytes(placement, data_groups)
    gained: List[float] = [free - initial_free_bytes[pool] for pool, free in free_bytes.items()]
    missing = sum(max(0.0, near_free_bytes[pool] - free) for pool, free in free_bytes.items())
    displaced = sum(change.bytes * len(change.moves) for change in wanted_changes(placement))
    score = (score_weights.free_space * sum(gained)
             + score_weights.min_free_space * min(gained, default=0.0)
             - score_weights.far_free_space * missing - displaced)
    for osd_set in sets:
        highest = osd_set.max_utilization(placement)
        score -= osd_set.size_bytes * (
            score_weights.max_utilization * (highest - osd_set.bound)
            + score_weights.far_max_utilization * max(
                0.0, highest - osd_set.far_threshold(weights)))
    return score


def pool_free_bytes(placement: PlacementState, data_groups: Sequence[int]) -> Dict[int, float]:
    """Pool id → client bytes that fit before the pool's first OSD is full."""
    full = placement.snapshot.full_ratio
    usable = [max(0.0, full * size - used)
              for size, used in zip(placement.size_bytes, placement.used_bytes)]
    free: Dict[int, float] = {}
    for index in data_groups:
        give_way()
        group = placement.groups[index]
        chunks = group.pool.pg_num * group.pool.data_shards / (group.size_ratio or 1.0)
        counts = group.counts
        least = min([usable[i] * chunks / counts[i] for i in group.osds if counts[i]],
                    default=0.0)
        free[group.pool.id] = min(free.get(group.pool.id, least), least)
    return free


#: Candidates that all searches together may examine: one more search begins while the mean of those
#: before lets it stay within this. A count and not a time, so that the same snapshot gives the same
#: plan.
MAX_CANDIDATES = 860_000


def multi_start_search(snapshot: Snapshot, options: PlanOptions, bounds: UtilizationBounds,
                       max_candidates: int = MAX_CANDIDATES) -> Tuple[PlacementState, bool]:
    """Returns the best placement found, and False where a search was told to end."""
    best: Optional[Tuple[float, PlacementState]] = None
    examined = 0
    variants = AIM_WEIGHTS[options.aim][:1 if options.drain_only else None]
    for number, weights in enumerate(variants, start=1):
        placement = PlacementState(snapshot, options)
        search = Search(placement, bounds, weights)
        free = pool_free_bytes(placement, search.data_groups)
        near = search.near_free_bytes()
        finished = search.run(options.drain_only)
        search.release()
        score = score_placement(placement, search.sets, search.data_groups, free, near, variants[0],
                                AIM_SCORE_WEIGHTS[options.aim])
        if best is None or (finished and score > best[0]):
            best = score, placement
        examined += placement.candidates_examined
        if not finished:
            return best[1], False
        if not placement.moved_pgs or examined * (number + 1) > number * max_candidates:
            break
    assert best is not None
    return best[1], True

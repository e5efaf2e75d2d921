"""Several searches with different weights, where they are cheap, and the best of their results.

A search ends in one of many placements that are nearly equally good. On a small cluster, where one
shard is a percent of an OSD, it matters which, and there a second search costs little.
"""
from __future__ import annotations

from typing import Optional, Tuple

from ..plan.options import PlanOptions
from ..snapshot.model import Snapshot
from .bound.lower_bound import UtilizationBounds
from .objective import AIM_SCORE_WEIGHTS, AIM_WEIGHTS
from .placement_score import pool_free_bytes, score_placement
from .search.search import Search
from .state.placement_state import PlacementState

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
        placement.observers.clear()    # they refer back to it and would keep it in memory
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

"""What a finished placement is worth beside another one, in bytes moved."""
from __future__ import annotations

from typing import Dict, List, Sequence

from .move_order import wanted_changes
from .objective import ScoreWeights, Weights
from .state.osd_sets import OsdSetState
from .state.placement_state import PlacementState


def score_placement(placement: PlacementState, sets: Sequence[OsdSetState], data_groups: Sequence[int],
          room_at_start: Dict[int, float], weights: Weights,
          appraised: ScoreWeights) -> float:
    """Higher is better; see planner/objective.py for the formula."""
    gained: List[float] = [room - room_at_start[pool]
                           for pool, room in pool_free_bytes(placement, data_groups).items()]
    moved = sum(change.bytes * len(change.moves) for change in wanted_changes(placement))
    worth = appraised.free_space * sum(gained) + appraised.min_free_space * min(gained, default=0.0) - moved
    for members in sets:
        top = members.max_utilization(placement)
        worth -= members.size_bytes * (
            appraised.max_utilization * (top - members.bound)
            + appraised.far_max_utilization * max(0.0, top - members.far_threshold(weights)))
    return worth


def pool_free_bytes(placement: PlacementState, data_groups: Sequence[int]) -> Dict[int, float]:
    """Pool id → client bytes that fit before its first OSD is full."""
    full = placement.snapshot.full_ratio
    room: Dict[int, float] = {}
    for index in data_groups:
        group = placement.groups[index]
        chunks = group.pool.pg_num * group.pool.data_shards
        least = min((max(0.0, full * placement.size_bytes[i] - placement.used_bytes[i]) * chunks / group.counts[i]
                     for i in group.osds if group.counts[i]), default=0.0)
        room[group.pool.id] = min(room.get(group.pool.id, least), least)
    return room

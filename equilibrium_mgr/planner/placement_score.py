"""What a finished placement is worth beside another one, in bytes moved."""
from __future__ import annotations

from typing import Dict, List, Sequence

from .move_order import wanted_changes
from .objective import ScoreWeights, Weights
from .state.osd_sets import OsdSetState
from .state.placement_state import PlacementState


def value(placement: PlacementState, sets: Sequence[OsdSetState], data_groups: Sequence[int],
          room_at_start: Dict[int, float], weights: Weights,
          appraised: ScoreWeights) -> float:
    """Higher is better; see planner/objective.py for the formula."""
    gained: List[float] = [room - room_at_start[pool]
                           for pool, room in free_room(placement, data_groups).items()]
    moved = sum(change.bytes * len(change.moves) for change in wanted_changes(placement))
    worth = appraised.room * sum(gained) + appraised.worst_room * min(gained, default=0.0) - moved
    for members in sets:
        top = members.top(placement)
        worth -= members.size_bytes * (
            appraised.top * (top - members.bound)
            + appraised.far_top * max(0.0, top - members.far(weights)))
    return worth


def free_room(placement: PlacementState, data_groups: Sequence[int]) -> Dict[int, float]:
    """Pool id → client bytes that fit before its first OSD is full."""
    full = placement.snapshot.full_ratio
    room: Dict[int, float] = {}
    for index in data_groups:
        group = placement.groups[index]
        chunks = group.pool.pg_num * group.pool.data_shards
        least = min((max(0.0, full * placement.size[i] - placement.used[i]) * chunks / group.counts[i]
                     for i in group.osds if group.counts[i]), default=0.0)
        room[group.pool.id] = min(room.get(group.pool.id, least), least)
    return room

"""The placement that a former plan wanted, restored on the placement of a newer snapshot.

A wanted move is made where its shard is still where the plan expected it and where the move is
legal today. What cannot be restored is dropped and counted: the search that follows finds
something else for it.
"""
from __future__ import annotations

from collections import Counter
from typing import Dict, List, Sequence

from ..plan.model import PgChange
from .state.placement_state import PlacementState, ShardMove

# Reasons for which a wanted move is dropped.
NOT_MOVABLE = "its PG is gone or may not be moved"
NOT_THERE = "its shard is no longer where the plan expected it"
REFUSED = "its target may not take the shard any more"

#: A move may have to wait for another one that makes room for it.
_PASSES = 3


def restore_wanted(placement: PlacementState, changes: Sequence[PgChange]) -> Dict[str, int]:
    """Makes the moves of the changes that are still possible; returns reason → moves dropped.

    Moves that have been made meanwhile are no moves any more and count as nothing.
    """
    dropped: Counter[str] = Counter()
    index_of_pg = {pg.pgid: index for index, pg in enumerate(placement.pgs)}
    left: List[List[ShardMove]] = []
    for change in changes:
        pg = index_of_pg.get(change.pgid)
        if pg is None:
            dropped[NOT_MOVABLE] += change.shards
            continue
        moves = _moves_left(placement, pg, change, dropped)
        if moves:
            left.append(moves)
    for _ in range(_PASSES):
        waiting = [rest for rest in (_made(placement, moves) for moves in left) if rest]
        if sum(map(len, waiting)) == sum(map(len, left)):
            break
        left = waiting
    refused = sum(map(len, left))
    if refused:
        dropped[REFUSED] = refused
    return dict(dropped)


def _moves_left(placement: PlacementState, pg: int, change: PgChange,
                dropped: Counter[str]) -> List[ShardMove]:
    """The change's moves that are still to be made, shard by shard."""
    index_of, up = placement.index_of, placement.up[pg]
    moves: List[ShardMove] = []
    for span in placement.block_spans(pg):
        before, after = change.up_before[span], change.up_after[span]
        if placement.groups[placement.groups_of_pool[placement.pool_of_pg[pg]][0]].pool.erasure:
            pairs = [(a, b) for a, b in zip(before, after) if a != b]
        else:
            pairs = list(zip([a for a in before if a not in after],
                             [b for b in after if b not in before]))
        for a, b in pairs:
            source, target = index_of.get(a, -1), index_of.get(b, -1)
            if target in up and source not in up:
                continue   # it has been made
            if source in up and target >= 0 and target not in up:
                moves.append((pg, source, target))
            else:
                dropped[NOT_THERE] += 1
    return moves


def _made(placement: PlacementState, moves: List[ShardMove]) -> List[ShardMove]:
    """Makes those of a PG's moves that are possible now; returns the others."""
    rest: List[ShardMove] = []
    for step in moves:
        if placement.has_room(step[2], placement.size_on(*step[:2])) and placement.is_legal(*step):
            placement.move(*step)
        else:
            rest.append(step)
    if len(rest) > 1 and placement.is_legal_joint(rest) and all(
            placement.has_room(target, placement.size_on(pg, source))
            for pg, source, target in rest):
        for step in rest:
            placement.move(*step)
        rest = []
    return rest

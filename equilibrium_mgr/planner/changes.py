"""The changes of a placement: for each PG the moves of its shards since planning began."""
from __future__ import annotations

from typing import FrozenSet, List, NamedTuple, Sequence, Tuple

from ..runtime.time_slice import piecewise, sorted_piecewise
from .state.placement_state import PlacementState

#: Before it gives way again, a few milliseconds.
_CHANGES_A_PIECE = 500
_SORTED_AT_ONCE = 10_000

SourceTarget = Tuple[int, int]      # (source, target), OSD indices


class Change(NamedTuple):
    """The moves of one PG's shards."""

    pg: int
    moves: Tuple[SourceTarget, ...]
    bytes: int                   # of one shard


#: Changes that must go together; nearly always a single one.
ChangeGroup = Tuple[Change, ...]


def wanted_changes(placement: PlacementState) -> List[Change]:
    """Returns a change for every PG whose up set differs from the initial one."""
    changes: List[Change] = []
    moved = sorted_piecewise(placement.moved_pgs, _SORTED_AT_ONCE)
    for pg in piecewise(moved, _CHANGES_A_PIECE):
        initial, up = placement.initial_up[pg], placement.up[pg]
        groups = placement.groups_of_pool[placement.pool_of_pg[pg]]
        if placement.groups[groups[0]].pool.erasure:
            moves = tuple((a, b) for a, b in zip(initial, up) if a != b)
        else:
            moves = tuple(pair for span in placement.block_spans(pg) for pair in zip(
                [a for a in initial[span] if a not in up[span]],
                [b for b in up[span] if b not in initial[span]]))
        if moves:
            changes.append(Change(pg, moves, placement.pg_bytes[pg]))
    return changes


def draining(placement: PlacementState, changes: Sequence[Change]) -> FrozenSet[int]:
    """Numbers of the changes that take a shard off an OSD that is being drained."""
    drained = [placement.snapshot.osds[osd].drained for osd in placement.osd_ids]
    if not any(drained):
        return frozenset()
    return frozenset(number for number, change in enumerate(changes)
                     if any(drained[source] for source, _ in change.moves))

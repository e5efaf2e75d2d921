"""A plan held against the cluster as it is now: which of its changes can still be made."""
from __future__ import annotations

from typing import List, NamedTuple, Tuple

from ....plan.kinds import is_same_placement
from ....plan.model import Move, PgChange, Plan
from ....snapshot.model import Snapshot


class PlanStanding(NamedTuple):
    """A plan's changes by what has become of them."""

    name: str
    plan: Plan
    is_void: bool                      # what it rests on has changed
    to_make: Tuple[PgChange, ...]      # as planned
    in_place: Tuple[PgChange, ...]     # where the plan wants them, or on their way there
    not_possible: Tuple[PgChange, ...]   # the PG is gone, or others have placed it otherwise
    moves: Tuple[Move, ...]            # those of `to_make`

    @property
    def bytes(self) -> int:
        """Bytes of the moves that are still to be made."""
        return sum(move.bytes for move in self.moves)

    @property
    def is_outdated(self) -> bool:
        """True where some of the plan is not to be made any more; a newer osdmap is no reason."""
        return self.is_void or len(self.to_make) < len(self.plan.changes)


def standing_of(name: str, plan: Plan, snapshot: Snapshot, is_void: bool) -> PlanStanding:
    """The plan beside the snapshot. `is_void`: it is outdated by what `ls` goes by."""
    to_make: List[PgChange] = []
    in_place: List[PgChange] = []
    not_possible: List[PgChange] = []
    for change in plan.changes:
        pg = snapshot.pgs.get(change.pgid)
        positional = pg is not None and snapshot.pools[pg.pool].erasure
        if pg is None or not is_same_placement(pg.raw, change.raw, positional):
            not_possible.append(change)
        elif is_same_placement(pg.up, change.up_after, positional):
            in_place.append(change)
        elif is_same_placement(pg.up, change.up_before, positional):
            to_make.append(change)
        else:
            not_possible.append(change)
    wanted = {change.pgid for change in to_make}
    return PlanStanding(name, plan, is_void, tuple(to_make), tuple(in_place), tuple(not_possible),
                        tuple([move for move in plan.moves if move.pgid in wanted]))

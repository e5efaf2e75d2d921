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
    is_older: bool                     # the osdmap is newer than the plan
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
        """True where some of the plan cannot be made as planned any more."""
        return bool(self.not_possible)


def standing_of(name: str, plan: Plan, snapshot: Snapshot, epoch: int) -> PlanStanding:
    """The plan beside the snapshot; `epoch` is that of the newest osdmap."""
    to_make: List[PgChange] = []
    in_place: List[PgChange] = []
    not_possible: List[PgChange] = []
    for change in plan.changes:
        pg = snapshot.pgs.get(change.pgid)
        if pg is None or not is_same_placement(pg.raw, change.raw,
                                               snapshot.pools[pg.pool].erasure):
            not_possible.append(change)
        elif pg.up == change.up_after:
            in_place.append(change)
        else:
            (to_make if pg.up == change.up_before else not_possible).append(change)
    wanted = {change.pgid for change in to_make}
    return PlanStanding(name, plan, epoch > plan.epoch, tuple(to_make), tuple(in_place),
                        tuple(not_possible),
                        tuple([move for move in plan.moves if move.pgid in wanted]))

"""What plans are for, and which changes move no data."""
from __future__ import annotations

from typing import Tuple

from ..snapshot.model import Pg

BALANCE, UNDO, CANCEL, FREEZE, CLEAN_UP, REPAIR, DRAIN = (
    "balance", "undo", "cancel", "freeze", "clean-up", "repair", "drain")
KINDS = (BALANCE, UNDO, CANCEL, FREEZE, CLEAN_UP, REPAIR, DRAIN)

#: Plans of these kinds leave all data where it is: flags, degraded PGs and limits of movement do
#: not stop them. What of them would move data after all is dropped.
MOTIONLESS = frozenset((CANCEL, FREEZE, CLEAN_UP))


#: Kind → the command that begins plans of it, for the history.
COMMANDS = {UNDO: "undo", CANCEL: "cancel", FREEZE: "freeze", CLEAN_UP: "upmap cleanup",
            DRAIN: "drain"}


def command_of(kind: str) -> str:
    """The command that has begun a plan of this kind."""
    return f"'ceph equilibrium {COMMANDS.get(kind, 'execute')}'"


def takes_back(pg: Pg, up_after: Tuple[int, ...], positional: bool) -> bool:
    """True where the PG's data is on these OSDs already, and on its way to others: motion ends."""
    return pg.is_moving and _is_same(pg.holders, up_after, positional)


def moves_nothing(pg: Pg, up_after: Tuple[int, ...], positional: bool) -> bool:
    """True where a change to this up set copies no shard that is not on its way anyway: each is
    where its data is, or where it goes already; one may go elsewhere where that lets others stay.
    Positions count in erasure-coded pools."""
    if _is_same(pg.up, up_after, positional) or takes_back(pg, up_after, positional):
        return True
    if not pg.is_moving or len(up_after) != len(pg.up):
        return False
    if positional:
        return len(pg.holders) == len(pg.up) and _ends_motion(pg, up_after)
    return (len(set(up_after)) == len(up_after)
            and set(up_after).issubset((*pg.holders, *pg.up)))


def _ends_motion(pg: Pg, up_after: Tuple[int, ...]) -> bool:
    """True where no shard of an erasure-coded PG gets another destination; or one does, and fewer
    shards move than now."""
    shards = list(zip(up_after, pg.holders, pg.up))
    elsewhere = sum(after not in (held, up) for after, held, up in shards)
    return elsewhere == 0 or (elsewhere == 1 and sum(
        after != held for after, held, _ in shards) < sum(up != held for _, held, up in shards))


def _is_same(one: Tuple[int, ...], other: Tuple[int, ...], positional: bool) -> bool:
    return one == other or (not positional and len(one) == len(other) and set(one) == set(other))

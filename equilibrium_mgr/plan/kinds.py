"""What plans are for, and which changes move no data."""
from __future__ import annotations

from typing import Tuple

from ..crush.placement import NO_OSD
from ..snapshot.model import Pg

BALANCE, UNDO, CANCEL, FREEZE, CLEAN_UP, REPAIR, DRAIN = (
    "balance", "undo", "cancel", "freeze", "clean-up", "repair", "drain")
KINDS = (BALANCE, UNDO, CANCEL, FREEZE, CLEAN_UP, REPAIR, DRAIN)

#: Plans of these kinds leave all data where it is: flags, degraded PGs and limits of movement do
#: not stop them. What of them would move data after all is dropped.
MOTIONLESS = frozenset((CANCEL, FREEZE, CLEAN_UP))

#: Plans of these kinds take changes back, which automatic balancing would make again.
TAKE_BACK = frozenset((UNDO, CANCEL))

#: Plans of these kinds are for the upmap items themselves: another way to the same up set is not
#: what they want.
OF_ITEMS = frozenset((UNDO, CANCEL, CLEAN_UP))

#: Kind → the command that begins plans of it, for the history.
COMMANDS = {UNDO: "undo", CANCEL: "cancel", FREEZE: "freeze", CLEAN_UP: "upmap cleanup",
            DRAIN: "drain"}

#: States of a PG that has moved, or has begun to, where the OSDs that it goes to serve it.
_MAY_HAVE_ARRIVED = ("backfill", "recovering", "remapped")


def command_of(kind: str) -> str:
    """The command that has begun a plan of this kind."""
    return f"'ceph equilibrium {COMMANDS.get(kind, 'execute')}'"


def takes_back(pg: Pg, up_after: Tuple[int, ...], positional: bool) -> bool:
    """True where the PG's data is on these OSDs for certain, and on its way to others: motion
    ends."""
    return pg.is_moving and is_same_placement(_certain_holders(pg, positional), up_after,
                                              positional)


def moves_nothing(pg: Pg, up_after: Tuple[int, ...], positional: bool) -> bool:
    """True where a change to this up set copies no shard that is not on its way anyway: each is
    where its data is, or where it goes already; one may go elsewhere where that lets others stay.
    Positions count in erasure-coded pools."""
    if is_same_placement(pg.up, up_after, positional) or takes_back(pg, up_after, positional):
        return True
    if not pg.is_moving or len(up_after) != len(pg.up):
        return False
    holders = _certain_holders(pg, positional)
    if positional:
        return len(holders) == len(pg.up) and _ends_motion(holders, pg.up, up_after)
    return len(set(up_after)) == len(up_after) and set(up_after).issubset((*holders, *pg.up))


def _certain_holders(pg: Pg, positional: bool) -> Tuple[int, ...]:
    """The holders that have the PG's data for certain: those that serve it, and all of them while
    the PG waits where it was last clean. By position in erasure-coded pools, else without the
    others."""
    if _waits_where_it_was(pg, positional):
        return pg.holders
    if not positional:
        return tuple([osd for osd in pg.holders if osd in pg.acting])
    return tuple([held if held == serves else NO_OSD
                  for held, serves in zip(pg.holders, pg.acting)])


def _waits_where_it_was(pg: Pg, positional: bool) -> bool:
    """True where a PG that was sent on its way once has not peered yet, or comes by log recovery
    and has not arrived. Holders that do not serve it keep their copies until then."""
    if pg.doubtful_holders:
        return False
    if is_same_placement(pg.acting, pg.up, positional):
        return not any(word in pg.state for word in _MAY_HAVE_ARRIVED)
    # a new OSD is missing until log recovery has filled it
    return (len(pg.acting) < len(pg.up) or NO_OSD in pg.acting) and "backfill" not in pg.state


def _ends_motion(holders: Tuple[int, ...], up: Tuple[int, ...],
                 up_after: Tuple[int, ...]) -> bool:
    """True where no shard of an erasure-coded PG gets another destination; or one does, and fewer
    shards move than now."""
    shards = list(zip(up_after, holders, up))
    elsewhere = sum(after not in (held, up) for after, held, up in shards)
    # a shard without a certain holder may have arrived, and counts in neither
    moving = [(after, up) for after, held, up in shards if held not in (up, NO_OSD)]
    return elsewhere == 0 or (
        elsewhere == 1 and 1 + sum(after == up for after, up in moving) < len(moving))


def is_same_placement(one: Tuple[int, ...], other: Tuple[int, ...], positional: bool) -> bool:
    """True for the same OSDs, in replicated pools in any order: the primary comes first."""
    return one == other or (not positional and len(one) == len(other) and set(one) == set(other))

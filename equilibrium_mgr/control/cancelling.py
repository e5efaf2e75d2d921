"""Which moves that were sent are cancelled before their data is copied.

There are two reasons: an OSD withholds the PG because it has too many, or the PG waits where steps
of pg_num need its OSDs.
"""
from __future__ import annotations

from typing import AbstractSet, Dict, List, Mapping, Optional, Sequence, Tuple

from ..plan.model import PgChange
from ..runtime.formatting import named_osds
from ..snapshot.model import Pg, Snapshot
from ..snapshot.pg_states import REMAPPED
from ..undo.change_log import ChangeRow, NewestFirst
from ..undo.undo_plan import cancel_plan


def changes_in_the_way(snapshot: Snapshot, rows: NewestFirst, pgids: AbstractSet[str], plan: str,
                       since: float) -> Sequence[PgChange]:
    """Returns the changes that cancel the moves of these PGs that a plan has sent. `since`: when
    its execution began, in seconds since the epoch."""
    def is_chosen(row: ChangeRow) -> bool:
        return row.pgid in pgids and row.plan == plan and row.at >= since
    return cancel_plan(_undrained(snapshot), rows, is_chosen).plan.changes


def withheld_changes(snapshot: Snapshot, rows: NewestFirst,
                     pgids: AbstractSet[str]) -> List[PgChange]:
    """Returns the changes that cancel moves of withheld PGs, if an OSD loses the PG that does not
    hold it. `snapshot`: with the holders that the log of changes knows."""
    def is_chosen(row: ChangeRow) -> bool:
        return row.pgid in pgids and not row.cancels_withheld
    found = []
    for change in cancel_plan(_undrained(snapshot), rows, is_chosen).plan.changes:
        pg = snapshot.pgs[change.pgid]
        having = set(pg.holders)
        if REMAPPED in pg.state:
            having.update(pg.acting)
        if not change.lost_by <= having:
            found.append(change)
    return found


def withheld_pgs(seen: Snapshot, pgids: AbstractSet[str], newest: Snapshot,
                 batch: Sequence[PgChange]) -> Mapping[str, Tuple[str, str]]:
    """Returns PG → why it is inactive, and the command that helps.

    Leaves out the PGs whose move has just been cancelled, and those that CRUSH alone maps to the
    OSD. `seen`: with the holders that the log of changes knows. `batch`: the changes that were to
    cancel moves.
    """
    commands = {change.pgid: change.command() for change in batch}
    told: Dict[str, Tuple[str, str]] = {}
    for pgid in sorted(pgids):
        pg = seen.pgs[pgid]
        reason_and_command = _withheld_pg(pg, newest, commands.get(pgid))
        if reason_and_command is not None:
            told[pgid] = reason_and_command
    return told


def _withheld_pg(pg: Pg, newest: Snapshot, command: Optional[str]) -> Optional[Tuple[str, str]]:
    new = sorted(set(pg.up) & set(newest.osds) - set(pg.holders))
    items = newest.items_of(pg.pgid)
    left = tuple([pair for pair in items if pair[1] not in new])
    if left == items:
        return None
    if command is None:
        command = PgChange(pg.pgid, pg.raw, pg.up, pg.up, left, 0, 0, 0).command()
    which = named_osds(new, len(new))
    if len(new) > 1:
        which = f"one of {which}"
    return (f"pg {pg.pgid} is inactive: {which} has too many PGs, by its own options, to take it",
            command)


def _undrained(snapshot: Snapshot) -> Snapshot:
    """Returns the snapshot without drains: a cancelled move may lead back to a drained OSD."""
    return snapshot._replace(osds={
        osd.id: osd._replace(drained=False) for osd in snapshot.osds.values()})

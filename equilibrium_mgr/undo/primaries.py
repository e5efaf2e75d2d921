"""Restores the primaries that PGs had before they were set. No data moves."""
from __future__ import annotations

from typing import FrozenSet, List, Optional, Sequence, Tuple, Union

from ..plan.kinds import is_same_placement
from ..plan.model import NO_PRIMARY, PgChange, change_of_primary
from ..runtime.time_slice import piecewise
from ..snapshot.model import Pg, Snapshot
from .change_log import ChangeRow, Chosen, rows_by_pg

GONE = "its pool or PG is gone"
FOREIGN_PRIMARY = "somebody else has set its primary since"
SET_LATER = "its primary was set later by what is not taken back"
NOT_A_MEMBER = "the OSD that was its primary has no shard of it"
#: Before it gives way again: about a millisecond.
_ROWS_A_PIECE = 500
ITEMS_FIRST = "its upmap items are restored first; undo once more for its primary"


def with_present_order(snapshot: Snapshot, rows: Sequence[ChangeRow]) -> List[ChangeRow]:
    """The rows with the raw mapping in the order that it has now, where only that is another: in
    replicated pools the primary comes first."""
    return [_with_present_order(snapshot, row) for row in piecewise(rows, _ROWS_A_PIECE)]


def _with_present_order(snapshot: Snapshot, row: ChangeRow) -> ChangeRow:
    pg = snapshot.pgs.get(row.pgid)
    if pg is None or row.raw == pg.raw or not is_same_placement(
            row.raw, pg.raw, snapshot.pools[pg.pool].erasure):
        return row
    return row._replace(raw=pg.raw)


def restored_primaries(snapshot: Snapshot, rows: Sequence[ChangeRow], chosen: Chosen,
                       changed: FrozenSet[str]) -> Tuple[List[PgChange], List[Tuple[str, str]]]:
    """(changes, (pgid, reason) of what cannot be restored). `changed`: PGs whose upmap items the
    same plan changes."""
    changes: List[PgChange] = []
    not_restored: List[Tuple[str, str]] = []
    for pgid, of_pg in sorted(rows_by_pg(rows, of_primaries=True).items()):
        pg = snapshot.pgs.get(pgid)
        found = (GONE if pg is None and any(map(chosen, of_pg)) else None if pg is None
                 else _restored(snapshot, pg, of_pg, chosen))
        if found is not None and pgid in changed:
            found = ITEMS_FIRST
        if isinstance(found, PgChange):
            changes.append(found)
        elif found is not None:
            not_restored.append((pgid, found))
    return changes, not_restored


def _restored(snapshot: Snapshot, pg: Pg, rows: Sequence[ChangeRow],
              chosen: Chosen) -> Union[PgChange, str, None]:
    """The change, why there can be none, or None where there is nothing to restore."""
    first = next((number for number, row in enumerate(rows) if chosen(row)), None)
    if first is None:
        return None
    goal, present = _pair(rows[first])[0], snapshot.primaries.get(pg.pgid, NO_PRIMARY)
    if goal == present or (present == NO_PRIMARY and pg.up[:1] == (goal,)):
        return None
    # the monitors drop an entry that has no effect any more
    if present not in (NO_PRIMARY, *_pair(rows[-1])):
        return FOREIGN_PRIMARY
    if not all(map(chosen, rows[first:])):
        return SET_LATER
    if goal != NO_PRIMARY and goal not in pg.up:
        return NOT_A_MEMBER
    return change_of_primary(pg, goal)


def _pair(row: ChangeRow) -> Tuple[int, int]:
    pair: Optional[Tuple[int, int]] = row.primaries
    return pair if pair is not None else (NO_PRIMARY, NO_PRIMARY)

"""Which OSDs the next steps of a pg_num change need, and which of our moves delay them.

The mgr splits and merges PGs in steps, and waits for each. Backfills of other PGs take turns at the
same OSDs.
"""
from __future__ import annotations

from typing import Dict, FrozenSet, List, Mapping

from ..runtime.time_slice import piecewise
from ..snapshot.immovable_reasons import TO_MERGE
from ..snapshot.model import Pg, Pool, Snapshot, pg_number
from ..snapshot.pg_states import BACKFILL_WAIT
from ..snapshot.pools import merge_target
from .pending_moves import PendingMove

#: A PG that was cancelled for a pg_num change may go again after so many seconds, even before the
#: change is complete. A merge without a step for so long reserves no OSDs for its next pairs.
STEP_SECONDS = 3600.0
#: Pairs that are merged before a batch has arrived: the mgr keeps pgp_num so far ahead of pg_num.
_PAIRS_AHEAD = 8
_PGS_A_PIECE = 40   # about a millisecond


def needed_by_steps(snapshot: Snapshot) -> Dict[int, Pool]:
    """Returns each OSD that the next steps of a pg_num change need → the pool that changes.

    These are the OSDs of PGs in flight that a step moves, of pairs that still have to be brought
    together before they are merged, and of the very next pair. A merge that stands still needs
    only the OSDs of PGs in flight.
    """
    changing = {pool.id: pool for pool in snapshot.pools.values() if pool.touched}
    if not changing:
        return {}
    needing = [pg for pg in piecewise(snapshot.in_flight().values(), _PGS_A_PIECE)
               if pg_number(pg.pgid) in snapshot.pools[pg.pool].touched]
    for pool in changing.values():
        needing += _next_pairs(snapshot, pool)
    needed: Dict[int, Pool] = {}
    for pg in needing:
        for osd in (*pg.up, *pg.raw, *pg.holders):
            needed[osd] = changing[pg.pool]
    return needed


def _next_pairs(snapshot: Snapshot, pool: Pool) -> List[Pg]:
    """Returns the PGs of the next pairs of a merge; none if it stands still."""
    if snapshot.taken_at - pool.stepped_at >= STEP_SECONDS:
        return []
    found: List[Pg] = []
    for ps in range(max(1, pool.pg_num - _PAIRS_AHEAD), pool.pg_num):
        pair: List[Pg] = []
        for one in (ps, merge_target(ps)):
            pg = snapshot.pgs.get(f"{pool.id}.{one:x}")
            if pg is not None and pool.touched.get(one) == TO_MERGE:
                pair.append(pg)
        is_apart = len(pair) == 2 and pair[0].up != pair[1].up
        if is_apart or ps == pool.pg_num - 1:
            found += pair
    return found


def in_the_way(snapshot: Snapshot, pending: Mapping[str, PendingMove]) -> FrozenSet[str]:
    """Returns the PGs of our moves that wait for a slot and delay the steps of a pg_num change.

    They queue at OSDs that a step needs, ahead of its own PGs, or a step will change their PG.
    Moves that relieve an OSD above nearfull are left out.
    """
    needed = needed_by_steps(snapshot)
    found: List[str] = []
    for pgid, entry in pending.items():
        pg = snapshot.pgs.get(pgid)
        if pg is None or BACKFILL_WAIT not in pg.state:
            continue
        is_touched = pg_number(pgid) in snapshot.pools[pg.pool].touched
        osds = (*entry.sources, *entry.targets, *pg.acting[:1])
        is_in_the_way = is_touched or not needed.keys().isdisjoint(osds)
        if is_in_the_way and not _relieves(snapshot, entry):
            found.append(pgid)
    return frozenset(found)


def _relieves(snapshot: Snapshot, entry: PendingMove) -> bool:
    """Returns True if a shard leaves an OSD above nearfull."""
    sources = [snapshot.osds[osd] for osd in entry.sources if osd in snapshot.osds]
    return any(osd.exceeds(snapshot.nearfull_ratio) for osd in sources)

"""What is still on the OSDs that are being drained."""
from __future__ import annotations

from typing import Dict, FrozenSet, Iterable, NamedTuple, Sequence, Tuple

from ..crush.placement import NO_OSD
from ..runtime.time_slice import piecewise
from ..snapshot.model import Pg, Snapshot

#: States of a PG with all its copies; `clean` excludes degraded, undersized and remapped.
_WHOLE = frozenset(("active", "clean"))
#: Before it gives way again: about a millisecond.
_PGS_A_PIECE = 1000


class Remaining(NamedTuple):
    """The shards of one OSD, be it in their PG's up set, its acting set, or as a holder."""

    shards: int = 0
    bytes: int = 0   # on its device
    leaving: int = 0   # of these, on their way to another OSD


def remaining_shards(snapshot: Snapshot, osds: FrozenSet[int],
                     sent: Iterable[Tuple[str, Iterable[int]]] = ()) -> Dict[int, Remaining]:
    """OSD id → what is left there, of every OSD that is asked for. A pass over all PGs.

    `sent`: (pgid, OSDs that lose a shard) of moves that have not been seen to arrive. While such a
    PG peers, no set of it may show that its data is still on the OSD that it is to leave.
    """
    found = {osd: Remaining() for osd in osds}
    for pg in piecewise(snapshot.pgs.values(), _PGS_A_PIECE):
        if osds.isdisjoint(pg.up) and osds.isdisjoint(pg.acting) and osds.isdisjoint(pg.holders):
            continue
        for osd in osds.intersection((*pg.up, *pg.acting, *pg.holders)):
            size = _bytes_on(snapshot, pg, osd, pg.up if osd in pg.up else pg.holders)
            found[osd] = _with_shard(found[osd], size, osd not in pg.up)
    for pgid, sources in sent:
        moving = snapshot.pgs.get(pgid)
        for osd in osds.intersection(sources):
            if moving is not None and osd not in (*moving.up, *moving.acting, *moving.holders):
                found[osd] = _with_shard(found[osd], _bytes_on(snapshot, moving, osd, ()), True)
    return found


def may_lack_copies(snapshot: Snapshot) -> bool:
    """True unless every PG has all its shards where it wants them and has said so: else an OSD that
    is down may have the only copy of something. Ends at the first PG that does not."""
    if snapshot.unsettled_seconds > 0.0:
        return True
    return any(not _is_whole(pg, snapshot) for pg in piecewise(snapshot.pgs.values(), _PGS_A_PIECE))


def _is_whole(pg: Pg, snapshot: Snapshot) -> bool:
    states = frozenset(pg.state.split("+"))
    return (states >= _WHOLE and "stale" not in states and not pg.is_moving
            and pg.acting == pg.up and NO_OSD not in pg.up
            and len(pg.up) >= snapshot.pools[pg.pool].size)


def _bytes_on(snapshot: Snapshot, pg: Pg, osd: int, osds: Sequence[int]) -> int:
    """Bytes of a PG's shard on the device of an OSD; `osds`: by position, as far as known."""
    size = snapshot.shard_bytes(pg, osd, osds)
    return snapshot.osds[osd].device_bytes(size) if osd in snapshot.osds else size


def _with_shard(left: Remaining, size: int, is_leaving: bool) -> Remaining:
    return Remaining(left.shards + 1, left.bytes + size, left.leaving + is_leaving)

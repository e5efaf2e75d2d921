"""What is still on the OSDs that are being drained."""
from __future__ import annotations

from typing import Dict, FrozenSet, Iterable, NamedTuple, Tuple

from ..runtime.amended_map import stored_rows
from ..runtime.checkpoints import Checkpoint, no_checkpoint, with_checkpoints
from ..snapshot.model import Pg, Snapshot

_UP, _ACTING, _HOLDERS, _SIZE = map(
    Pg._fields.index, ("up", "acting", "holders", "shard_bytes"))
#: Between two checkpoints: about a millisecond.
_PGS_A_PIECE = 1000


class Remaining(NamedTuple):
    """The shards of one OSD, be it in their PG's up set, its acting set, or as a holder."""

    shards: int = 0
    bytes: int = 0
    leaving: int = 0   # of these, on their way to another OSD


def remaining_shards(snapshot: Snapshot, osds: FrozenSet[int],
                     sent: Iterable[Tuple[str, Iterable[int]]] = (),
                     checkpoint: Checkpoint = no_checkpoint) -> Dict[int, Remaining]:
    """OSD id → what is left there, of every OSD that is asked for. A pass over all PGs.

    `sent`: (pgid, OSDs that lose a shard) of moves that have not been seen to arrive. While such a
    PG peers, no set of it may show that its data is still on the OSD that it is to leave.
    """
    found = {osd: Remaining() for osd in osds}
    for row in with_checkpoints(stored_rows(snapshot.pgs), _PGS_A_PIECE, checkpoint):
        if osds.isdisjoint(row[_UP]) and osds.isdisjoint(row[_ACTING]) and (
                osds.isdisjoint(row[_HOLDERS])):
            continue
        for osd in osds.intersection((*row[_UP], *row[_ACTING], *row[_HOLDERS])):
            found[osd] = _with_shard(found[osd], row[_SIZE], osd not in row[_UP])
    for pgid, sources in sent:
        pg = snapshot.pgs.get(pgid)
        for osd in osds.intersection(sources):
            if pg is not None and osd not in (*pg.up, *pg.acting, *pg.holders):
                found[osd] = _with_shard(found[osd], pg.shard_bytes, True)
    return found


def _with_shard(left: Remaining, size: int, is_leaving: bool) -> Remaining:
    return Remaining(left.shards + 1, left.bytes + size, left.leaving + is_leaving)

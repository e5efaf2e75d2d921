"""The placement that fails: once everything in flight has arrived, with or without a plan."""
from __future__ import annotations

from typing import Collection, Dict, Iterable, List, Mapping, NamedTuple, Sequence, Tuple

from ..crush.placement import NO_OSD
from ..plan.kinds import is_same_placement
from ..plan.model import PgChange
from ..plan.usage import ShardCounts, shard_counts
from ..runtime.time_slice import piecewise
from ..snapshot.model import Pg, Pool, Snapshot, UpmapItems, shard_changes

Osds = Tuple[int, ...]

_PGS_A_PIECE = 500   # before it gives way again: about a millisecond


class Placement(NamedTuple):
    """Where the shards are once everything in flight has arrived and some changes are made."""

    snapshot: Snapshot
    changes: Mapping[str, PgChange]   # by pgid; those that apply to the snapshot
    used: Mapping[int, int]           # OSD id → used bytes
    shards: ShardCounts               # pool id → OSD id → shards

    def up(self, pg: Pg) -> Osds:
        """The up set of a PG."""
        change = self.changes.get(pg.pgid)
        return pg.up if change is None else change.up_after

    def items(self, pgid: str) -> UpmapItems:
        """The upmap items of a PG."""
        change = self.changes.get(pgid)
        return self.snapshot.upmap_items.get(pgid, ()) if change is None else change.items


def placement(snapshot: Snapshot, changes: Iterable[PgChange] = ()) -> Placement:
    """The placement after the changes; those of PGs that are elsewhere by now are left out."""
    applied: Dict[str, PgChange] = {}
    for change in changes:
        pg = snapshot.pgs.get(change.pgid)
        if pg is not None and is_same_placement(pg.up, change.up_before,
                                                snapshot.pools[pg.pool].erasure):
            applied[change.pgid] = change
    shards = shard_counts(snapshot, (
        (pg, pg.up if pg.pgid not in applied else applied[pg.pgid].up_after)
        for pg in piecewise(snapshot.pgs.values(), _PGS_A_PIECE)))
    used = {osd.id: osd.target_bytes for osd in snapshot.osds.values()}
    for change in piecewise(applied.values(), _PGS_A_PIECE):
        pg = snapshot.pgs[change.pgid]
        move_shards(used, pg, pg.up, change.up_after, snapshot.pools[pg.pool])
    return Placement(snapshot, applied, used, shards)


def move_shards(used: Dict[int, int], pg: Pg, before: Sequence[int], after: Sequence[int],
                pool: Pool) -> Tuple[List[int], List[int]]:
    """Counts a PG's shards at their new OSDs, as far as these are in `used`; returns (OSDs that
    gain one, OSDs that lose one)."""
    gains, losses = shard_changes(tuple(before), tuple(after), pool.erasure)
    gained = [osd for osd in gains if osd in used]
    lost = [osd for osd in losses if osd in used]
    for osds, up, sign in ((gained, after, 1), (lost, before, -1)):
        for osd in osds:
            used[osd] = max(0, used[osd] + sign * pool.bytes_on(pg.shard_bytes, osd, up))
    return gained, lost


class PgsByOsd:
    """The PGs that the failure of an OSD can give another up set: where CRUSH or an upmap item
    places them on it. Of other PGs CRUSH draws the same OSDs as before.

    PGs that lack an OSD are among them always: it may be the one that has failed already.
    """

    def __init__(self, placed: Placement) -> None:
        self._pgids: Dict[int, List[str]] = {}
        self._short: List[str] = []
        pools = placed.snapshot.pools
        for pg in piecewise(placed.snapshot.pgs.values(), _PGS_A_PIECE):
            for osd in {*pg.raw, *pg.up, *placed.up(pg)}:
                self._pgids.setdefault(osd, []).append(pg.pgid)
            if NO_OSD in pg.up or len(pg.up) < pools[pg.pool].size:
                self._short.append(pg.pgid)

    def of(self, osds: Collection[int]) -> List[str]:
        """The pgids, each once."""
        found = dict.fromkeys(self._short)
        for osd in sorted(osds):
            found.update(dict.fromkeys(self._pgids.get(osd, ())))
        return list(found)

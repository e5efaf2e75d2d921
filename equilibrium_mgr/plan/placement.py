"""Where shards are when everything in flight has arrived and some changes are made, with the
figures: of a plan, and of failures and cluster changes."""
from __future__ import annotations

from typing import Dict, Iterable, List, Mapping, NamedTuple, Sequence, Tuple

from ..runtime.time_slice import piecewise
from ..snapshot.model import (
    Pg, Pool, Snapshot, UpmapItems, is_same_placement, shard_changes)
from .model import PgChange, Usage
from .usage import ShardCounts, counted_usage, recount, shard_counts

_PGS_A_PIECE = 500   # between two yields: about a millisecond


class Placement(NamedTuple):
    """Where the shards are when everything in flight has arrived and some changes are made."""

    snapshot: Snapshot
    changes: Mapping[str, PgChange]   # by pgid; only changes that apply to the snapshot
    used: Mapping[int, int]           # OSD id → used bytes
    shards: ShardCounts               # pool id → OSD id → shards

    def after(self, changes: Iterable[PgChange]) -> Placement:
        """Returns the placement after the changes. Leaves out PGs whose up set is another by now,
        because the module would not send their changes either."""
        snapshot = self.snapshot
        used = dict(self.used)
        applied = {}
        shards = {pool: dict(counts) for pool, counts in self.shards.items()}
        for change in piecewise(changes, _PGS_A_PIECE):
            pg = snapshot.pgs.get(change.pgid)
            if pg is None:
                continue
            up = pg.up
            up_after = change.up_after
            if not is_same_placement(up, change.up_before, snapshot.is_positional(pg)):
                continue
            applied[change.pgid] = change
            pool = snapshot.pools[pg.pool]
            move_shards(used, pg, up, up_after, pool)
            recount(shards[pool.id], pool, pg.pgid, up, up_after)
        return Placement(snapshot, applied, used, shards)

    def usage(self) -> Usage:
        """Returns the predicted figures. Utilizations leave out OSDs that are being drained."""
        return counted_usage(self.snapshot, self.used, self.shards)

    def up(self, pg: Pg) -> Tuple[int, ...]:
        """Returns the up set of a PG."""
        change = self.changes.get(pg.pgid)
        if change is None:
            return pg.up
        return change.up_after

    def items(self, pgid: str) -> UpmapItems:
        """Returns the upmap items of a PG."""
        change = self.changes.get(pgid)
        if change is None:
            return self.snapshot.items_of(pgid)
        return change.items


def placement(snapshot: Snapshot) -> Placement:
    """Returns the placement when everything in flight has arrived."""
    used = {osd.id: osd.target_bytes for osd in snapshot.osds.values()}
    return Placement(snapshot, {}, used, shard_counts(snapshot))


def move_shards(used: Dict[int, int], pg: Pg, before: Sequence[int], after: Sequence[int],
                pool: Pool) -> Tuple[List[int], List[int]]:
    """Takes the bytes of a PG's shards off the OSDs that lose them, and adds them to the OSDs that
    gain them. Returns (OSDs that gain a shard, OSDs that lose one); leaves out OSDs not in
    `used`."""
    gains, losses = shard_changes(before, after, pool.erasure)
    gained = [osd for osd in gains if osd in used]
    lost = [osd for osd in losses if osd in used]
    for osds, up, sign in ((gained, after, 1), (lost, before, -1)):
        for osd in osds:
            used[osd] += sign * pool.bytes_on(pg.shard_bytes, osd, up)
    return gained, lost

"""Shards in flight, one by one: from where to where, how much is left, and who moves them.

Computed once an observation and kept in the ClusterView, since shards in flight are few and PGs are
many.
"""
from __future__ import annotations

from itertools import zip_longest
from typing import Container, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..crush.placement import NO_OSD
from ..execution.pending_moves import PendingMove
from ..plan.kinds import is_same_placement
from ..snapshot.immovable_reasons import PG_NUM_CHANGING
from ..snapshot.model import Pg, Snapshot, UpmapItems, shard_changes

#: Who moves a shard: equilibrium; Ceph, to restore a lost copy; Ceph, as CRUSH maps the PG
#: differently; Ceph, as pg_num changes; somebody else, by an upmap item.
PLAN, RECOVERY, CRUSH, PG_NUM, UPMAP = "plan", "recovery", "crush", "pg_num", "upmap"
ORIGINS = (PLAN, RECOVERY, CRUSH, PG_NUM, UPMAP)

#: Parts of a PG's state that tell what its shards in flight do, the most telling first.
_STATES = ("backfill_toofull", "recovery_toofull", "backfilling", "recovering", "backfill_wait",
           "recovery_wait", "backfill_unfound", "recovery_unfound", "peering", "activating",
           "stale", "unknown", "remapped")
#: The state of a shard that was sent a moment ago, before its PG reports that it moves.
PEERING = "peering"
RUNNING_STATES = ("backfilling", "recovering")

Pair = Tuple[Optional[int], int]   # (OSD that loses a shard, None where its copy is lost; target)


class Movement(NamedTuple):
    """One shard in flight."""

    pgid: str
    pool_id: int
    source: Optional[int]   # OSD that loses the shard; None where no OSD has this copy any more
    target: Optional[int]   # OSD that gets it; None where the upmap items do not tell
    bytes: int              # of the shard
    left_bytes: int         # of these, still to be copied
    state: str              # a part of the PG's state as Ceph names it, or PEERING
    origin: str             # one of ORIGINS

    @property
    def is_running(self) -> bool:
        """True while its data is being copied."""
        return self.state in RUNNING_STATES


class MovingTotals(NamedTuple):
    """Sums of shards in flight: of equilibrium's own, and of those that others move."""

    shards: int = 0
    bytes: int = 0           # still to be copied
    backfilling: int = 0     # shards that are being copied, by backfill or recovery
    backfill_wait: int = 0   # all others
    other_shards: int = 0
    other_bytes: int = 0


def movements(snapshot: Snapshot, moving: Iterable[Pg], pending: Mapping[str, PendingMove],
              sent: Container[str] = (), before: Sequence[Movement] = (),
              earlier: Optional[Snapshot] = None) -> Tuple[Movement, ...]:
    """Every shard in flight, whoever moves it, in the order of PGs.

    `moving`: the PGs of the snapshot that move. `pending`: what was sent and has not been seen to
    arrive. `sent`: PGs that were sent a while ago, by this mgr or the last one. `before` and
    `earlier`: movements and snapshot of the last observation; empty and None at the first.
    """
    origins, found = _Origins(snapshot, pending, sent, before, earlier), []
    for pg in moving:
        items, state = snapshot.upmap_items.get(pg.pgid, ()), moving_state(pg.state)
        for source, target in _pairs(pg, items, snapshot.pools[pg.pool].erasure):
            if source is None:
                source = origins.source_by_log(pg, items, target)
            osd, size = snapshot.osds.get(target), pg.shard_bytes
            if osd is not None:   # what it takes on the device
                size = osd.device_bytes(snapshot.shard_bytes(pg, osd.id, pg.up))
            found.append(Movement(pg.pgid, pg.pool, source, target, size,
                                  int(size * pg.uncopied_ratio), state,
                                  origins.of(pg, items, source, target)))
    for pgid, entry in list(pending.items()):
        found += _of_pending(snapshot, pgid, entry)
    return tuple(found)


def moving_totals(found: Sequence[Movement]) -> MovingTotals:
    """The sums of movements."""
    ours = [movement for movement in found if movement.origin == PLAN]
    others = [movement for movement in found if movement.origin != PLAN]
    running = sum(1 for movement in ours if movement.is_running)
    return MovingTotals(
        len(ours), sum(movement.left_bytes for movement in ours), running, len(ours) - running,
        len(others), sum(movement.left_bytes for movement in others))


def moving_state(state: str) -> str:
    """What the shards in flight of a PG do, by its state (`active+remapped+backfilling`)."""
    parts = state.split("+")
    return next((part for part in _STATES if part in parts), PEERING)


def _of_pending(snapshot: Snapshot, pgid: str, entry: PendingMove) -> List[Movement]:
    """The shards of a pending move that the snapshot does not show yet."""
    pg = snapshot.pgs.get(pgid)
    if pg is None or pg.is_moving or not entry.shards:
        return []
    sizes, mean = dict(entry.gains), entry.bytes // entry.shards
    pairs = list(zip_longest(entry.sources, entry.targets))[:entry.shards]
    pairs += [(None, None)] * (entry.shards - len(pairs))
    return [Movement(pgid, pg.pool, source, target, size, size, PEERING, PLAN)
            for source, target in pairs
            for size in [mean if target is None else sizes[target]]]


def _pairs(pg: Pg, items: UpmapItems, positional: bool) -> List[Pair]:
    """(source, target) of each shard in flight. What has no target goes nowhere and is left out."""
    gains, losses = shard_changes(pg.holders, pg.up, positional)
    if positional:
        return [(None if source == NO_OSD else source, target)
                for source, target in zip(losses, gains) if target != NO_OSD]
    targets = [osd for osd in gains if osd != NO_OSD]
    sources = [osd for osd in losses if osd != NO_OSD]
    by_target = {target: source for source, target in items
                 if target in targets and source in sources}
    others = iter([osd for osd in sources if osd not in by_target.values()])
    return [(by_target[target] if target in by_target else next(others, None), target)
            for target in targets]


class _Origins:
    """Tells who moves a shard.

    What was told once stays so until the shard has arrived: the reason may be gone by then, as the
    mgr sets pg_num to its last value long before the data has moved.
    """

    def __init__(self, snapshot: Snapshot, pending: Mapping[str, PendingMove],
                 sent: Container[str], before: Sequence[Movement],
                 earlier: Optional[Snapshot]) -> None:
        self._pools = snapshot.pools
        self._osds = snapshot.osds
        self._pending = pending
        self._sent = sent
        self._earlier = earlier
        self._known = {(movement.pgid, movement.target): movement.origin for movement in before}

    def of(self, pg: Pg, items: UpmapItems, source: Optional[int], target: int) -> str:
        """The origin of one shard in flight."""
        entry = self._pending.get(pg.pgid)
        if entry is not None and (target in entry.targets or not entry.targets):
            return PLAN
        known = self._known.get((pg.pgid, target))
        if known is not None and (known != RECOVERY or source is None):
            return known   # an OSD with the lost copy may come back
        if source is None:
            return RECOVERY
        ours = pg.pgid in self._sent and (self._earlier is None or known is not None)
        if target not in pg.raw and any(to == target for _, to in items):
            return PLAN if ours else UPMAP
        # it moves to an OSD of the raw mapping: that has changed, or an item has been removed
        pool = self._pools[pg.pool]
        if pool.immovable == PG_NUM_CHANGING:
            return PG_NUM
        earlier = self._earlier.pgs.get(pg.pgid) if self._earlier is not None else None
        if earlier is not None:
            return UPMAP if is_same_placement(earlier.raw, pg.raw, pool.erasure) else CRUSH
        return PLAN if ours and source not in pg.raw else CRUSH

    def source_by_log(self, pg: Pg, items: UpmapItems, target: int) -> Optional[int]:
        """The OSD that a shard of ours leaves, of a PG that is filled by its log; None otherwise.

        The new OSD is recovered while the others serve (PeeringState::choose_async_recovery): the
        PG looks as if it had lost the copy, which a mgr that has not seen it before cannot tell.
        """
        known = self._known.get((pg.pgid, target))
        ours = known == PLAN or (self._earlier is None and pg.pgid in self._sent)
        if not ours or "recover" not in pg.state or "backfill" in pg.state:
            return None
        return next((source for source, to in items if to == target and source not in pg.up
                     and source in self._osds and self._osds[source].up), None)

"""The plan that freezes a cluster: pins of all PGs whose data is not where it is wanted."""
from __future__ import annotations

from typing import Dict, List, NamedTuple, Tuple

from ..plan.model import Move, PgChange, Plan
from ..plan.options import AIMS
from ..plan.usage import usage_before_and_after
from ..runtime.checkpoints import Checkpoint, no_checkpoint, with_checkpoints
from ..snapshot.model import Pg, Snapshot
from .pins import Obstacle, Pin, pin_of, pinned_moves

#: Pins found between two checkpoints: about a millisecond.
_PGS_A_PIECE = 20

FROZEN = "every remapped PG was looked at"


class Unpinned(NamedTuple):
    """Shards of one PG that move although the plan is carried out."""

    pgid: str
    shards: int
    bytes: int      # of all of them
    copies: int     # object copies that stay misplaced
    obstacle: Obstacle


class Freeze(NamedTuple):
    """A plan that freezes, and what it leaves moving."""

    plan: Plan
    remapped_pgs: int     # that are in flight as the plan is made
    copies: int           # object copies that are in flight, as Ceph counts misplaced ones
    pinned_copies: int    # of these, are pinned
    unpinned: Tuple[Unpinned, ...]


def freeze(snapshot: Snapshot, checkpoint: Checkpoint = no_checkpoint) -> Freeze:
    """Pins every PG that is in flight, as far as it can be."""
    used = {osd.id: osd.target_bytes for osd in snapshot.osds.values()}
    changes: List[PgChange] = []
    moves: List[Move] = []
    unpinned: List[Unpinned] = []
    copies = pinned_copies = 0
    remapped = snapshot.in_flight()
    for pg in with_checkpoints(remapped.values(), _PGS_A_PIECE, checkpoint):
        pin = pin_of(snapshot, pg)
        copies += (pin.shards + pin.moving) * pg.objects
        pinned_copies += pin.shards * pg.objects
        if pin.shards:
            changes.append(_change(pg, pin))
            moves += _moves(snapshot, pg, pin, used)
        if pin.obstacle is not None and pin.moving:
            unpinned.append(Unpinned(pg.pgid, pin.moving, pin.moving * pg.shard_bytes,
                                     pin.moving * pg.objects, pin.obstacle))
    before, after = usage_before_and_after(snapshot, used, changes, checkpoint)
    plan = Plan(epoch=snapshot.epoch, stop_reason=FROZEN, moves=tuple(moves),
                changes=tuple(changes), before=before, after=after, skipped=_skipped(unpinned),
                min_compat_client=snapshot.min_compat_client, aim=AIMS[0], bounds={})
    return Freeze(plan, len(remapped), copies, pinned_copies, tuple(unpinned))


def _change(pg: Pg, pin: Pin) -> PgChange:
    return PgChange(pgid=pg.pgid, raw=pg.raw, up_before=pg.up, up_after=pin.up, items=pin.items,
                    shards=pin.shards, shard_bytes=pg.shard_bytes, objects=pg.objects)


def _moves(snapshot: Snapshot, pg: Pg, pin: Pin, used: Dict[int, int]) -> List[Move]:
    """The shards that stay, as moves of the target state: from where they would go to where they
    are. Updates `used`, the used bytes per OSD in the end."""
    moves: List[Move] = []
    for source, target in pinned_moves(pg, pin.up, snapshot.pools[pg.pool].erasure):
        before = used[source], used[target]
        used[source] -= pg.shard_bytes
        used[target] += pg.shard_bytes
        sizes = [max(1, snapshot.osds[osd].size_bytes) for osd in (source, target)]
        moves.append(Move(
            pgid=pg.pgid, source=source, target=target, bytes=pg.shard_bytes, objects=pg.objects,
            source_before=before[0] / sizes[0], source_after=used[source] / sizes[0],
            target_before=before[1] / sizes[1], target_after=used[target] / sizes[1]))
    return moves


def _skipped(unpinned: List[Unpinned]) -> Dict[str, int]:
    """Reason → shards that cannot be pinned for it."""
    counts: Dict[str, int] = {}
    for left in unpinned:
        counts[left.obstacle.reason] = counts.get(left.obstacle.reason, 0) + left.shards
    return dict(sorted(counts.items()))

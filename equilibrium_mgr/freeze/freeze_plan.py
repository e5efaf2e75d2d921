"""The plan that freezes a cluster: pins of all PGs whose data is not where it is wanted."""
from __future__ import annotations

from collections import Counter
from typing import Dict, List, NamedTuple, Tuple

from ..crush.placement import NO_OSD
from ..plan.kinds import FREEZE
from ..plan.model import PgChange, Plan, Usage
from ..plan.options import AIMS
from ..runtime.time_slice import piecewise
from ..snapshot.model import Snapshot, shard_changes
from ..snapshot.reason_codes import Why
from .pins import pin_of

#: Pins found before it gives way again: about a millisecond.
_PGS_A_PIECE = 20


class Unpinned(NamedTuple):
    """Shards of one PG that move although the plan is carried out."""

    pgid: str
    shards: int
    bytes: int      # of all of them
    obstacle: Why


class Freeze(NamedTuple):
    """A plan that freezes, and what it leaves moving."""

    plan: Plan
    remapped_pgs: int     # that are in flight as the plan is made
    shards: int           # pinned
    bytes: int            # of these
    copies: int           # object copies that Ceph counts as misplaced
    pinned_copies: int    # of these, are pinned
    unpinned: Tuple[Unpinned, ...]


def freeze(snapshot: Snapshot) -> Freeze:
    """Pins every PG that is in flight, as far as it can be. The plan has no usage yet."""
    changes: List[PgChange] = []
    unpinned: List[Unpinned] = []
    skipped: Counter[str] = Counter()   # reason → shards that cannot be pinned for it
    shards = pinned_bytes = copies = pinned_copies = 0
    remapped = snapshot.in_flight()
    given: Dict[int, int] = {}   # OSD → bytes that leave an exchange for it
    for pg in piecewise(remapped.values(), _PGS_A_PIECE):
        pin = pin_of(snapshot, pg, given)
        # what is served where it is not wanted; what no OSD serves is degraded
        leaving = shard_changes(pg.acting, pg.up, snapshot.pools[pg.pool].erasure)[1]
        copies += sum(osd != NO_OSD for osd in leaving) * pg.objects
        if pin.shards:
            shards += pin.shards
            pinned_bytes += pin.shards * pg.shard_bytes
            pinned_copies += pin.shards * pg.objects
            changes.append(PgChange(pg.pgid, pg.raw, pg.up, pin.up, pin.items, 0, pg.shard_bytes,
                                    pg.objects))
        if pin.obstacle is not None and pin.moving:
            unpinned.append(Unpinned(pg.pgid, pin.moving, pin.moving * pg.shard_bytes,
                                     pin.obstacle))
            skipped[pin.obstacle] += pin.moving
    plan = Plan(epoch=snapshot.epoch, stop_reason="every remapped PG was looked at", moves=(),
                changes=tuple(changes), before=Usage({}, {}), after=Usage({}, {}),
                skipped=dict(sorted(skipped.items())), min_compat_client=snapshot.min_compat_client,
                aim=AIMS[0], bounds={}, kind=FREEZE)
    return Freeze(plan, len(remapped), shards, pinned_bytes, copies, pinned_copies,
                  tuple(unpinned))

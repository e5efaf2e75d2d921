"""The placement that changes lead to which are still to be sent."""
from __future__ import annotations

from typing import Dict, Iterable, NamedTuple

from ..plan.kinds import is_same_placement
from ..plan.model import PgChange, Usage
from ..plan.usage import ShardCounts, counted_usage, shard_weight
from .cluster_view import ClusterView

#: Sums of weights that are not whole may leave this much of nothing.
_NO_SHARD = 1e-6


class PlannedPlacement(NamedTuple):
    """When everything in flight has arrived and the changes have been made."""

    used: Dict[int, int]    # OSD id → used bytes
    shards: ShardCounts     # pool id → OSD id → shards
    changes: int            # that were applied
    incoming: Dict[int, int]   # OSD id → bytes that these bring it
    outgoing: Dict[int, int]   # OSD id → bytes that these take from it


def planned_placement(view: ClusterView, changes: Iterable[PgChange]) -> PlannedPlacement:
    """Applies the changes to what the view will be. Changes of PGs that are elsewhere now are left
    out: they would not be sent either."""
    used = dict(view.used_soon)
    shards = {pool: dict(counts) for pool, counts in view.counts.soon.items()}
    pgs, applied = view.snapshot.pgs, 0
    incoming: Dict[int, int] = {}
    outgoing: Dict[int, int] = {}
    for change in changes:
        pg = pgs.get(change.pgid)
        if pg is None or not is_same_placement(pg.up, change.up_before,
                                               view.snapshot.pools[pg.pool].erasure):
            continue
        applied += 1
        before, after = set(change.up_before), set(change.up_after)
        pool = view.snapshot.pools[pg.pool]
        counts, weight = shards[pg.pool], shard_weight(pool, pg.pgid)
        for osds, up, step, moved in ((after - before, change.up_after, 1, incoming),
                                      (before - after, change.up_before, -1, outgoing)):
            for osd in osds:
                size = pool.bytes_on(pg.shard_bytes, osd, up)
                moved[osd] = moved.get(osd, 0) + size
                if osd in used:
                    used[osd] += step * size
                    counts[osd] = counts.get(osd, 0) + step * weight * (
                        1 if pool.is_uniform else pool.ratio_on(osd, up))
    for counts in shards.values():
        for osd in [osd for osd, count in counts.items() if count < _NO_SHARD]:
            del counts[osd]
    return PlannedPlacement(used, shards, applied, incoming, outgoing)


def planned_usage(view: ClusterView, changes: Iterable[PgChange]) -> Usage:
    """The figures of that placement."""
    planned = planned_placement(view, changes)
    return counted_usage(view.snapshot, planned.used, planned.shards)

"""The usage of a whole placement, counted PG by PG."""
from __future__ import annotations

from typing import Iterable, Mapping, Sequence, Tuple

from equilibrium_mgr.plan.model import Usage
from equilibrium_mgr.plan.usage import counted_usage, shard_counts
from equilibrium_mgr.snapshot.model import Pg, Snapshot


def placement_usage(snapshot: Snapshot, used_bytes: Mapping[int, int],
                    up_sets: Iterable[Tuple[Pg, Sequence[int]]]) -> Usage:
    """For used bytes per OSD id and (PG, up set) of every PG."""
    return counted_usage(snapshot, used_bytes, shard_counts(snapshot, up_sets))


def snapshot_usage(snapshot: Snapshot) -> Usage:
    """Once everything in flight has arrived."""
    return placement_usage(snapshot, {osd.id: osd.target_bytes for osd in snapshot.osds.values()},
                           ((pg, pg.up) for pg in snapshot.pgs.values()))

"""The usage of a whole placement, counted PG by PG."""
from __future__ import annotations

from typing import Iterable, Mapping, Sequence, Tuple

from equilibrium_mgr.plan.model import Usage
from equilibrium_mgr.plan.usage import counted_usage, shard_counts
from equilibrium_mgr.snapshot.model import Pg, Snapshot, SnapshotPgs
from equilibrium_mgr.plan.placement import placement


def placement_usage(snapshot: Snapshot, used_bytes: Mapping[int, int],
                    up_sets: Iterable[Tuple[Pg, Sequence[int]]]) -> Usage:
    """For used bytes per OSD id and (PG, up set) of every PG."""
    placed = snapshot._replace(pgs=SnapshotPgs(
        (pg.pgid, pg._replace(up=tuple(up))) for pg, up in up_sets))
    return counted_usage(snapshot, used_bytes, shard_counts(placed))


def snapshot_usage(snapshot: Snapshot) -> Usage:
    """Once everything in flight has arrived."""
    return placement(snapshot).usage()

"""What a plan foresees of each OSD, and the OSDs of which later figures tell nothing new.

While data moves, the figures of an OSD swing: its own report is newer than that of a PG that has
just arrived, and the sizes of shards are fitted to bytes that exist twice. The pools' own bytes,
and the PGs that are wanted on each OSD, are free of that. Where these are on all OSDs what the plan
foresaw, nothing has happened, and an OSD that reports more is left alone: a shard that left it
today would be wanted there again tomorrow.
"""
from __future__ import annotations

from typing import Dict, FrozenSet, List, Mapping, NamedTuple

from .state.placement_state import PlacementState

#: Bytes by which what OSDs hold may differ while nothing has happened: a ratio of their size.
_SAME = 0.002

#: An OSD that reports so much more than was foreseen is not left alone: a ratio of its size. The
#: loop plans anew for the same difference.
_MOST_SWING = 0.03


class ForeseenOsd(NamedTuple):
    """One OSD once a plan is done."""

    size_bytes: int
    used_bytes: int       # as the plan foresees them
    shards_bytes: float   # of its shards: the pools' logical bytes, each shard the mean of its pool


def foreseen_osds(placement: PlacementState) -> Dict[int, ForeseenOsd]:
    """OSD id → what the placement as it is comes to there."""
    held = _shards_bytes(placement)
    return {osd: ForeseenOsd(placement.size_bytes[i], placement.used_bytes[i], held[i])
            for i, osd in enumerate(placement.osd_ids)}


def osds_as_foreseen(placement: PlacementState,
                     foreseen: Mapping[int, ForeseenOsd]) -> FrozenSet[int]:
    """Indices of the OSDs that may be left alone as nothing has happened; none where something
    has, and none above nearfull."""
    now = foreseen_osds(placement)
    if now.keys() != foreseen.keys() or any(
            osd.size_bytes != foreseen[number].size_bytes
            or abs(osd.shards_bytes - foreseen[number].shards_bytes) > _SAME * osd.size_bytes
            for number, osd in now.items()):
        return frozenset()
    return frozenset(
        placement.index_of[number] for number, osd in now.items()
        if osd.used_bytes <= min(foreseen[number].used_bytes + _MOST_SWING * osd.size_bytes,
                                 placement.snapshot.nearfull_ratio * osd.size_bytes))


def _shards_bytes(placement: PlacementState) -> List[float]:
    held = [0.0] * len(placement.osd_ids)
    for group in placement.groups:
        pool, counts = group.pool, group.counts
        shard = pool.stored_bytes / max(1, pool.pg_num * pool.data_shards)
        if shard:
            for i in group.osds:
                held[i] += counts[i] * shard
    return held

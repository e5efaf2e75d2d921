"""Judges placements from outside: upmap items in, utilization, free space and cost out.

Nothing of the planner's own arithmetic is used. A pool's free space is what can still be written
to it before its first OSD reaches full_ratio, new data being spread evenly over the pool's shards.
Data pools are those with at least 1 % of all bytes on devices: their space is what somebody waits
for, while the space of a nearly empty pool can be had for nothing.
"""
from __future__ import annotations

from collections import Counter
from typing import Dict, Iterable, Mapping, NamedTuple, Sequence, Tuple

from equilibrium_mgr.crush.placement import NO_OSD
from equilibrium_mgr.snapshot.model import Pg, Snapshot, UpmapItems, shard_changes
from equilibrium_mgr.snapshot.upmap_items import apply_items

DATA_POOL_SHARE = 0.01
UpSets = Mapping[str, Tuple[int, ...]]   # pgid → up set


class Fill(NamedTuple):
    """A placement on its own."""

    highest: Dict[str, float]   # device class → utilization of its fullest OSD, a ratio
    free: Dict[int, float]      # pool id → bytes that still fit


class Score(NamedTuple):
    """A placement against the one before it. Bytes are signed: a pool can lose space."""

    highest: Dict[str, float]       # device class → utilization of its fullest OSD, a ratio
    free_data_bytes: float          # free space of the data pools, a sum that cannot be had at once
    gained_data_bytes: float        # growth of the data pools' free space
    moved_bytes: int
    shard_moves: int
    item_pairs: int                 # upmap pairs in the map afterwards
    broken_pgs: int                 # changed PGs whose up set their rule or a monitor forbids


def current_up(snapshot: Snapshot) -> Dict[str, Tuple[int, ...]]:
    """Where every PG is wanted now."""
    return {pgid: pg.up for pgid, pg in snapshot.pgs.items()}


def up_with(snapshot: Snapshot, items: Mapping[str, UpmapItems]) -> Dict[str, Tuple[int, ...]]:
    """Where every PG would be wanted if exactly these upmap items were set."""
    def is_out(osd: int) -> bool:
        return osd not in snapshot.osds or snapshot.osds[osd].reweight <= 0.0
    up = current_up(snapshot)
    for pgid, pg in snapshot.pgs.items():
        wanted = items.get(pgid, ())
        if wanted != snapshot.upmap_items.get(pgid, ()):
            up[pgid] = apply_items(pg.raw, wanted, is_out)
    return up


def changed_items(snapshot: Snapshot, changes: Iterable[Tuple[str, Sequence[Tuple[int, int]]]]
                  ) -> Dict[str, UpmapItems]:
    """The map's items after changes of (pgid, its new items); none takes the entry away."""
    items = {**snapshot.upmap_items, **{pgid: tuple(pairs) for pgid, pairs in changes}}
    return {pgid: pairs for pgid, pairs in items.items() if pairs}


def fill(snapshot: Snapshot, up: UpSets) -> Fill:
    """Utilization and free space once everything has arrived where `up` wants it."""
    used = {osd.id: float(osd.target_bytes) for osd in snapshot.osds.values()}
    counts: Dict[int, Counter[int]] = {pool: Counter() for pool in snapshot.pools}
    for pgid, pg in snapshot.pgs.items():
        counts[pg.pool].update(up[pgid])
        for gained in _gains(snapshot, pg, pg.up, up[pgid]):
            used[gained] += pg.shard_bytes
        for left in _gains(snapshot, pg, up[pgid], pg.up):
            used[left] -= pg.shard_bytes
    highest: Dict[str, float] = {}
    room = {}
    for osd in snapshot.osds.values():
        if not osd.has_statistics:
            continue
        room[osd.id] = max(0.0, osd.size_bytes * snapshot.full_ratio - used[osd.id])
        if osd.is_in:
            highest[osd.device_class] = max(highest.get(osd.device_class, 0.0),
                                            used[osd.id] / osd.size_bytes)
    free: Dict[int, float] = {}
    for pool in snapshot.pools.values():
        chunks = pool.pg_num * pool.data_shards   # a byte adds 1 ÷ chunks to each shard
        free[pool.id] = min((room[osd] * chunks / counts[pool.id][osd]
                             for osd in room.keys() & counts[pool.id].keys()), default=0.0)
    return Fill(highest, free)


def score(snapshot: Snapshot, items: Mapping[str, UpmapItems]) -> Score:
    """What the cluster would be with exactly these upmap items, against what it is."""
    before = fill(snapshot, current_up(snapshot))
    up = up_with(snapshot, items)
    after = fill(snapshot, up)
    free, was = (sum(figures.free[pool] for pool in data_pools(snapshot))
                 for figures in (after, before))
    moved = shards = broken = 0
    for pgid, pg in snapshot.pgs.items():
        if up[pgid] == pg.up:
            continue
        count = len(_gains(snapshot, pg, pg.up, up[pgid]))
        shards += count
        moved += count * pg.shard_bytes
        rule = snapshot.pools[pg.pool].rule
        broken += rule is not None and bool(
            rule.violation(up[pgid]) or rule.upmap_rejection(up[pgid]))
    return Score(
        highest=after.highest, free_data_bytes=free, gained_data_bytes=free - was,
        moved_bytes=moved, shard_moves=shards,
        item_pairs=sum(len(pairs) for pairs in items.values()), broken_pgs=broken)


def data_pools(snapshot: Snapshot) -> Tuple[int, ...]:
    """Ids of the pools with at least 1 % of all bytes on devices."""
    on_devices = dict.fromkeys(snapshot.pools, 0)
    for pg in snapshot.pgs.values():
        on_devices[pg.pool] += pg.shard_bytes * snapshot.pools[pg.pool].size
    least = DATA_POOL_SHARE * sum(on_devices.values())
    return tuple(pool for pool, held in on_devices.items() if held >= least)


def _gains(snapshot: Snapshot, pg: Pg, before: Tuple[int, ...],
           after: Tuple[int, ...]) -> Tuple[int, ...]:
    """OSDs that get a shard they did not have."""
    gains, _ = shard_changes(before, after, snapshot.pools[pg.pool].erasure)
    return tuple(osd for osd in gains if osd != NO_OSD)

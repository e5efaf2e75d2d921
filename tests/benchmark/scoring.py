"""Judges placements from outside: upmap items in, utilization, free space and cost out.

Nothing of the planner's own arithmetic is used. A pool's free space is what can still be written
to it before its first OSD reaches full_ratio, new data being spread evenly over the pool's shards.
Data pools are those with at least 1 % of all bytes on devices: their space is what somebody waits
for, while the space of a nearly empty pool can be had for nothing.
"""
from __future__ import annotations

from typing import Dict, Iterable, Mapping, NamedTuple, Tuple

from equilibrium_mgr.crush.placement import NO_OSD
from equilibrium_mgr.snapshot.model import Pg, Snapshot, UpmapItems, shard_changes
from equilibrium_mgr.snapshot.upmap_items import apply_items

DATA_POOL_SHARE = 0.01
UpSets = Mapping[str, Tuple[int, ...]]   # pgid → up set


class Fill(NamedTuple):
    """A placement on its own."""

    highest: Dict[str, float]   # device class → utilization of its fullest OSD, a ratio
    free: Dict[int, float]      # pool id → bytes that still fit
    room: float                 # bytes that fit if all pools grow in proportion to their data


class Score(NamedTuple):
    """A placement against the one before it. Bytes are signed: a pool can lose space."""

    highest: Dict[str, float]       # device class → utilization of its fullest OSD, a ratio
    free_data_bytes: float          # free space of the data pools, a sum that cannot be had at once
    room_bytes: float               # that fit if all pools grow in proportion to their data
    gained_data_bytes: float        # growth of the data pools' free space
    gained_all_bytes: float         # growth of that of all pools, summed in the same way
    worst_data_pool_bytes: float    # of the data pool that gained least
    moved_bytes: int
    shard_moves: int
    item_pairs: int                 # upmap pairs in the map afterwards
    item_pgs: int                   # PGs that have any
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


def changed_items(snapshot: Snapshot, changes: Iterable[Tuple[str, UpmapItems]]
                  ) -> Dict[str, UpmapItems]:
    """The map's items after changes of (pgid, its new items); none takes the entry away."""
    items = dict(snapshot.upmap_items)
    for pgid, pairs in changes:
        items.pop(pgid, None)
        if pairs:
            items[pgid] = tuple(pairs)
    return items


def fill(snapshot: Snapshot, up: UpSets) -> Fill:
    """Utilization and free space once everything has arrived where `up` wants it."""
    used = {osd.id: float(osd.target_bytes) for osd in snapshot.osds.values()}
    counts: Dict[int, Dict[int, int]] = {pool: {} for pool in snapshot.pools}
    for pgid, pg in snapshot.pgs.items():
        for osd in up[pgid]:
            if osd != NO_OSD:
                counts[pg.pool][osd] = counts[pg.pool].get(osd, 0) + 1
        for osd in _gains(snapshot, pg, pg.up, up[pgid]):
            used[osd] += pg.shard_bytes
        for osd in _gains(snapshot, pg, up[pgid], pg.up):
            used[osd] -= pg.shard_bytes
    measured = [device for device in snapshot.osds.values() if device.has_statistics]
    highest: Dict[str, float] = {}
    for device in measured:
        if device.is_in:
            highest[device.device_class] = max(highest.get(device.device_class, 0.0),
                                               used[device.id] / device.size_bytes)
    room = {device.id: max(0.0, device.size_bytes * snapshot.full_ratio - used[device.id])
            for device in measured}
    free: Dict[int, float] = {}
    for pool in snapshot.pools.values():
        chunks = pool.pg_num * pool.data_shards   # a byte adds 1 ÷ chunks to each shard
        free[pool.id] = min((room[osd] * chunks / count for osd, count in counts[pool.id].items()
                             if osd in room), default=0.0)
    return Fill(highest, free, _room(snapshot, counts, room))


def _room(snapshot: Snapshot, counts: Mapping[int, Mapping[int, int]],
          room: Mapping[int, float]) -> float:
    """What fits until the first OSD is full if all pools grow by the same ratio."""
    grown: Dict[int, float] = {}   # OSD → bytes that come to it when all pools double
    for pool in snapshot.pools.values():
        for osd, count in counts[pool.id].items():
            grown[osd] = grown.get(osd, 0.0) + (
                count * pool.stored_bytes / (pool.pg_num * pool.data_shards))
    ratio = min((room[osd] / more for osd, more in grown.items() if more > 0 and osd in room),
                default=0.0)
    return ratio * sum(pool.stored_bytes for pool in snapshot.pools.values())


def score(snapshot: Snapshot, items: Mapping[str, UpmapItems]) -> Score:
    """What the cluster would be with exactly these upmap items, against what it is."""
    before = fill(snapshot, current_up(snapshot))
    up = up_with(snapshot, items)
    after = fill(snapshot, up)
    gained = {pool: after.free[pool] - before.free[pool] for pool in snapshot.pools}
    data = [gained[pool] for pool in data_pools(snapshot)]
    moved = shards = broken = 0
    for pgid, pg in snapshot.pgs.items():
        if up[pgid] == pg.up:
            continue
        count = len(_gains(snapshot, pg, pg.up, up[pgid]))
        shards += count
        moved += count * pg.shard_bytes
        broken += _is_broken(snapshot, pg, up[pgid])
    return Score(
        highest=after.highest,
        free_data_bytes=sum(after.free[pool] for pool in data_pools(snapshot)),
        room_bytes=after.room, gained_data_bytes=sum(data),
        gained_all_bytes=sum(gained.values()), worst_data_pool_bytes=min(data, default=0.0),
        moved_bytes=moved, shard_moves=shards,
        item_pairs=sum(len(pairs) for pairs in items.values()),
        item_pgs=sum(1 for pairs in items.values() if pairs), broken_pgs=broken)


def least_moved_bytes(snapshot: Snapshot, highest: Mapping[str, float]) -> float:
    """Bytes that any plan moves that leaves no OSD above the utilization given for its class.

    They have to leave the OSDs that are above it: that they fit elsewhere is not asked for.
    """
    return sum(max(0.0, device.target_bytes - highest[device.device_class] * device.size_bytes)
               for device in snapshot.osds.values()
               if device.has_statistics and device.is_in and device.device_class in highest)


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


def _is_broken(snapshot: Snapshot, pg: Pg, up: Tuple[int, ...]) -> bool:
    rule = snapshot.pools[pg.pool].rule
    return rule is not None and bool(rule.violation(up) or rule.upmap_rejection(up))

"""The cluster once it has recovered from a failure: used bytes, PGs that cannot, free space."""
from __future__ import annotations

from collections import Counter
from typing import Any, Dict, FrozenSet, List, Mapping, NamedTuple, Optional, Set, Tuple

from ..crush.placement import NO_OSD
from ..plan.model import Usage
from ..plan.usage import ShardCounts, class_usage, counted_usage, recount
from ..runtime.time_slice import piecewise
from ..snapshot.model import Snapshot
from .failure import Failure
from .placement import Osds, Placement, move_shards
from .up_sets import UpSetsAfter

Arrival = Tuple[str, int]   # pgid, bytes of the shard that comes

_PGS_A_PIECE = 200   # before it gives way again: about a millisecond


class Recovery(NamedTuple):
    """What follows from a failure if every PG that has a place is recovered."""

    failure: Failure
    up: Mapping[str, Osds]            # pgid → up set, of PGs whose up set it changes
    used: Mapping[int, int]           # OSD id → used bytes, of the OSDs that are left
    copied_shards: int
    copied_bytes: int
    max_utilization: Optional[float]  # a ratio; None where no OSD with statistics is left
    fullest_osd: Optional[int]
    too_full: FrozenSet[str]             # PGs that would wait for a target above backfillfull_ratio
    undersized: Mapping[int, int]     # pool id → PGs that get fewer OSDs than the pool's size
    lost: Mapping[int, int]           # pool id → PGs of which too few shards are left to recover
    #: pool id → other PGs of which fewer than min_size are left: they serve no client until enough
    #: of them has been copied
    inactive: Mapping[int, int] = {}

    def severity(self) -> Tuple[Any, ...]:
        """Of two failures the worse has the larger one."""
        return (sum(self.lost.values()), sum(self.inactive.values()), self.max_utilization or 0.0,
                len(self.too_full), sum(self.undersized.values()))


def recover(placed: Placement, failure: Failure, mapped: Mapping[str, Osds]) -> Recovery:
    """What follows from a failure. `mapped`: the up sets that the mgr's map gives under it, of at
    least the PGs that it can change, with the present upmap items."""
    snapshot = placed.snapshot
    used = {osd: count for osd, count in placed.used.items() if osd not in failure.osds}
    up_sets, up = UpSetsAfter(snapshot, failure.osds), {}
    arrivals: Dict[int, List[Arrival]] = {}   # by OSD id
    freed: Dict[int, int] = {}
    undersized: Counter[int] = Counter()   # by pool id, as the other two
    lost: Counter[int] = Counter()
    inactive: Counter[int] = Counter()
    for pgid, osds in piecewise(mapped.items(), _PGS_A_PIECE):
        pg = snapshot.pgs[pgid]
        pool, before = snapshot.pools[pg.pool], placed.up(pg)
        after = up_sets.up(pg, osds, placed.items(pgid))
        left = [osd for osd in before if osd != NO_OSD and osd not in failure.osds]
        loses = not failure.osds.isdisjoint(before)
        if loses and len(left) < pool.data_shards:
            lost[pool.id] += 1
            after = tuple(osd if osd in left else NO_OSD for osd in before)
        else:
            inactive[pool.id] += loses and len(left) < pool.min_size
            undersized[pool.id] += (after != before
                                    and sum(osd != NO_OSD for osd in after) < pool.size)
        if after == before:
            continue
        up[pgid] = after
        gained, left_behind = move_shards(used, pg, before, after, pool)
        for osd in gained:
            arrivals.setdefault(osd, []).append(
                (pgid, pool.bytes_on(pg.shard_bytes, osd, after)))
        for osd in left_behind:
            freed[osd] = freed.get(osd, 0) + pool.bytes_on(pg.shard_bytes, osd, before)
    highest, fullest = _fullest(snapshot, used)
    return Recovery(
        failure, up, used, sum(map(len, arrivals.values())),
        sum(snapshot.osds[osd].device_bytes(size) for osd, shards in arrivals.items()
            for _, size in shards), highest, fullest,
        _too_full(placed, arrivals, freed), +undersized, +lost, +inactive)


def _fullest(snapshot: Snapshot, used: Mapping[int, int]) -> Tuple[Optional[float], Optional[int]]:
    ratios = [(used[osd] / snapshot.osds[osd].size_bytes, osd) for osd in used
              if snapshot.osds[osd].has_statistics and snapshot.osds[osd].is_in
              and snapshot.osds[osd].size_bytes > 0]
    return max(ratios) if ratios else (None, None)


def _too_full(placed: Placement, arrivals: Mapping[int, List[Arrival]],
              freed: Mapping[int, int]) -> FrozenSet[str]:
    """PGs that do not fit on a target below backfillfull_ratio, where Ceph refuses a backfill that
    would lead above it; what fits is let in, in the order given, and what moves away is gone."""
    found: Set[str] = set()
    for osd, shards in arrivals.items():
        entry = placed.snapshot.osds[osd]
        if not entry.has_statistics:
            continue
        room = (placed.snapshot.backfillfull_ratio * entry.size_bytes
                - placed.used[osd] + freed.get(osd, 0))
        for pgid, size in shards:
            if size > room:
                found.add(pgid)
            else:
                room -= size
    return frozenset(found)


class FailureFigures(NamedTuple):
    """The figures of a recovery, and of the placement that failed."""

    recovery: Recovery
    before: Usage
    after: Usage


def failure_figures(placed: Placement, recovery: Recovery, before: Usage) -> FailureFigures:
    """The usage of the OSDs that are left. `before`: `usage_of` the placement."""
    snapshot, failed = placed.snapshot, recovery.failure.osds
    shards = {pool: dict(counts) for pool, counts in placed.shards.items()}
    for pgid, up in piecewise(recovery.up.items(), _PGS_A_PIECE):
        pg = snapshot.pgs[pgid]
        recount(shards[pg.pool], snapshot.pools[pg.pool], pgid, placed.up(pg), up)
    left = snapshot._replace(osds={
        osd.id: osd for osd in snapshot.osds.values() if osd.id not in failed})
    return FailureFigures(recovery, before, _usage(left, recovery.used, shards))


def usage_of(placed: Placement) -> Usage:
    """The usage of the placement before the failure."""
    return _usage(placed.snapshot, placed.used, placed.shards)


def _usage(snapshot: Snapshot, used: Mapping[int, int], shards: ShardCounts) -> Usage:
    """OSDs that are being drained count: CRUSH places on them what is recovered."""
    return counted_usage(snapshot, used, shards, classes=class_usage(
        snapshot, used, with_drained=True))

"""The cluster once it has recovered from a failure: used bytes, PGs that cannot, free space.

The worst failures of one failure domain each, by type.
"""
from __future__ import annotations

from collections import Counter
from typing import (
    Any, Callable, Dict, FrozenSet, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple)

from ..crush.placement import NO_OSD
from ..plan.model import Usage
from ..plan.usage import class_usage, counted_usage, recount
from ..runtime.time_slice import give_way, piecewise
from .failure import (
    Failure, Osds, Placement, UpSetsAfter, failure_domains, move_shards, pgs_by_osd)


Arrival = Tuple[str, int]   # pgid, bytes of the shard that comes

_PGS_A_PIECE = 200   # before it gives way again: about a millisecond


class Recovery(NamedTuple):
    """What follows from a failure if every PG that has a place is recovered."""

    failure: Failure
    used: Mapping[int, int]           # OSD id → used bytes, of the OSDs that are left
    copied_shards: int
    copied_bytes: int
    too_full: FrozenSet[str]          # PGs that would wait for a target above backfillfull_ratio
    undersized: Mapping[int, int]     # pool id → PGs that get fewer OSDs than the pool's size
    lost: Mapping[int, int]           # pool id → PGs of which too few shards are left to recover
    #: pool id → other PGs of which fewer than min_size are left: they serve no client until enough
    #: of them has been copied
    inactive: Mapping[int, int]
    after: Usage                      # of the OSDs that are left

    @property
    def fullest(self) -> Tuple[Optional[float], Optional[int]]:
        """(the highest utilization, a ratio, and its OSD); None where no OSD with statistics is
        left."""
        return max(((found.max, found.fullest_osd) for found in self.after.classes.values()),
                   default=(None, None))

    def severity(self) -> Tuple[Any, ...]:
        """Of two failures the worse has the larger one."""
        return (sum(self.lost.values()), sum(self.inactive.values()), self.fullest[0] or 0.0,
                len(self.too_full), sum(self.undersized.values()))


def recover(placed: Placement, failure: Failure, mapped: Mapping[str, Osds]) -> Recovery:
    """What follows from a failure. `mapped`: the up sets that the mgr's map gives under it, of at
    least the PGs that it can change, with the present upmap items."""
    snapshot = placed.snapshot
    used = {osd: count for osd, count in placed.used.items() if osd not in failure.osds}
    shards = {pool: dict(counts) for pool, counts in placed.shards.items()}
    up_sets = UpSetsAfter(snapshot, failure.osds)
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
        recount(shards[pool.id], pool, pgid, before, after)
        gained, left_behind = move_shards(used, pg, before, after, pool)
        for osd in gained:
            arrivals.setdefault(osd, []).append(
                (pgid, pool.bytes_on(pg.shard_bytes, osd, after)))
        for osd in left_behind:
            freed[osd] = freed.get(osd, 0) + pool.bytes_on(pg.shard_bytes, osd, before)
    survivors = snapshot._replace(osds={
        osd.id: osd for osd in snapshot.osds.values() if osd.id not in failure.osds})
    return Recovery(
        failure, used, sum(map(len, arrivals.values())),
        sum(snapshot.osds[osd].device_bytes(size) for osd, sizes in arrivals.items()
            for _, size in sizes),
        _too_full(placed, arrivals, freed), +undersized, +lost, +inactive,
        usage_of(Placement(survivors, {}, used, shards)))


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


def usage_of(placed: Placement) -> Usage:
    """The usage of a placement. OSDs that are being drained count: CRUSH places on them what is
    recovered."""
    return counted_usage(placed.snapshot, placed.used, placed.shards, classes=class_usage(
        placed.snapshot, placed.used, with_drained=True))


#: Of each type so many are kept, with all figures.
KEPT_FAILURES = 5

#: (OSDs that fail, pgids) → up sets under that failure, as the mgr's map gives them.
UpSetsWithout = Callable[[Sequence[int], Sequence[str]], Mapping[str, Osds]]


class TypeFailures(NamedTuple):
    """The failures of one bucket of a type."""

    failures: int            # how many there are
    worst: List[Recovery]    # the worst first
    computed: int            # of them, those with the most data


def recovery_from(placed: Placement, failure: Failure, pgs: Mapping[int, Sequence[str]],
                  up_sets_without: UpSetsWithout) -> Recovery:
    """What follows from a failure of the placement. `pgs`: `pgs_by_osd` of it."""
    failed = sorted(failure.osds)
    mapped = up_sets_without(failed, list(dict.fromkeys(
        pgid for osd in (NO_OSD, *failed) for pgid in pgs.get(osd, ()))))
    return recover(placed, failure, {pgid: up for pgid, up in mapped.items()
                                     if pgid in placed.snapshot.pgs})


def worst_failures(placed: Placement, up_sets_without: UpSetsWithout) -> Dict[str, TypeFailures]:
    """By type, the failures of hosts and of what the rules keep shards apart by.

    Of each type the one with the most data is computed, then the second of each, until `give_way`
    tells to end: for each the mgr copies its map, and a cluster may have 10,000 OSDs.
    """
    pgs = pgs_by_osd(placed)
    ranked = {type_name: sorted(failures, key=lambda failure: -sum(
        placed.used[osd] for osd in failure.osds))
        for type_name, failures in failure_domains(placed.snapshot).items()}
    worst: Dict[str, List[Recovery]] = {type_name: [] for type_name in ranked}
    computed: Counter[str] = Counter()
    for number in range(max(map(len, ranked.values()), default=0)):
        for type_name, failures in ranked.items():
            if number < len(failures) and (number == 0 or give_way()):
                computed[type_name] += 1
                found = worst[type_name]
                found.append(recovery_from(placed, failures[number], pgs, up_sets_without))
                found.sort(key=Recovery.severity, reverse=True)
                del found[KEPT_FAILURES:]
    return {type_name: TypeFailures(len(failures), worst[type_name], computed[type_name])
            for type_name, failures in ranked.items()}

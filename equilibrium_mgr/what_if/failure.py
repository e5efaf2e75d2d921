"""What fails: an OSD, a host or another bucket, or several; the failure domains of a cluster.

Up sets after a failure: what CRUSH gives then, and what the monitor leaves of the upmap items.

The rules are those of OSDMap::_apply_upmap and OSDMap::check_pg_upmaps (Ceph 16 to 20).

The cluster once it has recovered from a failure: used bytes, PGs that cannot, free space; and the
worst failures of one failure domain each, by type.
"""
from __future__ import annotations

from collections import Counter
from typing import (
    Any, Callable, Dict, FrozenSet, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Set,
    Tuple)

from ..crush.hierarchy import OSD_TYPE
from ..crush.placement import NO_OSD
from ..crush.upmap_check import UpmapCheck
from ..plan.model import Usage
from ..plan.options import osd_id
from ..plan.placement import Placement, move_shards
from ..plan.usage import class_usage, counted_usage, recount
from ..runtime.time_slice import give_way, grouped, piecewise
from ..snapshot.model import Pg, Pool, Snapshot, UpmapItems
from ..snapshot.upmap_items import apply_items


HOST_TYPE = "host"
#: In the names of Ceph's shadow buckets, before the device class.
SHADOW = "~"


class Failure(NamedTuple):
    """OSDs that fail together."""

    name: str           # as it was asked for: osd.3, the bucket's name, several with commas
    type_name: str      # osd, host, rack ...; empty for several
    osds: FrozenSet[int]   # of them that are in: others serve nothing


def find_failure(snapshot: Snapshot, text: str,
                 every: Optional[Mapping[str, Failure]] = None) -> Optional[Failure]:
    """What a text names: `3`, `osd.3`, a bucket's name, or several of them with commas between.
    None where something of it is not in the CRUSH map. `every`: failures by name, where these are
    known: they take milliseconds."""
    every, found = every or failures_by_name(snapshot), []
    for name in map(str.strip, text.split(",")):
        osd = osd_id(name)
        one = every.get(name if osd is None else f"osd.{osd}")
        if one is None:
            return None
        found.append(one)
    return found[0] if len(found) == 1 else Failure(
        ",".join(one.name for one in found), "",
        frozenset().union(*(one.osds for one in found)))


def failure_domains(snapshot: Snapshot) -> Dict[str, List[Failure]]:
    """Type → the failures of one bucket of that type, by name; of hosts, and of the types that the
    rules of the pools keep shards apart by. Buckets without OSDs that are in are left out."""
    types = {HOST_TYPE}
    for rule_id in {pool.rule_id for pool in snapshot.pools.values()}:
        chosen = {str(step["type"])
                  for step in snapshot.crush.rules.get(rule_id, {}).get("steps", [])
                  if str(step.get("op", "")).startswith("choose") and "type" in step}
        types |= chosen - {OSD_TYPE} or {OSD_TYPE}
    found: Dict[str, List[Failure]] = {type_name: [] for type_name in sorted(types)}
    for failure in failures_by_name(snapshot).values():
        if failure.type_name in types and failure.osds and SHADOW not in failure.name:
            found[failure.type_name].append(failure)
    return {type_name: failures for type_name, failures in found.items() if failures}


def failures_by_name(snapshot: Snapshot) -> Dict[str, Failure]:
    """The failure of each bucket, by name, and of each OSD, by number."""
    crush = snapshot.crush
    members: List[Tuple[str, str, Iterable[int]]] = [
        (bucket.name, bucket.type_name, crush.subtree(bucket.id).weights)
        for bucket in sorted(crush.buckets.values(), key=lambda bucket: bucket.name)]
    members += [(f"osd.{osd}", OSD_TYPE, [osd]) for osd in sorted(snapshot.osds)]
    return {name: Failure(name, type_name, frozenset(
        osd for osd in osds if not snapshot.is_out(osd))) for name, type_name, osds in members}


Osds = Tuple[int, ...]
_PGS_A_PIECE = 500   # before it gives way again: about a millisecond


class UpSetsAfter:
    """The up sets of PGs once some OSDs are out."""

    def __init__(self, snapshot: Snapshot, failed: FrozenSet[int]) -> None:
        self._snapshot = snapshot
        self._failed = failed
        self._checks: Dict[int, UpmapCheck] = {}

    def up(self, pg: Pg, mapped: Osds, items: UpmapItems) -> Osds:
        """The up set of a PG that is to have `items`.

        `mapped`: as the mgr maps it under the failure, with the items that it has now, none
        cleaned. Some rules leave OSDs in it that are out (chooseleaf of type osd, where all below
        a bucket are): these have failed, so they are not up.
        """
        snapshot, pool, up = self._snapshot, self._snapshot.pools[pg.pool], mapped
        now = snapshot.items_of(pg.pgid)
        if now or items:
            # what CRUSH alone gives under the failure: it keeps what it chose before and is in
            raw = list(mapped)
            for source, target in reversed(now):
                if target in raw and source not in raw and source in pg.raw and (
                        not self._is_out(source)):
                    raw[raw.index(target)] = source
            up = self._cleaned(pool, tuple(raw), items)
        if self._failed.isdisjoint(up):
            return up
        if pool.erasure:
            return tuple(NO_OSD if osd in self._failed else osd for osd in up)
        return tuple(osd for osd in up if osd not in self._failed)

    def _is_out(self, osd: int) -> bool:
        return osd in self._failed or self._snapshot.is_out(osd)

    def _cleaned(self, pool: Pool, raw: Osds, items: UpmapItems) -> Osds:
        """The up set once the monitor has cleaned the items, epoch by epoch."""
        rule = self._snapshot.crush.rules.get(pool.rule_id)
        if rule is not None and pool.id not in self._checks:
            self._checks[pool.id] = UpmapCheck(self._snapshot.crush, rule, pool.size)
        while items and rule is not None:
            up = apply_items(raw, items, self._is_out)
            if any(map(self._is_out, up)) or self._checks[pool.id].rejection(up) is not None:
                return raw   # the monitor cancels items that lead to this
            kept = tuple((source, target) for source, target in items
                         if source in raw and not self._is_out(target))
            if kept == items:
                return up
            items = kept
        return raw


def pgs_by_osd(placed: Placement) -> Dict[int, List[str]]:
    """The PGs that the failure of an OSD can give another up set: where CRUSH or an upmap item
    places them on it. Of other PGs CRUSH draws the same OSDs as before.

    Under NO_OSD those that lack an OSD: it may be the one that has failed already.
    """
    snapshot = placed.snapshot
    return grouped(
        (osd, pg.pgid) for pg in piecewise(snapshot.pgs.values(), _PGS_A_PIECE)
        for osd in {*pg.raw, *pg.up, *placed.up(pg),
                    *[NO_OSD] * (len(pg.up) < snapshot.pools[pg.pool].size)})


# -- the cluster once it has recovered -------------------------------------------------------------

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

    Of each type one after the other is computed, the one with the most data first, until `give_way`
    tells to end, which hears how many there are: for each the mgr copies its map, and a cluster may
    have 10,000 OSDs.
    """
    pgs, worst, computed = pgs_by_osd(placed), {}, 0
    for type_name, failures in failure_domains(placed.snapshot).items():
        found: List[Recovery] = []
        for failure in sorted(failures, key=lambda one: -sum(placed.used[osd] for osd in one.osds)):
            if not found or give_way(computed):
                found.append(recovery_from(placed, failure, pgs, up_sets_without))
                computed += 1
        worst[type_name] = TypeFailures(len(failures), sorted(
            found, key=Recovery.severity, reverse=True)[:KEPT_FAILURES], len(found))
    return worst

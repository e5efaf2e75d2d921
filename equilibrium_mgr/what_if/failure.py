"""Failures of OSDs, hosts and other buckets, and the cluster after recovery.

The up sets after a failure are those that CRUSH gives then, with the upmap items that the monitor
keeps. The rules are those of OSDMap::_apply_upmap and OSDMap::check_pg_upmaps (Ceph 16 to 20).

For each type of failure domain, such as hosts or racks, the file finds the worst failures of one.
"""
from __future__ import annotations

from collections import Counter, defaultdict
from math import inf
from operator import attrgetter
from typing import (
    Any, Callable, Dict, FrozenSet, Iterable, List, Mapping, NamedTuple, Optional,
    Sequence, Set, Tuple)

from ..crush.hierarchy import OSD_TYPE
from ..crush.placement import NO_OSD
from ..crush.upmap_check import UpmapCheck
from ..plan.model import PgChange, Usage
from ..plan.options import osd_id
from ..plan.placement import Placement, move_shards
from ..plan.usage import class_usage, counted_usage, recount
from ..runtime.time_slice import give_way, piecewise
from ..snapshot.immovable_reasons import NO_OSD_FOR_SHARD
from ..snapshot.model import Osd, Pg, Pool, SizedShards, Snapshot, SnapshotPgs, UpmapItems
from ..snapshot.upmap_items import apply_items


HOST_TYPE = "host"
#: In the names of Ceph's shadow buckets, before the device class.
SHADOW = "~"


class Failure(NamedTuple):
    """OSDs that fail together."""

    name: str           # as an operator gives it: osd.3, a bucket's name, several with commas
    type_name: str      # osd, host, rack ...; empty for several
    osds: FrozenSet[int]   # only OSDs that are in: others serve nothing


def find_failure(snapshot: Snapshot, text: str,
                 every: Mapping[str, Failure] = {}) -> Optional[Failure]:
    """Returns the failure that a text names: `3`, `osd.3`, a bucket's name, or several with commas.

    Returns None if a name is not in the CRUSH map. `every`: `failures_by_name`, if already known,
    because it takes milliseconds.
    """
    every = every or failures_by_name(snapshot)
    found: List[Failure] = []
    for name in map(str.strip, text.split(",")):
        osd = osd_id(name)
        one = every.get(name if osd is None else f"osd.{osd}")
        if one is None:
            return None
        found.append(one)
    if len(found) == 1:
        return found[0]
    osds = frozenset().union(*[one.osds for one in found])
    return Failure(",".join([one.name for one in found]), "", osds)


def failure_domains(snapshot: Snapshot) -> Dict[str, List[Failure]]:
    """Returns type → the failures of one bucket of that type, by name.

    The types are hosts and the failure domains of the pools' rules. Buckets without OSDs that are
    in are left out.
    """
    types = {HOST_TYPE}
    for rule_id in {pool.rule_id for pool in snapshot.pools.values()}:
        types |= _domain_types(snapshot.crush.rules.get(rule_id, {}))
    found: Dict[str, List[Failure]] = defaultdict(list)
    for failure in failures_by_name(snapshot).values():
        if failure.type_name in types and failure.osds and SHADOW not in failure.name:
            found[failure.type_name].append(failure)
    return dict(sorted(found.items()))


def _domain_types(rule: Mapping[str, Any]) -> Set[str]:
    """Returns the types of a rule's choose steps; OSDs only if there is no other."""
    chosen: Set[str] = set()
    for step in rule.get("steps", []):
        if str(step.get("op", "")).startswith("choose") and "type" in step:
            chosen.add(str(step["type"]))
    return chosen - {OSD_TYPE} or {OSD_TYPE}


def failures_by_name(snapshot: Snapshot) -> Dict[str, Failure]:
    """Returns name → failure of each bucket, in the order of the names, then of each OSD, as
    `osd.3`."""
    crush = snapshot.crush
    is_in = frozenset([osd for osd in snapshot.osds if not snapshot.is_out(osd)])
    failures: List[Failure] = []
    for bucket in sorted(crush.buckets.values(), key=attrgetter("name")):
        osds = is_in.intersection(crush.subtree(bucket.id).weights)
        failures.append(Failure(bucket.name, bucket.type_name, osds))
    for osd in sorted(snapshot.osds):
        failures.append(Failure(f"osd.{osd}", OSD_TYPE, is_in.intersection((osd,))))
    return {failure.name: failure for failure in failures}


Osds = Tuple[int, ...]
_PGS_A_PIECE = 200   # before it gives way again: about a millisecond


class UpSetsAfter:
    """The up sets of PGs once some OSDs are out."""

    def __init__(self, snapshot: Snapshot, failed: FrozenSet[int]) -> None:
        self._snapshot = snapshot
        self._failed = failed
        self._checks: Dict[int, UpmapCheck] = {}

    def up(self, pg: Pg, mapped: Osds, items: UpmapItems) -> Osds:
        """Returns the up set of a PG with `items`.

        `mapped`: the mgr's mapping under the failure, with the present items and nothing cleaned.
        Some rules leave OSDs in it that are out (chooseleaf of type osd, if all OSDs below a bucket
        are out). These have failed, so they are not up.
        """
        pool = self._snapshot.pools[pg.pool]
        up = mapped
        now = self._snapshot.items_of(pg.pgid)
        if now or items:
            up = self._cleaned(pool, self._raw(pg, mapped, now), items)
        if self._failed.isdisjoint(up):
            return up
        if pool.erasure:
            return tuple([NO_OSD if osd in self._failed else osd for osd in up])
        return tuple([osd for osd in up if osd not in self._failed])

    def _raw(self, pg: Pg, mapped: Osds, items: UpmapItems) -> Osds:
        """Returns the raw CRUSH mapping under the failure: `mapped` without its items.

        CRUSH keeps the OSDs that it chose before if they are in.
        """
        raw = list(mapped)
        for source, target in reversed(items):
            if target in raw and source not in raw:
                if source in pg.raw and not self._is_out(source):
                    raw[raw.index(target)] = source
        return tuple(raw)

    def _is_out(self, osd: int) -> bool:
        return osd in self._failed or self._snapshot.is_out(osd)

    def _cleaned(self, pool: Pool, raw: Osds, items: UpmapItems) -> Osds:
        """Returns the up set after the monitor has cleaned the items, epoch by epoch."""
        rule = self._snapshot.crush.rules.get(pool.rule_id)
        if rule is None:
            return raw
        if pool.id not in self._checks:
            self._checks[pool.id] = UpmapCheck(self._snapshot.crush, rule, pool.size)
        while items:
            up = apply_items(raw, items, self._is_out)
            # the monitor cancels the items
            if any(map(self._is_out, up)):
                return raw
            if self._checks[pool.id].rejection(up) is not None:
                return raw
            kept = tuple([(source, target) for source, target in items
                          if source in raw and not self._is_out(target)])
            if kept == items:
                return up
            items = kept
        return raw


def pgs_by_osd(placed: Placement) -> Dict[int, List[str]]:
    """Returns OSD → the PGs whose up set its failure can change: CRUSH or an item uses the OSD.

    CRUSH draws the same OSDs as before for other PGs. NO_OSD → the PGs that lack an OSD, because
    the OSD that they lack may be the one that has already failed.
    """
    snapshot = placed.snapshot
    found: Dict[int, List[str]] = defaultdict(list)
    for pg in piecewise(snapshot.pgs.values(), _PGS_A_PIECE):
        osds = {*pg.raw, *pg.up, *placed.up(pg)}
        if len(pg.up) < snapshot.pools[pg.pool].size:
            osds.add(NO_OSD)
        for osd in osds:
            found[osd].append(pg.pgid)
    return found


# -- the cluster after recovery --------------------------------------------------------------------

Highest = Tuple[Optional[float], Optional[int]]   # (utilization, OSD); None without OSDs


class Recovery(NamedTuple):
    """The cluster after a failure, once every PG that has a place is recovered."""

    failure: Failure
    used: Mapping[int, int]           # surviving OSD → used bytes
    copied_shards: int
    copied_bytes: int
    #: PGs that never find room below backfillfull_ratio → the bytes that they would copy
    too_full: Mapping[str, int]
    undersized: Mapping[int, int]     # pool id → PGs that get fewer OSDs than the pool's size
    unplaced_bytes: int               # of the shards for which these have no OSD
    lost: Mapping[int, int]           # pool id → PGs with too few shards left to recover
    #: pool id → other PGs with fewer than min_size shards left: they serve no client until enough
    #: shards have been copied
    inactive: Mapping[int, int]
    after: Usage                      # of the surviving OSDs
    up: Mapping[str, Osds]            # pgid → up set then, of the PGs that move
    peak: Highest                     # the highest utilization of an OSD until then

    @property
    def fullest(self) -> Highest:
        """Returns (the highest utilization, a ratio, and its OSD), or None for both.

        None: no OSD with statistics is left.
        """
        return max([(found.max, found.fullest_osd) for found in self.after.classes.values()],
                   default=(None, None))

    @property
    def no_room_bytes(self) -> int:
        """Returns the bytes that never find room."""
        return sum(self.too_full.values())

    def severity(self) -> Tuple[Any, ...]:
        """Returns a key to compare failures: the worse has the larger one."""
        return (sum(self.lost.values()), sum(self.inactive.values()), self.fullest[0] or 0.0,
                len(self.too_full), sum(self.undersized.values()))


def recover(placed: Placement, failure: Failure, mapped: Mapping[str, Osds]) -> Recovery:
    """Returns the cluster after a failure.

    `mapped`: the up sets of the mgr's map under the failure, with the present upmap items, of at
    least all PGs that the failure can change.
    """
    snapshot = placed.snapshot
    failed = failure.osds
    up_sets = UpSetsAfter(snapshot, failed)
    undersized: Counter[int] = Counter()   # by pool id, as the other two
    unplaced = 0
    lost: Counter[int] = Counter()
    inactive: Counter[int] = Counter()
    up: Dict[str, Osds] = {}
    for pgid, osds in piecewise(mapped.items(), _PGS_A_PIECE):
        pg = snapshot.pgs[pgid]
        number = pg.pool
        pool = snapshot.pools[number]
        before = placed.up(pg)
        after = up_sets.up(pg, osds, placed.items(pgid))
        left = [osd for osd in before if osd != NO_OSD and osd not in failed]
        loses = not failed.isdisjoint(before)
        if loses and len(left) < pool.data_shards:
            lost[number] += 1
            after = tuple([osd if osd in left else NO_OSD for osd in before])
        else:
            if loses and len(left) < pool.min_size:
                inactive[number] += 1
            missing = _unplaced(pool, before, after, failed)
            if after != before and missing > 0:
                undersized[number] += 1
                unplaced += missing * pg.shard_bytes
        if after != before:
            up[pgid] = after
    return _recovered(placed, failure, up)._replace(
        undersized=undersized, unplaced_bytes=unplaced, lost=lost, inactive=inactive)


def redirected(placed: Placement, recovery: Recovery, changes: Iterable[PgChange]) -> Recovery:
    """Returns the same cluster if PGs get other up sets than CRUSH's."""
    up = dict(recovery.up)
    for change in piecewise(changes, _PGS_A_PIECE):
        up[change.pgid] = change.up_after
    return _recovered(placed, recovery.failure, up)._replace(
        undersized=recovery.undersized, unplaced_bytes=recovery.unplaced_bytes,
        lost=recovery.lost, inactive=recovery.inactive)


def _recovered(placed: Placement, failure: Failure, up: Mapping[str, Osds]) -> Recovery:
    """Returns the cluster when the PGs that move are on the OSDs of `up`, as if no PG lacked an
    OSD."""
    snapshot = placed.snapshot
    used = {osd: count for osd, count in placed.used.items() if osd not in failure.osds}
    shards = {pool: dict(counts) for pool, counts in placed.shards.items()}
    copies: Dict[str, _Copies] = {}
    for pgid, after in piecewise(up.items(), _PGS_A_PIECE):
        pg = snapshot.pgs[pgid]
        pool = snapshot.pools[pg.pool]
        before = placed.up(pg)
        recount(shards[pool.id], pool, pgid, before, after)
        gained, left = move_shards(used, pg, before, after, pool)
        coming = [(osd, pool.bytes_on(pg.shard_bytes, osd, after)) for osd in gained]
        for osd in _kept(pool, before, after, failure.osds).intersection(left):
            used[osd] += pool.bytes_on(pg.shard_bytes, osd, before)
            left.remove(osd)
        leaving = [(osd, pool.bytes_on(pg.shard_bytes, osd, before)) for osd in left]
        copies[pgid] = _Copies(not failure.osds.isdisjoint(before), coming, leaving)
    too_full, peak = _arrive(placed, failure.osds, copies)
    survivors = snapshot._replace(osds={
        osd.id: osd for osd in snapshot.osds.values() if osd.id not in failure.osds})
    return Recovery(
        failure=failure,
        used=used,
        copied_shards=sum([len(one.coming) for one in copies.values()]),
        copied_bytes=sum([one.device_bytes(snapshot) for one in copies.values()]),
        too_full=too_full,
        undersized={},
        unplaced_bytes=0,
        lost={},
        inactive={},
        after=usage_of(Placement(survivors, {}, used, shards)),
        up=up,
        peak=peak)


def at_failure(placed: Placement, recovery: Recovery) -> Snapshot:
    """Returns the cluster at the moment when the failed OSDs are out and nothing is copied yet."""
    snapshot = placed.snapshot
    failed = recovery.failure.osds
    pgs = SnapshotPgs(snapshot.pgs)
    moving: Dict[str, Pg] = {}
    for pgid, after in piecewise(recovery.up.items(), _PGS_A_PIECE):
        pg = snapshot.pgs[pgid]
        pool = snapshot.pools[pg.pool]
        before = placed.up(pg)
        left = tuple([osd for osd in before if osd not in failed])
        shards = len(left) - left.count(NO_OSD)
        state = _MOVES
        if shards < pool.size:
            state = _LACKS
        if shards < pool.min_size:
            state = _PEERED   # Ceph recovers it first
        immovable = pg.immovable
        if immovable == NO_OSD_FOR_SHARD:   # CRUSH gives it one when the OSDs are out
            immovable = None
        if snapshot.is_positional(pg):
            left = tuple([NO_OSD if osd in failed else osd for osd in before])
        # CRUSH chooses these: monitors have dropped items that name a failed OSD
        moving[pgid] = pg._replace(
            raw=after, up=after, acting=left, holders=left, doubtful_holders=False, state=state,
            immovable=immovable, uncopied_ratio=1.0, uncopied={})
    pgs.update(moving)
    pgs.moving = moving
    osds: Dict[int, Osd] = {}
    for osd in snapshot.osds.values():
        if osd.id in failed:
            osds[osd.id] = osd._replace(up=False, is_in=False, reweight=0.0)
        else:
            more = recovery.used[osd.id] - osd.target_bytes
            osds[osd.id] = osd._replace(inbound_bytes=osd.inbound_bytes + more)
    return snapshot._replace(pgs=pgs, osds=osds)


#: States of PGs that wait to be copied.
_MOVES = "active+remapped+backfill_wait"
_LACKS = "active+undersized+degraded+remapped+backfill_wait"
_PEERED = "undersized+degraded+remapped+backfill_wait+peered"


def _unplaced(pool: Pool, before: Osds, after: Osds, failed: FrozenSet[int]) -> int:
    """Returns how many shards of a PG have no OSD. If a shard of an erasure-coded PG gets no new
    OSD, its old one goes on to serve it unless that has failed."""
    if not pool.erasure:
        return pool.size - len(after)
    old = _without_osd(before, after)
    return len([osd for osd in old if osd == NO_OSD or osd in failed])


def _without_osd(before: Osds, after: Osds) -> List[int]:
    """Returns the old OSDs of the shards that get none."""
    return [old for old, new in zip(before, after) if new == NO_OSD]


def _kept(pool: Pool, before: Osds, after: Osds, failed: FrozenSet[int]) -> FrozenSet[int]:
    """Returns the OSDs that keep their shard of a PG although it leaves them: those that serve it
    on, and all if the PG never becomes clean, because nothing of it is deleted until then."""
    if _unplaced(pool, before, after, failed) > 0:
        return frozenset(before)
    if pool.erasure:
        return frozenset(_without_osd(before, after))
    return frozenset()


class _Copies(NamedTuple):
    """The shards of one PG that are copied, and those that are deleted once all of them are."""

    lacks: bool   # a shard of it is lost: Ceph copies it before others
    coming: SizedShards
    leaving: SizedShards

    def device_bytes(self, snapshot: Snapshot) -> int:
        """Returns the device bytes that are copied."""
        return sum([snapshot.osds[osd].device_bytes(size) for osd, size in self.coming])


def _arrive(placed: Placement, failed: FrozenSet[int],
            copies: Mapping[str, _Copies]) -> Tuple[Mapping[str, int], Highest]:
    """Copies PG by PG. Returns (PGs that never find room on all their targets → the device bytes
    that they would copy, the highest utilization of an OSD on the way).

    Ceph refuses a backfill that would exceed backfillfull_ratio. A PG frees the OSDs that it leaves
    when all of it has arrived, so that PGs may wait for each other forever.
    """
    snapshot = placed.snapshot
    ratio = snapshot.backfillfull_ratio
    room = dict.fromkeys(snapshot.osds, inf)   # below that ratio, in bytes
    for osd in snapshot.osds.values():
        if osd.has_statistics:
            room[osd.id] = ratio * osd.size_bytes - placed.used[osd.id]
    least = dict(room)
    waiting = sorted(copies, key=lambda pgid: not copies[pgid].lacks)
    before = -1
    while len(waiting) != before:
        before = len(waiting)
        refused: List[str] = []
        for pgid in piecewise(waiting, _PGS_A_PIECE):
            one = copies[pgid]
            full = [number for number, size in one.coming if size > room[number]]
            if full:
                refused.append(pgid)
                least.update({number: min(0.0, least[number]) for number in full})
                continue
            for number, size in one.coming:
                room[number] -= size
                least[number] = min(least[number], room[number])
            for number, size in one.leaving:
                room[number] += size
        waiting = refused
    highest: List[Tuple[float, int]] = []
    for osd in snapshot.osds.values():
        if osd.has_statistics and osd.size_bytes and osd.id not in failed:
            highest.append((ratio - least[osd.id] / osd.size_bytes, osd.id))
    too_full = {pgid: copies[pgid].device_bytes(snapshot) for pgid in waiting}
    return too_full, max(highest, default=(None, None))


def usage_of(placed: Placement) -> Usage:
    """Returns the usage of a placement, drained OSDs included: CRUSH recovers shards to them."""
    classes = class_usage(placed.snapshot, placed.used, with_drained=True)
    return counted_usage(placed.snapshot, placed.used, placed.shards, classes=classes)


#: How many failures of each type keep all their figures.
KEPT_FAILURES = 5

#: (OSDs that fail, pgids) → up sets under that failure, from the mgr's map.
UpSetsWithout = Callable[[Sequence[int], Sequence[str]], Mapping[str, Osds]]


class TypeFailures(NamedTuple):
    """The failures of one bucket of a type."""

    failures: int            # how many there are
    worst: List[Recovery]    # the worst first
    computed: int            # how many were computed, those with the most data


def recovery_from(placed: Placement, failure: Failure, pgs: Mapping[int, Sequence[str]],
                  up_sets_without: UpSetsWithout) -> Recovery:
    """Returns the cluster after a failure. `pgs`: `pgs_by_osd` of the placement."""
    failed = sorted(failure.osds)
    affected: Dict[str, None] = {}   # an ordered set
    for osd in (NO_OSD, *failed):
        affected.update(dict.fromkeys(pgs.get(osd, ())))
    mapped = up_sets_without(failed, list(affected))
    known = {pgid: up for pgid, up in mapped.items() if pgid in placed.snapshot.pgs}
    return recover(placed, failure, known)


def worst_failures(placed: Placement, up_sets_without: UpSetsWithout) -> Dict[str, TypeFailures]:
    """Returns type → its worst failures, for hosts and the failure domains of the rules.

    Computes the failures of each type one by one, the one with the most data first, until
    `give_way` returns False, but at least one of each type. `give_way` gets the number computed so
    far. The mgr copies its map for each failure, and a cluster may have 10,000 OSDs.
    """
    def data(failure: Failure) -> int:
        return sum([placed.used[osd] for osd in failure.osds])

    pgs = pgs_by_osd(placed)
    worst: Dict[str, TypeFailures] = {}
    computed = 0
    for type_name, failures in failure_domains(placed.snapshot).items():
        found: List[Recovery] = []
        for failure in sorted(failures, key=data, reverse=True):
            if found and not give_way(computed):
                break
            found.append(recovery_from(placed, failure, pgs, up_sets_without))
            computed += 1
        kept = sorted(found, key=Recovery.severity, reverse=True)[:KEPT_FAILURES]
        worst[type_name] = TypeFailures(len(failures), kept, len(found))
    return worst


def worst_first(types: Mapping[str, TypeFailures]) -> List[Recovery]:
    """Returns the kept failures: the worst of each type, then the second of each, and so on."""
    found: List[Recovery] = []
    for rank in range(KEPT_FAILURES):
        for one in types.values():
            found += one.worst[rank:rank + 1]
    return found

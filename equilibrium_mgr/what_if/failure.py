"""What fails: an OSD, a host or another bucket, or several; the failure domains of a cluster.

Up sets after a failure: what CRUSH gives then, and what the monitor leaves of the upmap items.

The rules are those of OSDMap::_apply_upmap and OSDMap::check_pg_upmaps (Ceph 16 to 20).

The placement that fails: once everything in flight has arrived, with or without a plan.
"""
from __future__ import annotations

from typing import (
    Collection, Dict, FrozenSet, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Set,
    Tuple)

from ..crush.hierarchy import OSD_TYPE, CrushHierarchy
from ..crush.placement import NO_OSD
from ..crush.upmap_check import UpmapCheck
from ..plan.model import PgChange, is_same_placement
from ..plan.options import osd_id
from ..plan.usage import ShardCounts, shard_counts
from ..runtime.time_slice import piecewise
from ..snapshot.model import Pg, Pool, Snapshot, UpmapItems, shard_changes
from ..snapshot.upmap_items import apply_items


_HOST_TYPE = "host"
#: In the names of Ceph's shadow buckets, before the device class.
_SHADOW = "~"


class Failure(NamedTuple):
    """OSDs that fail together."""

    name: str           # as it was asked for: osd.3, the bucket's name, several with commas
    type_name: str      # osd, host, rack ...; empty for several
    osds: FrozenSet[int]   # of them that are in: others serve nothing


def find_failure(snapshot: Snapshot, text: str) -> Optional[Failure]:
    """What a text names: `3`, `osd.3`, a bucket's name, or several of them with commas between.
    None where something of it is not in the CRUSH map."""
    parts = [_find_one(snapshot, name.strip()) for name in text.split(",")]
    found = [part for part in parts if part is not None]
    if len(found) < len(parts) or not found:
        return None
    if len(found) == 1:
        return found[0]
    return Failure(",".join(part.name for part in found), "",
                   frozenset().union(*(part.osds for part in found)))


def failure_domains(snapshot: Snapshot) -> Dict[str, List[Failure]]:
    """Type → the failures of one bucket of that type, by name; of hosts, and of the types that the
    rules of the pools keep shards apart by. Buckets without OSDs that are in are left out."""
    types = {_HOST_TYPE}
    for rule_id in {pool.rule_id for pool in snapshot.pools.values()}:
        types |= _kept_apart(snapshot.crush, rule_id)
    found = {type_name: [failure for failure in _of_type(snapshot, type_name) if failure.osds]
             for type_name in sorted(types)}
    return {type_name: failures for type_name, failures in found.items() if failures}


def _find_one(snapshot: Snapshot, name: str) -> Optional[Failure]:
    osd = osd_id(name)
    if osd is not None:
        return None if osd not in snapshot.osds else _failure(
            snapshot, f"osd.{osd}", OSD_TYPE, [osd])
    for bucket in snapshot.crush.buckets.values():
        if bucket.name == name:
            return _failure(snapshot, name, bucket.type_name,
                            list(snapshot.crush.subtree(bucket.id).weights))
    return None


def _failure(snapshot: Snapshot, name: str, type_name: str, osds: List[int]) -> Failure:
    return Failure(name, type_name, frozenset(
        osd for osd in osds if osd in snapshot.osds and is_in(snapshot, osd)))


def is_in(snapshot: Snapshot, osd: int) -> bool:
    """True where CRUSH may map PGs to the OSD: it exists and its reweight is not 0."""
    entry = snapshot.osds.get(osd)
    return entry is not None and entry.is_in and entry.reweight > 0.0


def _kept_apart(crush: CrushHierarchy, rule_id: int) -> Set[str]:
    """The types of buckets that a rule chooses; OSDs where it chooses no buckets."""
    types = {str(step["type"]) for step in crush.rules.get(rule_id, {}).get("steps", [])
             if str(step.get("op", "")).startswith("choose") and "type" in step}
    return types - {OSD_TYPE} or {OSD_TYPE}


def _of_type(snapshot: Snapshot, type_name: str) -> List[Failure]:
    if type_name == OSD_TYPE:
        return [_failure(snapshot, f"osd.{osd}", OSD_TYPE, [osd]) for osd in sorted(snapshot.osds)]
    buckets = [bucket for bucket in snapshot.crush.buckets.values()
               if bucket.type_name == type_name and _SHADOW not in bucket.name]
    return [_failure(snapshot, bucket.name, type_name,
                     list(snapshot.crush.subtree(bucket.id).weights))
            for bucket in sorted(buckets, key=lambda bucket: bucket.name)]


Osds = Tuple[int, ...]


class UpSetsAfter:
    """The up sets of PGs once some OSDs are out."""

    def __init__(self, snapshot: Snapshot, failed: FrozenSet[int]) -> None:
        self._snapshot = snapshot
        self._failed = failed
        self._checks: Dict[int, UpmapCheck] = {}
        self._some_down = any(not osd.up and not self._is_out(osd.id)
                              for osd in snapshot.osds.values())

    def up(self, pg: Pg, mapped: Osds, items: UpmapItems) -> Osds:
        """The up set of a PG that is to have `items`.

        `mapped`: as the mgr maps it under the failure, with the items that it has now, none
        cleaned. Some rules leave OSDs in it that are out (chooseleaf of type osd, where all below
        a bucket are): these have failed, so they are not up.
        """
        up = self._mapped(pg, mapped, items)
        if self._failed.isdisjoint(up):
            return up
        if self._snapshot.pools[pg.pool].erasure:
            return tuple(NO_OSD if osd in self._failed else osd for osd in up)
        return tuple(osd for osd in up if osd not in self._failed)

    def _mapped(self, pg: Pg, mapped: Osds, items: UpmapItems) -> Osds:
        now = self._snapshot.upmap_items.get(pg.pgid, ())
        if not (now or items):
            return mapped
        pool = self._snapshot.pools[pg.pool]
        raw = self._raw(pg, mapped, now)
        if self._some_down and _lacks_the_same(pool, pg.up, mapped):
            # an OSD that is down does not show, so whether the monitor keeps the items is unknown
            return apply_items(raw, items, self._is_out)
        return self._cleaned(pool, raw, items)

    def _is_out(self, osd: int) -> bool:
        return osd in self._failed or not is_in(self._snapshot, osd)

    def _raw(self, pg: Pg, mapped: Osds, items: UpmapItems) -> Osds:
        """What CRUSH alone gives under the failure: it keeps what it chose before and is in."""
        raw = list(mapped)
        for source, target in reversed(items):
            if target in raw and source not in raw and source in pg.raw and (
                    not self._is_out(source)):
                raw[raw.index(target)] = source
        return tuple(raw)

    def _cleaned(self, pool: Pool, raw: Osds, items: UpmapItems) -> Osds:
        """The up set once the monitor has cleaned the items, epoch by epoch."""
        while items:
            up = apply_items(raw, items, self._is_out)
            if self._rejection(pool, up) is not None:
                return raw
            kept = tuple((source, target) for source, target in items
                         if source in raw and not self._is_out(target))
            if kept == items:
                return up
            items = kept
        return raw

    def _rejection(self, pool: Pool, up: Sequence[int]) -> Optional[str]:
        """Why the monitor cancels items that lead to this up set."""
        rule = self._snapshot.crush.rules.get(pool.rule_id)
        if rule is None:
            return "the rule is gone"
        if any(map(self._is_out, up)):
            return "an OSD is out"
        if pool.id not in self._checks:
            self._checks[pool.id] = UpmapCheck(self._snapshot.crush, rule, pool.size)
        return self._checks[pool.id].rejection(up)


def _lacks_the_same(pool: Pool, up: Osds, mapped: Osds) -> bool:
    """True where shards have no OSD, and none of them had one before: other holes than these are
    CRUSH's."""
    if not pool.erasure:
        return len(mapped) < pool.size
    holes = {position for position, osd in enumerate(mapped) if osd == NO_OSD}
    return bool(holes) and holes <= {
        position for position, osd in enumerate(up) if osd == NO_OSD}


_PLACED_PGS_A_PIECE = 500   # before it gives way again: about a millisecond


class Placement(NamedTuple):
    """Where the shards are once everything in flight has arrived and some changes are made."""

    snapshot: Snapshot
    changes: Mapping[str, PgChange]   # by pgid; those that apply to the snapshot
    used: Mapping[int, int]           # OSD id → used bytes
    shards: ShardCounts               # pool id → OSD id → shards

    def up(self, pg: Pg) -> Osds:
        """The up set of a PG."""
        change = self.changes.get(pg.pgid)
        return pg.up if change is None else change.up_after

    def items(self, pgid: str) -> UpmapItems:
        """The upmap items of a PG."""
        change = self.changes.get(pgid)
        return self.snapshot.upmap_items.get(pgid, ()) if change is None else change.items


def placement(snapshot: Snapshot, changes: Iterable[PgChange] = ()) -> Placement:
    """The placement after the changes; those of PGs that are elsewhere by now are left out."""
    applied: Dict[str, PgChange] = {}
    for change in changes:
        pg = snapshot.pgs.get(change.pgid)
        if pg is not None and is_same_placement(pg.up, change.up_before,
                                                snapshot.pools[pg.pool].erasure):
            applied[change.pgid] = change
    shards = shard_counts(snapshot, (
        (pg, pg.up if pg.pgid not in applied else applied[pg.pgid].up_after)
        for pg in piecewise(snapshot.pgs.values(), _PLACED_PGS_A_PIECE)))
    used = {osd.id: osd.target_bytes for osd in snapshot.osds.values()}
    for change in piecewise(applied.values(), _PLACED_PGS_A_PIECE):
        pg = snapshot.pgs[change.pgid]
        move_shards(used, pg, pg.up, change.up_after, snapshot.pools[pg.pool])
    return Placement(snapshot, applied, used, shards)


def move_shards(used: Dict[int, int], pg: Pg, before: Sequence[int], after: Sequence[int],
                pool: Pool) -> Tuple[List[int], List[int]]:
    """Counts a PG's shards at their new OSDs, as far as these are in `used`; returns (OSDs that
    gain one, OSDs that lose one)."""
    gains, losses = shard_changes(tuple(before), tuple(after), pool.erasure)
    gained = [osd for osd in gains if osd in used]
    lost = [osd for osd in losses if osd in used]
    for osds, up, sign in ((gained, after, 1), (lost, before, -1)):
        for osd in osds:
            used[osd] = max(0, used[osd] + sign * pool.bytes_on(pg.shard_bytes, osd, up))
    return gained, lost


class PgsByOsd:
    """The PGs that the failure of an OSD can give another up set: where CRUSH or an upmap item
    places them on it. Of other PGs CRUSH draws the same OSDs as before.

    PGs that lack an OSD are among them always: it may be the one that has failed already.
    """

    def __init__(self, placed: Placement) -> None:
        self._pgids: Dict[int, List[str]] = {}
        self._short: List[str] = []
        pools = placed.snapshot.pools
        for pg in piecewise(placed.snapshot.pgs.values(), _PLACED_PGS_A_PIECE):
            for osd in {*pg.raw, *pg.up, *placed.up(pg)}:
                self._pgids.setdefault(osd, []).append(pg.pgid)
            if NO_OSD in pg.up or len(pg.up) < pools[pg.pool].size:
                self._short.append(pg.pgid)

    def of(self, osds: Collection[int]) -> List[str]:
        """The pgids, each once."""
        found = dict.fromkeys(self._short)
        for osd in sorted(osds):
            found.update(dict.fromkeys(self._pgids.get(osd, ())))
        return list(found)

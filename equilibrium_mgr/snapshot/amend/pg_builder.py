"""Builds single PGs of a snapshot, and notes what a later look has to know of them."""
from __future__ import annotations

from typing import Dict, NamedTuple, Optional, Set, Tuple

from ...crush.placement import NO_OSD
from ..immovable_reasons import Immovable
from ..in_flight import InFlightTracker, PgContext
from ..model import Pg, Pool, pool_of, shard_changes
from ..osds import full_ratios
from ..pg_checks import (CheckedPlacement, check_placement, omap_on_small_osd, osd_not_reported,
                         untrusted_state)
from ..pools import CopyCounts
from ..reading import PgRecord
from ..sizes.shard_sizes import ShardInput
from .leftovers import Leftovers
from .look import Look
from .sizes_kept import SizeRules

Osds = Tuple[int, ...]


class PgNotes:
    """What is remembered of PGs beside what a snapshot shows."""

    def __init__(self) -> None:
        self.faults: Dict[str, Immovable] = {}   # pgid → why its placement forbids moving it
        self.restless: Set[str] = set()    # PGs that may change although their figures do not
        self.silent: Set[str] = set()      # PGs that no OSD has reported


class BuiltPg(NamedTuple):
    """A PG, and the omap of one of its shards."""

    pg: Pg
    omap_bytes: int


class PgBuilder:
    """Builds the PGs of one look. `last`: the look that known placements were checked at."""

    def __init__(self, look: Look, last: Optional[Look], rules: SizeRules, notes: PgNotes,
                 tracker: InFlightTracker, leftovers: Leftovers, copies: CopyCounts) -> None:
        self._look, self._rules, self._notes = look, rules, notes
        self._items_before = last.items if last is not None else {}
        self._tracker, self._leftovers, self._copies = tracker, leftovers, copies
        self._is_out = look.is_out()
        around = look.surroundings
        # an OSD that is out is meant to hold nothing, and the mgr shows zeros for it
        self._awaited = frozenset(osd for osd in look.osds.keys() - around.with_statistics
                                  if not self._is_out(osd))
        self._small = around.small
        self._nearfull = full_ratios(look.reading.osd_map).nearfull

    def build(self, pgid: str, old: Optional[Pg]) -> BuiltPg:
        """Builds one PG. `old`: as it was built before, where its placement was checked."""
        look, notes = self._look, self._notes
        up, record = tuple(look.reading.up[pgid]), look.record(pgid)
        pool = look.pools[pool_of(pgid)]
        shard, unknown = self._rules.inputs.of(pool, record, look.acting_set(pgid))
        known = self._placement(pgid, up, pool, old)
        if record.is_unknown:
            notes.silent.add(pgid)
        else:
            notes.silent.discard(pgid)
        holders, doubtful = self._holders(known, shard, pgid, record, pool)
        return BuiltPg(Pg(
            pgid=pgid, pool=pool.id, raw=known.raw, up=known.up, acting=tuple(shard.acting),
            shard_bytes=self._rules.model.shard_bytes(shard),
            objects=_objects(shard, unknown is not None),
            uncopied_ratio=record.uncopied_ratio, state=record.state,
            reported_epoch=record.reported_epoch,
            immovable=(look.pinned.get(pgid) or pool.immovable or unknown or known.immovable
                       or osd_not_reported(up, self._awaited) or untrusted_state(record.state)
                       or (omap_on_small_osd(shard, up, look.osds, self._nearfull)
                           if self._small and not self._small.isdisjoint(up) else None)),
            holders=holders, doubtful_holders=doubtful),
            shard.omap_bytes)

    def _placement(self, pgid: str, up: Osds, pool: Pool, old: Optional[Pg]) -> CheckedPlacement:
        items, faults = self._look.items.get(pgid, ()), self._notes.faults
        if old is not None and old.up == up and self._items_before.get(pgid, ()) == items:
            return CheckedPlacement(old.up, items, old.raw, faults.get(pgid))
        found = check_placement(pool, up, items, self._is_out)
        if found.immovable is None:
            faults.pop(pgid, None)
        else:
            faults[pgid] = found.immovable
        return found

    def _holders(self, known: CheckedPlacement, shard: ShardInput, pgid: str, record: PgRecord,
                 pool: Pool) -> Tuple[Osds, bool]:
        """OSDs that hold the PG's shards, and whether that is doubtful. Counts missing copies and
        what has left OSDs as well."""
        up, acting, restless = known.up, tuple(shard.acting), self._notes.restless
        if acting == up and len(up) >= pool.size and self._tracker.is_at_rest(
                pgid, up, record.state):
            if NO_OSD in up:   # not at rest any more as soon as an OSD is down
                restless.add(pgid)
            else:
                restless.discard(pgid)
            return up, False
        restless.add(pgid)
        location = self._tracker.locate(
            PgContext(pgid, up, acting, known.items, record, pool.size, pool.erasure))
        self._copies.add(pool.id, location)
        if location.holders is not up:
            self._begin_move(pgid, shard)
        elif location.left_behind:
            self._end_move(pgid, shard, location.left_behind, up, record, pool)
        return location.holders, location.doubtful

    def _begin_move(self, pgid: str, shard: ShardInput) -> None:
        """Records what is to leave OSDs."""
        if shard.omap_bytes:
            self._leftovers.uncompacted.begin_move(
                pgid, shard.omap_bytes,
                self._rules.model.shard_bytes(shard._replace(data_bytes=0)))
        self._leftovers.undeleted.begin_move(pgid, self._data_bytes(shard))

    def _end_move(self, pgid: str, shard: ShardInput, before: Osds, up: Osds, record: PgRecord,
                  pool: Pool) -> None:
        """Records what has left OSDs. `before`: those that held the PG until it arrived."""
        left = shard_changes(before, up, pool.erasure)[1]
        if shard.omap_bytes:
            self._leftovers.uncompacted.end_move(
                pgid, pool.id, left, record.omap_bytes or shard.omap_bytes)
        self._leftovers.undeleted.end_move(
            pgid, pool.id, [(osd, pool.ratio_on(osd, before)) for osd in left if osd != NO_OSD],
            self._data_bytes(shard))

    def _data_bytes(self, shard: ShardInput) -> int:
        """Bytes of a shard without what RocksDB holds of it."""
        return self._rules.model.shard_bytes(shard._replace(omap_bytes=0, objects=0))


def _objects(shard: ShardInput, unknown: bool) -> int:
    """Objects of the PG; at least 1 unless it is known to be empty, as a PG without objects would
    count nothing against the misplaced limit."""
    holds = unknown or shard.data_bytes > 0 or shard.omap_bytes > 0
    return max(shard.objects, 1 if holds else 0)

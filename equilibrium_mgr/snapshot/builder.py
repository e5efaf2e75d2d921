"""Builds a snapshot from a reading: which PGs may move, how large and where shards are.

A PG, OSD or rule that the module does not understand does not stop the others. Its PGs become
immovable, and the snapshot counts the reason.
"""
from __future__ import annotations

from collections import Counter
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from ..crush.hierarchy import CrushHierarchy
from ..crush.placement import NO_OSD
from ..runtime.time_slice import give_way, piecewise
from . import immovable_reasons as reasons
from .immovable_reasons import Immovable
from .in_flight import InFlightTracker, PgContext
from .loads import pool_loads, relative_speeds
from .model import (
    Look, Pg, PgRecord, PlacementRules, Pool, Reading, Snapshot, SnapshotPgs, UpmapItems, pg_number,
    pool_of, transfers)
from .operator_weights import with_base_bytes, with_shares
from .osds import map_fields, name_sets, read_osds
from .pools import PoolReader, corrected_states
from .sizes.omap import MUCH_OMAP_RATIO
from .sizes.size_model import ShardInput, SizeModel
from .upmap_items import invert_items, items_by_pg

_PGS_A_PIECE, _READ_A_PIECE = 150, 1000   # between two calls of `give_way`: about a millisecond

Osds = Tuple[int, ...]


class SnapshotBuilder:
    """Builds each snapshot from the start, except results that cost much and depend on little.

    These are the CRUSH hierarchy and the rules of one CRUSH version, and the check of each PG's
    placement: it stays right while the PG's up set and upmap items are the same. The size model and
    the tracker of shards in flight also remember earlier readings.
    """

    _crush_version: Optional[int] = None
    _crush: Optional[CrushHierarchy] = None
    _placement: Optional[PlacementRules] = None   # input of the last check of placements

    def __init__(self) -> None:
        self._pools = PoolReader()
        self._sizes = SizeModel()
        self._tracker = InFlightTracker()
        self._placements: Mapping[str, Pg] = {}      # the PGs of the last snapshot
        self._items: Mapping[str, UpmapItems] = {}   # of the last snapshot
        self._faults: Dict[str, Immovable] = {}      # pgid → why its placement forbids moving it

    def build(self, reading: Reading) -> Snapshot:
        """Returns the snapshot of a reading. Raises KeyError if maps lack what every Ceph map
        has."""
        osd_map = reading.osd_map
        crush = self._hierarchy(reading)
        osds = read_osds(osd_map, crush, reading.osd_stats, reading.drained)
        give_way()
        if reading.respect_weights:
            osds = with_shares(osds, crush)
        pools = self._pools.read(reading, crush)
        rules = tuple([(p.id, p.size, p.rule_id, p.erasure) for p in pools.values()])
        in_osds = frozenset([number for number, osd in osds.items() if osd.reweight > 0.0])
        pgids = [pgid for pgid in piecewise(reading.up, _READ_A_PIECE) if pool_of(pgid) in pools]
        look = Look(
            reading=reading, pgids=pgids, pools=pools, osds=osds, items=items_by_pg(osd_map),
            pinned=placed_by_others(osd_map, pools),
            placement=PlacementRules(crush, rules, in_osds),
            with_statistics=frozenset([n for n, osd in osds.items() if osd.has_statistics]))
        self._sizes.fit(look)
        look = look._replace(pools=self._sizes.pools)
        if look.placement != self._placement:
            self._placement = look.placement
            self._placements = {}
        self._tracker.begin(reading, osds)
        fields = map_fields(osd_map)
        pgs = self._build_pgs(look, _MoveCheck(look, fields["nearfull_ratio"]))
        self._tracker.end()
        return self._snapshot(look, pgs, fields)

    def _hierarchy(self, reading: Reading) -> CrushHierarchy:
        """Returns the CRUSH hierarchy. Reads each CRUSH version once."""
        version = reading.osd_map.get("crush_version")
        if self._crush is None or version is None or version != self._crush_version:
            self._crush, self._crush_version = CrushHierarchy(reading.crush), version
        return self._crush

    def _build_pgs(self, look: Look, check: _MoveCheck) -> SnapshotPgs:
        """Returns the PGs of a reading."""
        reading = look.reading
        sizes = self._sizes
        up_sets = reading.up
        acting_sets = reading.acting
        pools = look.pools
        last_pgs = self._placements
        last_items = self._items
        last_faults = self._faults
        pgs = SnapshotPgs()
        faults: Dict[str, Immovable] = {}
        moving: List[str] = []
        for pgid in piecewise(look.pgids, _PGS_A_PIECE):
            up = tuple(up_sets[pgid])
            items = look.items.get(pgid, ())
            record = look.record(pgid)
            pool = pools[pool_of(pgid)]
            acting = tuple(acting_sets.get(pgid) or up)
            shard, unknown = sizes.input_of(pool, record, acting)
            last = last_pgs.get(pgid)
            if last is None or last.up != up or last_items.get(pgid, ()) != items:
                raw, fault = check_placement(pool, up, items, look.is_out)
            else:
                up = last.up
                raw = last.raw
                fault = last_faults.get(pgid)
            if fault is not None:
                faults[pgid] = fault
            if acting == up:
                acting = up   # one tuple for both: a tenth of a reading's memory
            immovable = check.reason(pgid, pool, up, record.state, shard, unknown or fault)
            holders, doubtful = self._holders(up, acting, items, pgid, record, pool)
            # without objects a PG would count nothing against the misplaced limit
            has_data = shard.data_bytes > 0 or shard.omap_bytes > 0
            least_objects = 1 if has_data or unknown is not None else 0
            pgs[pgid] = pg = Pg(
                pgid, pool.id, raw, up, acting, sizes.shard_bytes(shard),
                max(shard.objects, least_objects), record.uncopied_ratio, record.state,
                record.reported_epoch, immovable, holders, doubtful, record.uncopied)
            if pg.is_moving:
                moving.append(pgid)
        self._placements = pgs
        self._items = look.items
        self._faults = faults
        moving.sort(key=lambda pgid: (pool_of(pgid), pg_number(pgid)))
        pgs.moving = {pgid: pgs[pgid] for pgid in moving}
        return pgs

    def _holders(self, up: Osds, acting: Osds, items: UpmapItems, pgid: str, record: PgRecord,
                 pool: Pool) -> Tuple[Osds, bool]:
        """Returns (OSDs that hold the PG's shards, whether that is doubtful)."""
        if acting == up and len(up) >= pool.size:
            if self._tracker.is_at_rest(pgid, up, record.state):
                return up, False
        return self._tracker.locate(
            PgContext(pgid, up, acting, items, record, pool.size, pool.erasure))

    def _snapshot(self, look: Look, pgs: SnapshotPgs, fields: Mapping[str, Any]) -> Snapshot:
        """Returns the snapshot with these PGs and `fields` of the osdmap."""
        reading = look.reading
        pools = look.pools
        crush = look.placement.crush
        osd_map = reading.osd_map
        pg_status = reading.pg_status
        tracker = self._tracker
        osds = self._sizes.osds_with_traffic(look, pgs.moving.values())
        skipped: Counter[Immovable] = Counter()
        pool_bytes: Counter[int] = Counter()
        copies = 0
        for pg in piecewise(pgs.values(), _PGS_A_PIECE):
            pool_bytes[pg.pool] += pg.shard_bytes
            copies += pg.objects * pools[pg.pool].size
            if pg.immovable:
                skipped[pg.immovable] += 1
        # copies in flight that Ceph does not count, because no OSD has reported their PGs
        silent = 0
        for pgid, pg in pgs.moving.items():
            if look.record(pgid).is_unknown:
                silent += pg.objects * len(transfers(pg, pools[pg.pool].erasure)[0])
        get = osd_map.get
        alive = [number for number, osd in osds.items() if osd.up and osd.is_in]
        return Snapshot(
            **fields,
            taken_at=reading.taken_at,
            osd_release=get("require_osd_release", ""),
            crush=crush,
            crush_version=get("crush_version", 0),
            osds=with_base_bytes(osds, pgs.values(), pools),
            pools=dict(pools),
            pgs=pgs,
            upmap_items=dict(look.items),
            pool_states=corrected_states(pg_status, tracker.lacking, tracker.only_moving),
            object_copies=pg_status.get("misplaced_total") or copies,
            misplaced_copies=pg_status.get("misplaced_objects", 0) + silent,
            skipped=Counter(dict(sorted(skipped.items()))),
            stale_osds=reading.stale_osds.intersection(alive),
            unsettled_seconds=tracker.unsettled_seconds,
            loads=pool_loads(reading.rates, pools, osds),
            speeds=relative_speeds(reading.capacities, osds),
            set_names=name_sets(osds, crush, pools, pool_bytes),
            primaries={entry["pgid"]: int(entry["primary_osd"])
                       for entry in get("pg_upmap_primaries", ())})


class _MoveCheck:
    """Finds why PGs of one reading must not be moved."""

    def __init__(self, look: Look, nearfull: float) -> None:
        self._pinned = look.pinned
        has_statistics = look.with_statistics
        osds = look.osds
        #: OSDs whose usage is unknown, and so is the effect of a move. An OSD that is out is meant
        #: to hold nothing, and the mgr shows zeros for it.
        self._awaited = frozenset([osd for osd in osds.keys() - has_statistics
                                   if not look.is_out(osd)])
        #: OSDs whose omap cannot be distinguished from RocksDB's own files.
        least_bytes = look.reading.min_omap_osd_bytes
        self._small = frozenset([osd for osd in has_statistics
                                 if osds[osd].size_bytes < least_bytes])
        self._nearfull = frozenset([number for number, osd in osds.items()
                                    if osd.exceeds(nearfull)])

    def reason(self, pgid: str, pool: Pool, up: Osds, state: str, shard: ShardInput,
               fault: Optional[Immovable]) -> Optional[Immovable]:
        """Returns why a PG must not be moved, or None. `fault`: a reason in its statistics or its
        placement."""
        known = self._pinned.get(pgid) or pool.immovable or fault
        if pool.touched:
            known = pool.touched.get(pg_number(pgid)) or known
        if known:
            return known
        if not self._awaited.isdisjoint(up):
            return reasons.OSD_NOT_REPORTED
        untrusted = reasons.untrusted_state(state)
        # a nearfull OSD has to get rid of its shards, even if their omap is unknown
        if untrusted or self._small.isdisjoint(up) or not self._nearfull.isdisjoint(up):
            return untrusted
        if shard.omap_bytes > MUCH_OMAP_RATIO * shard.data_bytes:
            return reasons.OMAP_ON_SMALL_OSD
        return None


def check_placement(pool: Pool, up: Osds, items: UpmapItems,
                    is_out: Callable[[int], bool]) -> Tuple[Osds, Optional[Immovable]]:
    """Returns (the raw mapping of a PG, why its placement forbids moving it).

    The raw mapping is what CRUSH gives without upmap items; the up set if that is not known.
    """
    raw = invert_items(up, items, is_out) if items else up
    if raw is not None and pool.rule is not None and pool.rule.blocks_overlap:
        if any(source in raw and target in raw for source, target in items):
            raw = None  # perhaps CRUSH has chosen one OSD twice
    return raw or up, _fault(pool, up, raw)


def _fault(pool: Pool, up: Osds, raw: Optional[Osds]) -> Optional[Immovable]:
    """Returns why the placement of a PG forbids moving it, or None."""
    rule = pool.rule
    if rule is None:
        return pool.immovable
    if len(up) != pool.size or NO_OSD in up:
        return reasons.NO_OSD_FOR_SHARD
    if raw is None:
        return reasons.RAW_UNKNOWN
    broken = rule.violation(up)
    if (broken or rule.needs_full_check) and rule.upmap_rejection(up):
        if raw == up:
            return reasons.MONITOR_REJECTS_CRUSH
        return reasons.MONITOR_REJECTS
    if broken:
        return reasons.BREAKS_RULE
    return None


def placed_by_others(osd_map: Mapping[str, Any], pools: Mapping[int, Pool]
                     ) -> Dict[str, Immovable]:
    """Returns pgid → reason, for PGs with a full pg_upmap. Also for PGs with a pg_upmap_primary, if
    the order of their OSDs matters."""
    pinned = {e["pgid"]: reasons.FULL_UPMAP for e in osd_map.get("pg_upmap", [])}
    for entry in osd_map.get("pg_upmap_primaries", []):
        pool = pools.get(pool_of(entry["pgid"]))
        # if one block fills all positions alike, the order of an up set does not matter
        if pool is None or pool.erasure or len(pool.blocks) != 1:
            pinned.setdefault(entry["pgid"], reasons.UPMAP_PRIMARY)
    return pinned

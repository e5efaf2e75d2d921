"""Builds a snapshot from a reading: which PGs may move, how big a shard is, what is in flight.

A PG, OSD or rule that is not understood does not stop the rest: it becomes immovable with a reason
that is counted.
"""
from __future__ import annotations

from collections import Counter
from typing import Any, Callable, Dict, Mapping, Optional, Tuple

from ..crush.hierarchy import CrushHierarchy
from ..crush.placement import NO_OSD
from ..runtime.time_slice import give_way, piecewise
from . import immovable_reasons as reasons
from .in_flight import InFlightTracker, PgContext
from .immovable_reasons import Immovable
from .model import (
    Look, Pg, PgRecord, PlacementRules, Pool, Reading, Snapshot, SnapshotPgs, UpmapItems, pg_number,
    pool_of, transfers)
from .operator_weights import with_base_bytes, with_shares
from .osds import map_fields, name_sets, read_osds
from .pools import PoolReader, corrected_states
from .sizes.omap import MUCH_OMAP_RATIO
from .sizes.size_model import SizeModel
from .upmap_items import invert_items, items_by_pg

_PGS_A_PIECE, _READ_A_PIECE = 150, 1000   # before it gives way again: about a millisecond


class SnapshotBuilder:
    """Builds each snapshot anew, top to bottom, but for what takes long and depends on little: the
    CRUSH hierarchy and the rules of one CRUSH version, and for each PG the check of its placement,
    which stays right while its up set and upmap items are the same.
    """

    def __init__(self) -> None:
        self._crush_version: Optional[int] = None
        self._crush: Optional[CrushHierarchy] = None
        self._pools = PoolReader()
        self._sizes = SizeModel()
        self._tracker = InFlightTracker()
        self._placement: Optional[PlacementRules] = None   # that what follows was checked by
        self._placements: Mapping[str, Pg] = {}      # the PGs of the last look
        self._items: Mapping[str, UpmapItems] = {}   # of the last look
        self._faults: Dict[str, Immovable] = {}      # pgid → why its placement forbids moving it
        #: pool id → PGs of this look that lack copies, and that Ceph only calls so as they move
        self._lacking: Counter[int] = Counter()
        self._only_moving: Counter[int] = Counter()

    def build(self, reading: Reading) -> Snapshot:
        """A snapshot of one reading. Raises KeyError where maps lack what every Ceph map has."""
        crush_version = reading.osd_map.get("crush_version")
        if self._crush is None or crush_version is None or crush_version != self._crush_version:
            self._crush, self._crush_version = CrushHierarchy(reading.crush), crush_version
        osds = read_osds(reading.osd_map, self._crush, reading.osd_stats, reading.drained)
        give_way()
        if reading.respect_weights:
            osds = with_shares(osds, self._crush)
        pools = self._pools.read(reading, self._crush)
        placement = PlacementRules(
            self._crush, tuple((p.id, p.size, p.rule_id, p.erasure) for p in pools.values()),
            frozenset([osd.id for osd in osds.values() if osd.reweight > 0.0]))
        look = Look(
            reading, [pgid for pgid in piecewise(reading.up, _READ_A_PIECE)
                      if pool_of(pgid) in pools],
            pools, osds, items_by_pg(reading.osd_map), placed_by_others(reading.osd_map, pools),
            placement, frozenset([osd.id for osd in osds.values() if osd.has_statistics]))
        self._sizes.fit(look)
        look = look._replace(pools=self._sizes.pools)
        if placement != self._placement:
            self._placement, self._placements = placement, {}
        self._lacking, self._only_moving = Counter(), Counter()
        self._tracker.begin(reading)
        pgs = self._build_pgs(look)
        self._tracker.end()
        return self._snapshot(look, pgs)

    def _build_pgs(self, look: Look) -> SnapshotPgs:
        reading, sizes = look.reading, self._sizes
        # on these omap cannot be told from RocksDB's own files
        small = frozenset([osd.id for osd in look.osds.values() if osd.has_statistics
                           and osd.size_bytes < reading.min_omap_osd_bytes])
        # what these use is unknown, and so is what a move adds; but an OSD that is out is meant to
        # hold nothing, and the mgr shows zeros for it
        awaited = frozenset([osd for osd in look.osds.keys() - look.with_statistics
                             if not look.is_out(osd)])
        nearfull: float = map_fields(reading.osd_map)["nearfull_ratio"]
        pgs = SnapshotPgs()
        faults: Dict[str, Immovable] = {}
        for pgid in piecewise(look.pgids, _PGS_A_PIECE):
            up, items, record = tuple(reading.up[pgid]), look.items.get(pgid, ()), look.record(pgid)
            pool, acting = look.pools[pool_of(pgid)], tuple(reading.acting.get(pgid) or up)
            shard, unknown = sizes.input_of(pool, record, acting)
            last = self._placements.get(pgid)
            if last is None or last.up != up or self._items.get(pgid, ()) != items:
                raw, fault = check_placement(pool, up, items, look.is_out)
            else:
                up, raw, fault = last.up, last.raw, self._faults.get(pgid)
            if fault is not None:
                faults[pgid] = fault
            if acting == up:
                acting = up   # one tuple for both: a tenth of what a look takes of memory
            immovable = (pool.touched.get(pg_number(pgid)) if pool.touched else None) or (
                look.pinned.get(pgid)) or pool.immovable or unknown or fault
            if not immovable and not awaited.isdisjoint(up):
                immovable = reasons.OSD_NOT_REPORTED
            immovable = immovable or reasons.untrusted_state(record.state)
            if not immovable and not small.isdisjoint(up) and (
                    shard.omap_bytes > MUCH_OMAP_RATIO * shard.data_bytes) and not any(
                        osd in look.osds and look.osds[osd].exceeds(nearfull) for osd in up):
                immovable = reasons.OMAP_ON_SMALL_OSD
            holders, doubtful = self._holders(up, acting, items, pgid, record, pool)
            pgs[pgid] = Pg(
                pgid, pool.id, raw, up, acting,
                sizes.shard_bytes(shard),
                # without objects a PG would count nothing against the misplaced limit
                max(shard.objects, 1 if unknown is not None or shard.data_bytes > 0
                    or shard.omap_bytes > 0 else 0),
                record.uncopied_ratio, record.state, record.reported_epoch, immovable, holders,
                doubtful, record.uncopied)
        self._placements, self._items, self._faults = pgs, look.items, faults
        pgs.moving = {pgid: pgs[pgid] for pgid in sorted(
            [pg.pgid for pg in piecewise(pgs.values(), _PGS_A_PIECE) if pg.is_moving],
            key=lambda pgid: (pool_of(pgid), pg_number(pgid)))}
        return pgs

    def _holders(self, up: Tuple[int, ...], acting: Tuple[int, ...], items: UpmapItems, pgid: str,
                 record: PgRecord, pool: Pool) -> Tuple[Tuple[int, ...], bool]:
        """OSDs that hold the PG's shards, and whether that is doubtful. Counts missing copies."""
        if acting == up and len(up) >= pool.size and self._tracker.is_at_rest(
                pgid, up, record.state):
            return up, False
        location = self._tracker.locate(
            PgContext(pgid, up, acting, items, record, pool.size, pool.erasure))
        self._lacking[pool.id] += location.lacks_copies
        self._only_moving[pool.id] += location.only_moving
        return location.holders, location.doubtful

    def _snapshot(self, look: Look, pgs: SnapshotPgs) -> Snapshot:
        reading, pools = look.reading, look.pools
        osd_map, pg_status = reading.osd_map, reading.pg_status
        osds = self._sizes.osds_with_traffic(look, pgs.moving.values())
        skipped = Counter([pg.immovable for pg in piecewise(pgs.values(), _PGS_A_PIECE)
                           if pg.immovable])
        # object copies in flight that Ceph does not count, as no OSD has reported their PGs
        pool_bytes: Counter[int] = Counter()
        for pg in piecewise(pgs.values(), _PGS_A_PIECE):
            pool_bytes[pg.pool] += pg.shard_bytes
        silent = sum(pg.objects * len(transfers(pg, pools[pg.pool].erasure)[0])
                     for pg in pgs.moving.values() if look.record(pg.pgid).is_unknown)
        return Snapshot(
            **map_fields(osd_map), taken_at=reading.taken_at,
            osd_release=osd_map.get("require_osd_release", ""),
            crush=look.placement.crush,
            crush_version=osd_map.get("crush_version", 0),
            osds=with_base_bytes(osds, pgs.values(), pools), pools=dict(pools), pgs=pgs,
            upmap_items=dict(look.items),
            pool_states=corrected_states(pg_status, self._lacking, self._only_moving),
            object_copies=pg_status.get("misplaced_total") or sum(
                pg.objects * pools[pg.pool].size
                for pg in piecewise(pgs.values(), _PGS_A_PIECE)),
            misplaced_copies=pg_status.get("misplaced_objects", 0) + silent,
            skipped=Counter(dict(sorted(skipped.items()))),
            stale_osds=reading.stale_osds.intersection(
                osd.id for osd in osds.values() if osd.up and osd.is_in),
            unsettled_seconds=self._tracker.unsettled_seconds,
            set_names=name_sets(osds, look.placement.crush, pools, pool_bytes),
            primaries={entry["pgid"]: int(entry["primary_osd"])
                       for entry in osd_map.get("pg_upmap_primaries", ())})


def check_placement(pool: Pool, up: Tuple[int, ...], items: UpmapItems,
                    is_out: Callable[[int], bool]) -> Tuple[Tuple[int, ...], Optional[Immovable]]:
    """(what CRUSH alone gives a PG, its up set where that is not known; why its placement, by the
    pool's rule, forbids moving the PG)."""
    raw = invert_items(up, items, is_out) if items else up
    if raw is not None and pool.rule is not None and pool.rule.blocks_overlap and any(
            source in raw and target in raw for source, target in items):
        raw = None  # CRUSH may have chosen one OSD twice
    return raw or up, _fault(pool, up, raw)


def _fault(pool: Pool, up: Tuple[int, ...], raw: Optional[Tuple[int, ...]]) -> Optional[Immovable]:
    if pool.rule is None:
        return pool.immovable
    if len(up) != pool.size or NO_OSD in up:
        return reasons.NO_OSD_FOR_SHARD
    if raw is None:
        return reasons.RAW_UNKNOWN
    broken = pool.rule.violation(up)
    if (broken or pool.rule.needs_full_check) and pool.rule.upmap_rejection(up):
        return reasons.MONITOR_REJECTS_CRUSH if raw == up else reasons.MONITOR_REJECTS
    return reasons.BREAKS_RULE if broken else None


def placed_by_others(osd_map: Mapping[str, Any], pools: Mapping[int, Pool]
                     ) -> Dict[str, Immovable]:
    """pgid → reason of PGs that somebody else has placed in full, or in an order that is not that
    of their rule."""
    pinned = {e["pgid"]: reasons.FULL_UPMAP for e in osd_map.get("pg_upmap", [])}
    for entry in osd_map.get("pg_upmap_primaries", []):
        pool = pools.get(pool_of(entry["pgid"]))
        # where one block fills all positions alike, the order of an up set tells nothing
        if pool is None or pool.erasure or pool.rule is None or len(pool.rule.blocks) != 1:
            pinned.setdefault(entry["pgid"], reasons.UPMAP_PRIMARY)
    return pinned

"""Builds a snapshot from a reading: which PGs may move, how big a shard is, what is in flight.

A PG, OSD or rule that is not understood does not stop the rest: it becomes immovable with a reason
that is counted.
"""
from __future__ import annotations

from collections import Counter
from typing import Dict, Iterable, Mapping, Optional, Sequence, Tuple

from ..crush.hierarchy import CrushHierarchy
from ..runtime.time_slice import piecewise
from .in_flight import InFlightTracker, PgContext
from .look import (
    CheckedPlacement, Look, PlacementRules, check_placement, omap_on_small_osd, osd_not_reported,
    take_look, untrusted_state)
from .model import Osd, Pg, PgRecord, Pool, Reading, Snapshot, SnapshotPgs, pool_of, transfers
from .operator_weights import with_base_bytes
from .osds import OsdReader, PgTotals, full_ratios
from .pools import CopyCounts, PoolReader
from .sizes.size_model import Corrections, ShardInput, SizeModel

_PGS_A_PIECE = 150   # before it gives way again: about a millisecond


class SnapshotBuilder:
    """Builds each snapshot anew, top to bottom, but for what takes long and depends on little: the
    CRUSH hierarchy and the rules of one CRUSH version, and for each PG the check of its placement,
    which stays right while its up set and upmap items are the same.
    """

    def __init__(self) -> None:
        self._crush_version: Optional[int] = None
        self._crush: Optional[CrushHierarchy] = None
        self._pools = PoolReader()
        self._osds = OsdReader()
        self._sizes = SizeModel()
        self._tracker = InFlightTracker()
        self._placement: Optional[PlacementRules] = None   # that what follows was checked by
        self._placements: Dict[str, CheckedPlacement] = {}

    def build(self, reading: Reading) -> Snapshot:
        """A snapshot of one reading. Raises KeyError where maps lack what every Ceph map has."""
        crush = self._hierarchy(reading)
        osds = self._osds.read(reading, crush)
        look = take_look(reading, crush, self._pools.read(reading, crush), osds)
        self._sizes.fit(look)
        look = look._replace(pools=self._sizes.pools)
        if look.placement != self._placement:
            self._placement, self._placements = look.placement, {}
        self._tracker.begin(reading)
        pgs, totals, copies = self._build_pgs(look)
        self._tracker.end()
        return self._snapshot(look, pgs, totals, copies)

    def _hierarchy(self, reading: Reading) -> CrushHierarchy:
        version = reading.osd_map.get("crush_version")
        if self._crush is None or version is None or version != self._crush_version:
            self._crush = CrushHierarchy(reading.crush)
            self._crush_version = version
        return self._crush

    def _build_pgs(self, look: Look) -> Tuple[SnapshotPgs, PgTotals, CopyCounts]:
        reading, sizes, is_out = look.reading, self._sizes, look.is_out()
        # on these omap cannot be told from RocksDB's own files
        small = frozenset([osd.id for osd in look.osds.values() if osd.has_statistics
                           and osd.size_bytes < reading.min_omap_osd_bytes])
        # an OSD that is out is meant to hold nothing, and the mgr shows zeros for it
        awaited = frozenset([osd for osd in look.osds.keys() - look.with_statistics
                             if not is_out(osd)])
        nearfull = full_ratios(reading.osd_map).nearfull
        pgs, totals, copies = SnapshotPgs(), PgTotals(), CopyCounts()
        placements: Dict[str, CheckedPlacement] = {}
        for pgid in piecewise(look.pgids, _PGS_A_PIECE):
            up, items, record = reading.up[pgid], look.items.get(pgid, ()), look.record(pgid)
            pool, acting = look.pools[pool_of(pgid)], look.acting_set(pgid)
            shard, unknown = sizes.input_of(pool, record, acting)
            placed = self._placements.get(pgid)
            if placed is None or placed.up != up or placed.items != items:
                placed = check_placement(pool, tuple(up), items, is_out)
            placements[pgid] = placed
            immovable = (look.pinned.get(pgid) or pool.immovable or unknown or placed.immovable
                         or osd_not_reported(up, awaited) or untrusted_state(record.state)
                         or (omap_on_small_osd(shard.omap_bytes, shard.data_bytes, up, look.osds,
                                               nearfull)
                             if small and not small.isdisjoint(up) else None))
            holders, doubtful = self._holders(placed, acting, pgid, record, pool, copies)
            pg = pgs[pgid] = Pg(
                pgid, pool.id, placed.raw, placed.up, tuple(acting),
                sizes.shard_bytes(shard), _objects(shard, unknown is not None),
                record.uncopied_ratio, record.state, record.reported_epoch, immovable, holders,
                doubtful)
            totals.add(pg, pool)
        self._placements = placements
        pgs.set_moving(totals.moving)
        return pgs, totals, copies

    def _holders(self, placed: CheckedPlacement, acting: Sequence[int], pgid: str,
                 record: PgRecord, pool: Pool,
                 copies: CopyCounts) -> Tuple[Tuple[int, ...], bool]:
        """OSDs that hold the PG's shards, and whether that is doubtful. Counts missing copies."""
        up = placed.up
        if tuple(acting) == up and len(up) >= pool.size and self._tracker.is_at_rest(
                pgid, up, record.state):
            return up, False
        location = self._tracker.locate(
            PgContext(pgid, up, tuple(acting), placed.items, record, pool.size, pool.erasure))
        copies.add(pool.id, location)
        return location.holders, location.doubtful

    def _snapshot(self, look: Look, pgs: SnapshotPgs, totals: PgTotals,
                  copies: CopyCounts) -> Snapshot:
        reading, pools = look.reading, look.pools
        osd_map, pg_status = reading.osd_map, reading.pg_status
        ratios = full_ratios(osd_map)
        osds = self._osds_of(look, totals, [pgs[pgid] for pgid in totals.moving])
        silent = [pgs[pgid] for pgid in totals.moving if look.record(pgid).is_unknown]
        return Snapshot(
            epoch=osd_map["epoch"], taken_at=reading.taken_at,
            flags=tuple(sorted(f for f in osd_map.get("flags", "").split(",") if f)),
            full_ratio=ratios.full, backfillfull_ratio=ratios.backfillfull,
            nearfull_ratio=ratios.nearfull,
            min_compat_client=osd_map.get("require_min_compat_client", ""),
            osd_release=osd_map.get("require_osd_release", ""),
            crush=look.placement.crush,
            crush_version=osd_map.get("crush_version", 0),
            osds=with_base_bytes(osds, totals.up_bytes), pools=dict(pools), pgs=pgs,
            upmap_items=dict(look.items), pool_states=copies.corrected_states(pg_status),
            object_copies=pg_status.get("misplaced_total") or totals.object_copies(pools),
            misplaced_copies=(pg_status.get("misplaced_objects", 0)
                              + _unreported_misplaced(silent, pools)),
            skipped=Counter(dict(sorted(totals.skipped.items()))),
            stale_osds=reading.stale_osds.intersection(
                osd.id for osd in osds.values() if osd.up and osd.is_in),
            unsettled_seconds=self._tracker.unsettled_seconds,
            primaries={entry["pgid"]: int(entry["primary_osd"])
                       for entry in osd_map.get("pg_upmap_primaries", ())})

    def _osds_of(self, look: Look, totals: PgTotals, moving: Sequence[Pg]) -> Dict[int, Osd]:
        """The OSDs with bytes that are comparable among them, and with what moves to and from them
        and has left them."""
        corrections = self._sizes.corrections(look, moving)
        factors, osds = self._sizes.size_factors, dict(look.osds)
        for number, osd in piecewise(look.osds.items(), _PGS_A_PIECE):
            found = corrections.get(number, _NO_CORRECTIONS)
            inbound, outbound = totals.inbound.get(number, 0), totals.outbound.get(number, 0)
            if not (inbound or outbound or number in factors or any(found)):
                continue
            factor = factors.get(number, 1.0)
            to_come = inbound + int(found.inbound / factor)
            osds[number] = osd._replace(
                inbound_bytes=max(0, to_come), outbound_bytes=outbound,
                undeleted_bytes=int(found.undeleted / factor) + max(0, -to_come),
                uncompacted_bytes=int(found.uncompacted / factor),
                residual_bytes=int(found.residual / factor),
                least_residual_bytes=int(found.least_residual / factor))
            if number in factors:
                osds[number] = osds[number]._replace(
                    size_factor=factor, device=(osd.size_bytes, osd.used_bytes),
                    size_bytes=int(osd.size_bytes / factor),
                    used_bytes=int(osd.used_bytes / factor))
        return osds


_NO_CORRECTIONS = Corrections()


def build_snapshot(reading: Reading) -> Snapshot:
    """Builds one snapshot without the memory of earlier ones."""
    return SnapshotBuilder().build(reading)


def _objects(shard: ShardInput, unknown: bool) -> int:
    """Objects of the PG; at least 1 unless it is known to be empty, as a PG without objects would
    count nothing against the misplaced limit."""
    holds = unknown or shard.data_bytes > 0 or shard.omap_bytes > 0
    return max(shard.objects, 1 if holds else 0)


def _unreported_misplaced(pgs: Iterable[Pg], pools: Mapping[int, Pool]) -> int:
    """Object copies in flight that Ceph does not count: those of PGs that no OSD has reported."""
    return sum(pg.objects * len(transfers(pg, pools[pg.pool].erasure)[0]) for pg in pgs)

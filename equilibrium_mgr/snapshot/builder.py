"""Builds a snapshot from a reading: which PGs may move, how big a shard is, what is in flight.

A PG, OSD or rule that is not understood does not stop the rest: it becomes immovable with a reason
that is counted.
"""
from __future__ import annotations

from collections import Counter
from typing import Iterable, Mapping, Optional

from ..crush.hierarchy import CrushHierarchy
from .amend.look import Look, take_look
from .amend.pg_table import PgTable
from .model import Pg, Pool, Snapshot, SnapshotPgs, transfers
from .operator_weights import with_base_bytes
from .osds import OsdReader, full_ratios, scaled, with_transfers
from .pools import PoolReader
from .reading import Reading
from .shard_scale import ShardScale
from .sizes.osd_factors import ShardRatios


class SnapshotBuilder:
    """Builds snapshots, and keeps from one to the next what has not changed.

    The CRUSH hierarchy and the rules stay valid for one CRUSH version. PGs are amended
    (amend/pg_table.py) where the reading's up sets and records are such as cannot be changed in
    place.
    """

    def __init__(self) -> None:
        self._crush_version: Optional[int] = None
        self._crush: Optional[CrushHierarchy] = None
        self._pools = PoolReader()
        self._osds = OsdReader()
        self._table = PgTable()
        self._scale = ShardScale()

    @property
    def has_amended(self) -> bool:
        """True where the last snapshot was made of the one before."""
        return self._table.is_amended

    def build(self, reading: Reading) -> Snapshot:
        """A snapshot of one reading. Raises KeyError where maps lack what every Ceph map has."""
        crush = self._hierarchy(reading)
        osds = self._osds.read(reading, crush)
        alike = self._pools.read(reading, crush)

        def look_at(pools: Mapping[int, Pool], shard_ratios: ShardRatios) -> Look:
            return take_look(reading, crush, pools, osds, shard_ratios, self._table.last_look)
        pools = self._scale.fit(reading, alike, lambda shard_ratios: self._table.metadata_ratios(
            look_at(alike, shard_ratios)))
        look = look_at(pools, self._scale.shard_ratios)
        self._table.update(look)
        return self._snapshot(look)

    def fit_factors_anew(self) -> None:
        """Has the next reading tell again what shards take on each OSD, see ShardScale."""
        self._scale.fit_anew()

    def copy(self) -> SnapshotBuilder:
        """One that remembers the same of the cluster's past, and builds all PGs at its next
        reading: what the amended ones are to be equal to."""
        copied = SnapshotBuilder()
        copied._crush_version, copied._crush = self._crush_version, self._crush
        copied._pools, copied._table = self._pools, self._table.copy()
        copied._scale = self._scale.copy()
        return copied

    def _snapshot(self, look: Look) -> Snapshot:
        reading, table, pools = look.reading, self._table, look.pools
        osd_map, pg_status, totals = reading.osd_map, reading.pg_status, table.totals
        ratios = full_ratios(osd_map)
        factors = look.surroundings.shard_ratios.factors
        osds = with_transfers(scaled(look.osds, factors.osds), totals.inbound, totals.outbound,
                              table.leftovers.uncompacted.bytes_by_osd(),
                              table.leftovers.undeleted.bytes_by_osd())
        return Snapshot(
            epoch=osd_map["epoch"], taken_at=reading.taken_at,
            flags=tuple(sorted(f for f in osd_map.get("flags", "").split(",") if f)),
            full_ratio=ratios.full, backfillfull_ratio=ratios.backfillfull,
            nearfull_ratio=ratios.nearfull,
            min_compat_client=osd_map.get("require_min_compat_client", ""),
            osd_release=osd_map.get("require_osd_release", ""),
            crush=look.surroundings.placement.crush,
            crush_version=osd_map.get("crush_version", 0),
            osds=with_base_bytes(osds, totals.up_bytes), pools=dict(pools),
            pgs=SnapshotPgs(table.pgs, totals.moving), upmap_items=dict(look.items),
            pool_states=table.copies.corrected_states(pg_status),
            object_copies=pg_status.get("misplaced_total") or totals.object_copies(pools),
            misplaced_copies=(pg_status.get("misplaced_objects", 0)
                              + _unreported_misplaced(map(table.pgs.__getitem__, table.silent),
                                                      pools)),
            skipped=Counter({why: count for why, count in sorted(totals.skipped.items()) if count}),
            stale_osds=reading.stale_osds.intersection(
                osd.id for osd in osds.values() if osd.up and osd.is_in),
            unsettled_seconds=table.tracker.unsettled_seconds,
            primaries={entry["pgid"]: int(entry["primary_osd"])
                       for entry in osd_map.get("pg_upmap_primaries", ())})

    def _hierarchy(self, reading: Reading) -> CrushHierarchy:
        version = reading.osd_map.get("crush_version")
        if self._crush is None or version is None or version != self._crush_version:
            self._crush = CrushHierarchy(reading.crush)
            self._crush_version = version
        return self._crush


def build_snapshot(reading: Reading) -> Snapshot:
    """Builds one snapshot without the memory of earlier ones."""
    return SnapshotBuilder().build(reading)


def _unreported_misplaced(pgs: Iterable[Pg], pools: Mapping[int, Pool]) -> int:
    """Object copies in flight that Ceph does not count: those of PGs that no OSD has reported."""
    return sum(pg.objects * len(transfers(pg, pools[pg.pool].erasure)[0]) for pg in pgs
               if pg.is_moving)

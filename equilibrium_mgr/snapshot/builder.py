"""Builds a snapshot from a reading: which PGs may move, how big a shard is, what is in flight.

A PG, OSD or rule that is not understood does not stop the rest: it becomes immovable with a reason
that is counted.
"""
from __future__ import annotations

from collections import Counter
from typing import (Any, Callable, Dict, FrozenSet, Iterable, Iterator, List, Mapping, NamedTuple,
                    Optional, Tuple, TypeVar)

from ..crush.hierarchy import CrushHierarchy
from ..runtime.checkpoints import Checkpoint, no_checkpoint, with_checkpoints
from ..runtime.row_store import Rows
from . import immovable_reasons as reasons
from .acting_sets import acting_sets
from .in_flight import InFlightTracker, PgContext
from .model import Osd, Pg, Pool, Snapshot, UpmapItems, shard_changes, transfers
from .operator_weights import with_base_bytes, with_shares
from .osds import full_ratios, read_osds, smaller_than, with_transfers
from .pg_checks import (CheckedPlacement, check_placement, omap_on_small_osd, osd_not_reported,
                        placed_by_others, untrusted_state)
from .pools import CopyCounts, PoolReader
from .reading import PgRecord, Reading
from .sizes.shard_inputs import NO_RECORD, ShardInputs, shard_inputs
from .sizes.shard_sizes import DeviceInput, ShardInput, SizeModel, fit_sizes
from .sizes.uncompacted_omap import UncompactedOmap, reported_omap
from .upmap_items import items_by_pg

_T = TypeVar("_T")

_PGS_A_PIECE = 200   # between two checkpoints: about a millisecond


class _Cluster(NamedTuple):
    """The inputs from which PGs are built: a reading, and what was derived from it."""

    reading: Reading
    pools: Mapping[int, Pool]
    osds: Mapping[int, Osd]
    items: Mapping[str, UpmapItems]
    acting: Mapping[str, Any]    # pgid → acting set where it may differ from the up set
    copies: CopyCounts


class SnapshotBuilder:
    """Builds snapshots, and keeps from one to the next what cannot have changed.

    The CRUSH hierarchy and the rules stay valid for one CRUSH version. What was found of a PG's
    placement stays valid while its up set, its upmap items and the topology around it are the same.
    `checkpoint` is called between small pieces of work.
    """

    def __init__(self, checkpoint: Checkpoint = no_checkpoint) -> None:
        self._checkpoint = checkpoint
        self._crush_version: Optional[int] = None
        self._crush: Optional[CrushHierarchy] = None
        self._pools = PoolReader()
        self._topology: Any = None
        self._placements: Rows[CheckedPlacement] = Rows(CheckedPlacement)
        self._tracker = InFlightTracker()
        self._uncompacted = UncompactedOmap()

    def build(self, reading: Reading) -> Snapshot:
        """A snapshot of one reading. Raises KeyError where maps lack what every Ceph map has."""
        osd_map = reading.osd_map
        crush = self._hierarchy(reading)
        pools = self._pools.read(reading, crush)
        items = items_by_pg(osd_map)
        osds = read_osds(osd_map, crush, reading.osd_stats)
        if reading.respect_weights:
            osds = with_shares(osds, crush)
        self._forget_placements(pools, osds)
        copies = CopyCounts()
        pgs, unreported = self._pgs(
            _Cluster(reading, pools, osds, items, acting_sets(reading), copies))
        ratios = full_ratios(osd_map)
        return Snapshot(
            epoch=osd_map["epoch"], taken_at=reading.taken_at,
            flags=tuple(sorted(f for f in osd_map.get("flags", "").split(",") if f)),
            full_ratio=ratios.full, backfillfull_ratio=ratios.backfillfull,
            nearfull_ratio=ratios.nearfull,
            min_compat_client=osd_map.get("require_min_compat_client", ""),
            crush=crush, crush_version=osd_map.get("crush_version", 0),
            osds=with_base_bytes(
                with_transfers(osds, self._checkpointed(pgs.values()), pools,
                               self._uncompacted.bytes_by_osd()), self._checkpointed(pgs.values())),
            pools=pools, pgs=pgs, upmap_items=items,
            pool_states=copies.corrected_states(reading.pg_status),
            object_copies=reading.pg_status.get("misplaced_total") or sum(
                pg.objects * pools[pg.pool].size for pg in self._checkpointed(pgs.values())),
            misplaced_copies=(reading.pg_status.get("misplaced_objects", 0)
                              + _unreported_misplaced(unreported, pools)),
            skipped=Counter(
                pg.immovable for pg in self._checkpointed(pgs.values()) if pg.immovable),
            stale_osds=reading.stale_osds.intersection(
                osd.id for osd in osds.values() if osd.up and osd.is_in),
            unsettled_seconds=self._tracker.unsettled_seconds)

    def _checkpointed(self, items: Iterable[_T]) -> Iterator[_T]:
        return with_checkpoints(items, _PGS_A_PIECE, self._checkpoint)

    def _hierarchy(self, reading: Reading) -> CrushHierarchy:
        version = reading.osd_map.get("crush_version")
        if self._crush is None or version is None or version != self._crush_version:
            self._crush = CrushHierarchy(reading.crush)
            self._crush_version = version
            self._placements = Rows(CheckedPlacement)
        return self._crush

    def _forget_placements(self, pools: Mapping[int, Pool], osds: Mapping[int, Osd]) -> None:
        """Forgets all placements where a pool's rule or size has changed, or which OSDs are out."""
        topology = ([(p.id, p.size, p.rule_id, p.erasure) for p in pools.values()],
                    [osd.id for osd in osds.values() if osd.reweight <= 0.0])
        if topology != self._topology:
            self._topology = topology
            self._placements = Rows(CheckedPlacement)

    def _pgs(self, cluster: _Cluster) -> Tuple[Rows[Pg], List[Pg]]:
        """Returns (pgid → PG of all PGs, the PGs that no OSD has reported)."""
        reading = cluster.reading
        self._tracker.begin(reading)
        with_statistics = frozenset(o.id for o in cluster.osds.values() if o.has_statistics)
        inputs = shard_inputs(reading, cluster.pools, with_statistics, cluster.acting,
                              self._checkpoint, self._uncompacted.bytes_by_pool())
        pgs = self._built_pgs(cluster, inputs, self._fitted_sizes(cluster, inputs),
                              frozenset(cluster.osds) - with_statistics)
        shards = inputs.inputs
        for pgid in [pgid for pgid in self._placements if pgid not in shards]:
            del self._placements[pgid]
        self._tracker.end()
        self._uncompacted.keep(shards)
        self._uncompacted.update(self._omap_by_osd(shards, pgs), reported_omap(reading.osd_stats)
                                 if self._uncompacted.osds else {})
        return pgs, [pgs[pgid] for pgid, reason in inputs.unknown.items()
                     if reason == reasons.NO_STATISTICS]

    def _built_pgs(self, cluster: _Cluster, inputs: ShardInputs, sizes: SizeModel,
                   silent: FrozenSet[int]) -> Rows[Pg]:
        """Builds the PGs. `silent`: OSDs without statistics."""
        reading, pools, osds, items = cluster[:4]
        pinned, unknown = placed_by_others(reading.osd_map), inputs.unknown
        is_out = _is_out_of(osds)
        # an OSD that is out is meant to hold nothing, and the mgr shows zeros for it
        awaited = frozenset(osd for osd in silent if not is_out(osd))
        small = smaller_than(osds, reading.min_omap_osd_bytes)
        nearfull = full_ratios(reading.osd_map).nearfull
        pgs: Rows[Pg] = Rows(Pg)
        for pgid, shard in self._checkpointed(inputs.inputs.items()):
            up = tuple(reading.up[pgid])
            record = reading.records.get(pgid, NO_RECORD)
            pool = pools[shard.pool]
            known = self._placements.get(pgid)
            if known is None or known.up != up or known.items != items.get(pgid, ()):
                known = self._placements[pgid] = check_placement(
                    pool, up, items.get(pgid, ()), is_out)
            pgs[pgid] = Pg(
                pgid=pgid, pool=pool.id, raw=known.raw, up=known.up, acting=tuple(shard.acting),
                shard_bytes=sizes.shard_bytes(shard),
                objects=_objects(shard, pgid in unknown),
                uncopied_ratio=record.uncopied_ratio, state=record.state,
                reported_epoch=record.reported_epoch,
                immovable=(pinned.get(pgid) or pool.immovable or unknown.get(pgid)
                           or known.immovable or osd_not_reported(up, awaited)
                           or untrusted_state(record.state)
                           or (omap_on_small_osd(shard, up, osds, nearfull)
                               if small and not small.isdisjoint(up) else None)),
                holders=self._holders(known, shard, pgid, record, pool, cluster.copies, sizes))
        return pgs

    def _fitted_sizes(self, cluster: _Cluster, inputs: ShardInputs) -> SizeModel:
        uncompacted = self._uncompacted.bytes_by_osd()
        devices = {osd.id: DeviceInput(osd.device_class, max(
            0, osd.used_bytes - uncompacted.get(osd.id, 0)))
            for osd in cluster.osds.values() if osd.has_statistics}
        return fit_sizes(inputs.inputs.values(), devices, cluster.reading.pool_stats,
                         self._checkpoint, cluster.reading.measured)

    def _holders(self, known: CheckedPlacement, shard: ShardInput, pgid: str, record: PgRecord,
                 pool: Pool, copies: CopyCounts, sizes: SizeModel) -> Tuple[int, ...]:
        """OSDs that hold the PG's shards. Counts missing copies and omap that moves as well."""
        up, acting = known.up, tuple(shard.acting)
        if acting == up and len(up) >= pool.size and self._tracker.is_at_rest(
                pgid, up, record.state):
            return up
        location = self._tracker.locate(
            PgContext(pgid, up, acting, known.items, record, pool.size, pool.erasure))
        copies.add(pool.id, location)
        if shard.omap_bytes:
            if location.holders is not up:
                self._uncompacted.begin_move(pgid, shard.omap_bytes,
                                             sizes.shard_bytes(shard) - shard.data_bytes)
            elif location.left_behind:
                self._uncompacted.end_move(
                    pgid, pool.id, shard_changes(location.left_behind, up, pool.erasure)[1],
                    record.omap_bytes or shard.omap_bytes)
        return location.holders

    def _omap_by_osd(self, shards: Mapping[str, ShardInput],
                     pgs: Mapping[str, Pg]) -> Dict[int, int]:
        """OSD id → omap bytes of its PGs, of OSDs that may hold uncompacted omap besides."""
        held = dict.fromkeys(self._uncompacted.osds, 0)
        for pgid, shard in self._checkpointed(shards.items() if held else ()):
            if shard.omap_bytes:
                pg = pgs[pgid]
                for osd in held.keys() & {*pg.holders, *pg.up}:
                    # an OSD reports what comes as it arrives
                    there = 1.0 if osd in pg.holders else 1.0 - pg.uncopied_ratio
                    held[osd] += int(there * shard.omap_bytes)
        return held


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
    return sum(pg.objects * len(transfers(pg, pools[pg.pool].erasure)[0]) for pg in pgs
               if pg.is_moving)


def _is_out_of(osds: Mapping[int, Osd]) -> Callable[[int], bool]:
    def is_out(osd: int) -> bool:
        return osd not in osds or osds[osd].reweight <= 0.0
    return is_out

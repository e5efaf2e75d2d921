"""Builds a snapshot from a reading: who may move, how big a shard is, what is in flight.

One odd PG, OSD or rule never spoils the rest: it becomes immovable with a reason that is counted.
"""
from __future__ import annotations

from collections import Counter
from typing import (Any, Callable, Dict, FrozenSet, Iterable, Iterator, List, Mapping, NamedTuple,
                    Optional, Sequence, Tuple, TypeVar)

from ..crush.hierarchy import CrushHierarchy
from ..crush.placement import NO_OSD, PlacementRule
from ..crush.rule import UnsupportedRule
from ..runtime.checkpoints import Checkpoint, no_checkpoint, with_checkpoints
from ..runtime.row_store import Rows
from . import immovable_reasons as reasons
from .acting_sets import acting_sets, is_optimized
from .in_flight import InFlightTracker, PgContext, PgLocation
from .model import (NO_CLASS, Osd, Pg, PgStateCounts, Pool, Snapshot, UpmapItems, shard_changes,
                    transfers)
from .omap import is_much_omap
from .operator_weights import with_base_bytes, with_shares
from .reading import PgRecord, Reading
from .shard_inputs import NO_RECORD, shard_inputs
from .shard_sizes import DeviceInput, ShardInput, SizeModel, fit_sizes
from .uncompacted_omap import UncompactedOmap, reported_omap
from .upmap_items import invert_items, items_by_pg, items_for, keep_raw_positions

_T = TypeVar("_T")

_PGS_A_PIECE = 200   # between two pauses: about a millisecond
_ERASURE = 3
#: For ratios of 0; OSDs take nearfull for a backfillfull ratio below it.
_FULL_RATIOS = {"full_ratio": 0.95, "backfillfull_ratio": 0.85, "nearfull_ratio": 0.85}


class _CheckedPlacement(NamedTuple):
    """What one PG's placement came to, and from what."""

    up: Tuple[int, ...]
    items: UpmapItems
    raw: Tuple[int, ...]
    immovable: Optional[str]


class SnapshotBuilder:
    """Builds snapshots, and keeps from one to the next what cannot have changed.

    The CRUSH hierarchy and the rules stay valid for one CRUSH version; what is known of a PG's
    placement stays valid while its up set, its upmap items and the topology around it are the same.
    `checkpoint` is called between small pieces of work.
    """

    def __init__(self, checkpoint: Checkpoint = no_checkpoint) -> None:
        self._checkpoint = checkpoint
        self._crush_version: Optional[int] = None
        self._crush: Optional[CrushHierarchy] = None
        self._rules: Dict[Tuple[int, int, bool], PlacementRule] = {}
        self._topology: Any = None
        self._placements: Rows[_CheckedPlacement] = Rows(_CheckedPlacement)
        self._tracker = InFlightTracker()
        self._uncompacted = UncompactedOmap()

    def build(self, reading: Reading) -> Snapshot:
        """Understands one reading. Raises KeyError where maps lack what every Ceph map has."""
        osd_map = reading.osd_map
        crush = self._hierarchy(reading)
        pools = self._pools(osd_map, crush, reading)
        items = items_by_pg(osd_map)
        devices = _devices(osd_map, crush, reading.osd_stats)
        if reading.respect_weights:
            devices = with_shares(devices, crush)
        self._forget_stale(pools, devices)
        tally = _CopyCounts()
        pgs = self._pgs(reading, pools, items, devices, tally)
        copies = reading.pg_status.get("misplaced_total") or sum(
            pg.objects * pools[pg.pool].size for pg in self._paced(pgs.values()))
        ratios = _full_ratios(osd_map)
        return Snapshot(
            epoch=osd_map["epoch"], taken_at=reading.taken_at,
            flags=tuple(sorted(f for f in osd_map.get("flags", "").split(",") if f)),
            full_ratio=ratios["full_ratio"], backfillfull_ratio=ratios["backfillfull_ratio"],
            nearfull_ratio=ratios["nearfull_ratio"],
            min_compat_client=osd_map.get("require_min_compat_client", ""),
            crush=crush, crush_version=osd_map.get("crush_version", 0),
            osds=with_base_bytes(
                _with_transfers(devices, self._paced(pgs.values()), pools,
                                self._uncompacted.bytes_by_osd()), self._paced(pgs.values())),
            pools=pools, pgs=pgs, upmap_items=items,
            pool_states=_pool_states(reading.pg_status, tally),
            object_copies=copies,
            misplaced_copies=(reading.pg_status.get("misplaced_objects", 0)
                              + _unreported_misplaced(tally.unreported, pools)),
            skipped=Counter(
                pg.immovable for pg in self._paced(pgs.values()) if pg.immovable),
            stale_osds=reading.stale_osds.intersection(
                osd.id for osd in devices.values() if osd.up and osd.is_in),
            unsettled_seconds=self._tracker.unsettled_seconds)

    def _paced(self, items: Iterable[_T]) -> Iterator[_T]:
        return with_checkpoints(items, _PGS_A_PIECE, self._checkpoint)

    def _hierarchy(self, reading: Reading) -> CrushHierarchy:
        version = reading.osd_map.get("crush_version")
        if self._crush is None or version is None or version != self._crush_version:
            self._crush = CrushHierarchy(reading.crush)
            self._crush_version = version
            self._rules = {}
            self._placements = Rows(_CheckedPlacement)
        return self._crush

    def _pools(self, osd_map: Mapping[str, Any], crush: CrushHierarchy,
               reading: Reading) -> Dict[int, Pool]:
        profiles = osd_map.get("erasure_code_profiles", {})
        stored = {p["poolid"]: max(0, p.get("stat_sum", {}).get("num_bytes", 0))
                  for p in reading.pool_stats}
        pools: Dict[int, Pool] = {}
        for dump in osd_map["pools"]:
            erasure = dump["type"] == _ERASURE
            data_shards, reason = 1, _pool_in_transition(dump, osd_map)
            if erasure:
                data_shards, reason = _data_shards(dump, profiles, reason)
            rule = None
            try:
                rule = self._rule(crush, dump["crush_rule"], dump["size"], erasure)
            except UnsupportedRule as unsupported:
                reason = reason or f"{reasons.RULE_NOT_SUPPORTED}: {unsupported}"
            except KeyError:
                reason = reason or reasons.NO_RULE
            pools[dump["pool"]] = Pool(
                id=dump["pool"], name=dump["pool_name"], size=dump["size"],
                data_shards=data_shards, erasure=erasure, rule_id=dump["crush_rule"],
                pg_num=dump["pg_num"], stored_bytes=stored.get(dump["pool"], 0),
                max_avail_bytes=reading.max_avail.get(dump["pool"]), rule=rule, immovable=reason,
                is_optimized=erasure and is_optimized(dump))
        return pools

    def _rule(self, crush: CrushHierarchy, rule_id: int, size: int,
              erasure: bool) -> PlacementRule:
        key = (rule_id, size, erasure)
        if key not in self._rules:
            self._rules[key] = PlacementRule(crush, crush.rules[rule_id], size, erasure)
        return self._rules[key]

    def _forget_stale(self, pools: Mapping[int, Pool], devices: Mapping[int, Osd]) -> None:
        topology = ([(p.id, p.size, p.rule_id, p.erasure) for p in pools.values()],
                    [osd.id for osd in devices.values() if osd.reweight <= 0.0])
        if topology != self._topology:
            self._topology = topology
            self._placements = Rows(_CheckedPlacement)

    def _pgs(self, reading: Reading, pools: Mapping[int, Pool], items: Mapping[str, UpmapItems],
             devices: Mapping[int, Osd], tally: _CopyCounts) -> Rows[Pg]:
        acting_of = acting_sets(reading)
        self._tracker.begin(reading)
        pinned = _pinned(reading.osd_map)
        silent = frozenset(osd.id for osd in devices.values() if not osd.has_statistics)
        is_out = _is_out_of(devices)
        # an OSD that is out is to hold nothing, and its statistics are zeros for as long
        awaited = frozenset(osd for osd in silent if not is_out(osd))
        shards, unknown = shard_inputs(reading, pools, frozenset(devices) - silent, acting_of,
                                       self._checkpoint, self._uncompacted.bytes_by_pool())
        model = _fitted_sizes(shards, devices, reading, self._checkpoint, self._uncompacted.bytes_by_osd())
        small = _small_osds(devices, reading)
        nearfull = _full_ratios(reading.osd_map)["nearfull_ratio"]
        pgs: Rows[Pg] = Rows(Pg)
        for pgid, shard in self._paced(shards.items()):
            up = tuple(reading.up[pgid])
            record = reading.records.get(pgid, NO_RECORD)
            pool = pools[shard.pool]
            known = self._placements.get(pgid)
            if known is None or known.up != up or known.items != items.get(pgid, ()):
                known = self._placements[pgid] = _check_placement(pool, up, items.get(pgid, ()), is_out)
            pgs[pgid] = Pg(
                pgid=pgid, pool=pool.id, raw=known.raw, up=known.up, acting=tuple(shard.acting),
                shard_bytes=model.shard_bytes(shard),
                objects=_objects(shard, pgid in unknown),
                uncopied_ratio=record.uncopied_ratio, state=record.state, reported_epoch=record.reported_epoch,
                immovable=(pinned.get(pgid) or pool.immovable or unknown.get(pgid)
                           or known.immovable or _not_reported(up, awaited)
                           or _untrusted(record.state)
                           or (_omap_on_small_osd(shard, up, devices, nearfull)
                               if small and not small.isdisjoint(up) else None)),
                holders=self._holders(pgid, known, shard, record, pool, tally, model))
        for pgid in [pgid for pgid in self._placements if pgid not in shards]:
            del self._placements[pgid]
        self._tracker.end()
        self._uncompacted.keep(shards)
        self._uncompacted.update(self._omap_held(shards, pgs), reported_omap(reading.osd_stats)
                                 if self._uncompacted.osds else {})
        tally.unreported = [pgs[pgid] for pgid, reason in unknown.items()
                            if reason == reasons.NO_STATISTICS]
        return pgs

    def _holders(self, pgid: str, known: _CheckedPlacement, shard: ShardInput, record: PgRecord, pool: Pool,
              tally: _CopyCounts, model: SizeModel) -> Tuple[int, ...]:
        """Where the PG's shards are; what Ceph says of missing copies is judged on the way."""
        up, acting = known.up, tuple(shard.acting)
        if acting == up and len(up) >= pool.size and self._tracker.is_at_rest(pgid, up, record.state):
            return up
        place = self._tracker.locate(
            PgContext(pgid, up, acting, known.items, record, pool.size, pool.erasure))
        tally.note(pool.id, place)
        if shard.omap_bytes:
            if place.holders is not up:
                self._uncompacted.begin_move(pgid, shard.omap_bytes,
                                           model.shard_bytes(shard) - shard.data_bytes)
            elif place.left_behind:
                self._uncompacted.end_move(
                    pgid, pool.id, shard_changes(place.left_behind, up, pool.erasure)[1],
                    record.omap_bytes or shard.omap_bytes)
        return place.holders

    def _omap_held(self, shards: Mapping[str, ShardInput],
                   pgs: Mapping[str, Pg]) -> Dict[int, int]:
        """OSD → omap bytes of its PGs, of OSDs that may hold more."""
        held = dict.fromkeys(self._uncompacted.osds, 0)
        for pgid, shard in self._paced(shards.items() if held else ()):
            if shard.omap_bytes:
                pg = pgs[pgid]
                for osd in held.keys() & {*pg.holders, *pg.up}:
                    # what comes is reported as it arrives
                    there = 1.0 if osd in pg.holders else 1.0 - pg.uncopied_ratio
                    held[osd] += int(there * shard.omap_bytes)
        return held


def build_snapshot(reading: Reading) -> Snapshot:
    """A single snapshot, where there is no earlier one to learn from."""
    return SnapshotBuilder().build(reading)


def _full_ratios(osd_map: Mapping[str, Any]) -> Dict[str, float]:
    """full_ratio, backfillfull_ratio and nearfull_ratio; a usual one where the map has 0."""
    return {name: osd_map.get(name) or default for name, default in _FULL_RATIOS.items()}


def _data_shards(dump: Mapping[str, Any], profiles: Mapping[str, Mapping[str, Any]],
                 reason: Optional[str]) -> Tuple[int, Optional[str]]:
    try:
        return max(1, int(profiles[dump["erasure_code_profile"]]["k"])), reason
    except (KeyError, ValueError):
        return 1, reason or reasons.NO_DATA_SHARDS


def _pool_in_transition(dump: Mapping[str, Any], osd_map: Mapping[str, Any]) -> Optional[str]:
    pg_num = dump["pg_num"]
    if any(dump.get(key, pg_num) != pg_num for key in (
            "pg_num_target", "pg_num_pending", "pg_placement_num", "pg_placement_num_target")):
        return reasons.PG_NUM_CHANGING
    if dump.get("tier_of", -1) >= 0:
        return reasons.CACHE_TIER
    stretch = osd_map.get("stretch_mode", {})
    if stretch.get("degraded_stretch_mode") or stretch.get("recovering_stretch_mode"):
        return reasons.DEGRADED_STRETCH
    return None


def _devices(osd_map: Mapping[str, Any], crush: CrushHierarchy,
             osd_stats: Sequence[Mapping[str, Any]]) -> Dict[int, Osd]:
    """Every OSD of the map as its device reports it, transfers not yet counted."""
    hosts = crush.hosts()
    usage = {s["osd"]: _usage(s) for s in osd_stats}
    devices: Dict[int, Osd] = {}
    for dump in osd_map["osds"]:
        osd = dump["osd"]
        states = dump.get("state", [])
        size, used = usage.get(osd, (0, 0))
        devices[osd] = Osd(
            id=osd, device_class=crush.device_class.get(osd, "") or NO_CLASS,
            host=hosts.get(osd, ""), up=bool(dump.get("up", "up" in states)),
            is_in=bool(dump.get("in", 1)), destroyed="destroyed" in states,
            reweight=float(dump.get("weight", 1.0)), size_bytes=size, used_bytes=used,
            has_statistics=size > 0, inbound_bytes=0, outbound_bytes=0)
    return devices


def _usage(stats: Mapping[str, Any]) -> Tuple[int, int]:
    """(size, used) in bytes. The device's statfs is exact where kb figures are rounded.

    Nothing uses more than there is: the planner's figures would be all rounding.
    """
    statfs = stats.get("statfs") or {}
    total = statfs.get("total", 0)
    if total > 0:
        return total, min(total, max(0, total - statfs.get("available", total)))
    size = max(0, stats.get("kb", 0)) * 1024
    return size, min(size, max(0, stats.get("kb_used", 0)) * 1024)


def _objects(shard: ShardInput, unknown: bool) -> int:
    """None only where the PG is known to hold nothing: else it would be free of every budget."""
    holds = unknown or shard.data_bytes > 0 or shard.omap_bytes > 0
    return max(shard.objects, 1 if holds else 0)


def _unreported_misplaced(pgs: Iterable[Pg], pools: Mapping[int, Pool]) -> int:
    """Object copies on their way that Ceph does not count: of PGs that nobody has reported."""
    return sum(pg.objects * len(transfers(pg, pools[pg.pool].erasure)[0]) for pg in pgs
               if pg.is_moving)


def _small_osds(devices: Mapping[int, Osd], reading: Reading) -> FrozenSet[int]:
    """On which omap cannot be told from RocksDB's own files."""
    return frozenset(osd.id for osd in devices.values() if osd.has_statistics
                     and osd.size_bytes < reading.min_omap_osd_bytes)


def _omap_on_small_osd(shard: ShardInput, up: Sequence[int], devices: Mapping[int, Osd],
                       nearfull: float) -> Optional[str]:
    """Why a PG on a small OSD stays, unless one of its OSDs has to be relieved."""
    if not is_much_omap(shard.omap_bytes, shard.data_bytes) or any(
            osd in devices and devices[osd].used_bytes > nearfull * devices[osd].size_bytes
            for osd in up):
        return None
    return reasons.OMAP_ON_SMALL_OSD


def _not_reported(up: Sequence[int], awaited: FrozenSet[int]) -> Optional[str]:
    """How full an OSD is that has not reported is as unknown as what leaves and enters it."""
    if awaited and not awaited.isdisjoint(up):
        return reasons.OSD_NOT_REPORTED
    return None


def _untrusted(state: str) -> Optional[str]:
    """Why no copy of a PG in this state should be given up."""
    if "inconsistent" in state or "failed_repair" in state:
        return reasons.INCONSISTENT
    return reasons.STALE if "stale" in state else None


def _fitted_sizes(shards: Mapping[str, ShardInput], devices: Mapping[int, Osd],
         reading: Reading, checkpoint: Checkpoint,
         uncompacted: Mapping[int, int]) -> SizeModel:
    measured = {osd.id: DeviceInput(osd.device_class, max(
        0, osd.used_bytes - uncompacted.get(osd.id, 0)))
                for osd in devices.values() if osd.has_statistics}
    return fit_sizes(shards.values(), measured, reading.pool_stats, checkpoint,
                     reading.measured)


def _pinned(osd_map: Mapping[str, Any]) -> Dict[str, str]:
    """pgid → reason for PGs whose placement somebody else has fixed in full."""
    pinned = {e["pgid"]: reasons.FULL_UPMAP for e in osd_map.get("pg_upmap", [])}
    for entry in osd_map.get("pg_upmap_primaries", []):
        pinned.setdefault(entry["pgid"], reasons.UPMAP_PRIMARY)
    return pinned


def _is_out_of(devices: Mapping[int, Osd]) -> Callable[[int], bool]:
    def is_out(osd: int) -> bool:
        return osd not in devices or devices[osd].reweight <= 0.0
    return is_out


def _check_placement(pool: Pool, up: Tuple[int, ...], items: UpmapItems,
           is_out: Callable[[int], bool]) -> _CheckedPlacement:
    """What CRUSH gave the PG, and why its placement keeps it from being moved."""
    raw = invert_items(up, items, is_out) if items else up
    if raw is not None and pool.rule is not None and pool.rule.blocks_overlap:
        if any(source in raw and target in raw for source, target in items):
            raw = None  # CRUSH may have chosen one OSD twice
    return _CheckedPlacement(up, items, raw or up, _immovable(pool, up, raw))


def _immovable(pool: Pool, up: Tuple[int, ...], raw: Optional[Tuple[int, ...]]) -> Optional[str]:
    if pool.rule is None:
        return pool.immovable
    if len(up) != pool.size or NO_OSD in up:
        return reasons.NO_OSD_FOR_SHARD
    if raw is None:
        return reasons.RAW_UNKNOWN
    broken = pool.rule.violation(up)
    if (broken or pool.rule.needs_full_check) and pool.rule.upmap_rejection(up):
        return reasons.MONITOR_REJECTS
    if broken:
        return reasons.BREAKS_RULE
    if raw == up:
        return None
    try:
        items_for(raw, up if pool.erasure else keep_raw_positions(raw, up, pool.rule))
    except ValueError:
        return reasons.EXCHANGED_SHARDS
    return None


def _with_transfers(devices: Mapping[int, Osd], pgs: Iterable[Pg], pools: Mapping[int, Pool],
                    uncompacted: Mapping[int, int]) -> Dict[int, Osd]:
    # whole bytes: sums of ratios would depend on the order of the PGs
    inbound: Dict[int, int] = {}
    outbound: Dict[int, int] = {}
    for pg in pgs:
        if not pg.is_moving:
            continue
        gains, losses = transfers(pg, pools[pg.pool].erasure)
        for osd in gains:
            inbound[osd] = inbound.get(osd, 0) + int(pg.shard_bytes * pg.uncopied_ratio)
        for osd in losses:
            outbound[osd] = outbound.get(osd, 0) + pg.shard_bytes
    return {osd.id: osd._replace(inbound_bytes=inbound.get(osd.id, 0),
                                 outbound_bytes=outbound.get(osd.id, 0),
                                 uncompacted_bytes=uncompacted.get(osd.id, 0))
            for osd in devices.values()}


class _CopyCounts:
    """PGs by pool that are short of copies, and those that Ceph only calls so as they move;
    and the PGs that nobody has reported."""

    def __init__(self) -> None:
        self.short: Counter[int] = Counter()
        self.explained: Counter[int] = Counter()
        self.unreported: List[Pg] = []

    def note(self, pool_id: int, place: PgLocation) -> None:
        if place.lacks_copies:
            self.short[pool_id] += 1
        elif place.only_moving:
            self.explained[pool_id] += 1


def _pool_states(status: Mapping[str, Any], tally: _CopyCounts) -> Dict[int, PgStateCounts]:
    """As `pg_status` has them, less the PGs that only move, and with those that are short of
    copies by the osdmap, which knows earlier."""
    states = _reported_states(status)
    for pool_id in tally.short.keys() | tally.explained.keys():
        known = states.get(pool_id, PgStateCounts(0, 0))
        states[pool_id] = known._replace(degraded=max(
            0, known.degraded - tally.explained[pool_id],
            tally.short[pool_id] - known.inactive))
    return states


def _reported_states(status: Mapping[str, Any]) -> Dict[int, PgStateCounts]:
    states: Dict[int, PgStateCounts] = {}
    for pool in status.get("pgs_by_pool_state", []):
        inactive = degraded = 0
        for entry in pool.get("pg_state_counts", []):
            names: List[str] = entry["state_name"].split("+")
            if "active" not in names:
                inactive += entry["count"]
            elif "degraded" in names or "undersized" in names:
                degraded += entry["count"]
        states[pool["pool_id"]] = PgStateCounts(inactive, degraded)
    return states

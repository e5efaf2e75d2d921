"""Reads the whole cluster, anew at each look.

The space of pools as `ceph df` has it: the mgr computes get('df') with the code of the monitor
(PGMapDigest::dump_pool_stats_full in Ceph's src/mon/PGMap.cc).
"""
from __future__ import annotations

from typing import (
    Any, Callable, Dict, FrozenSet, List, Mapping, NamedTuple, Optional, Sequence, Tuple)

from mgr_module import MgrModule

from ..runtime.job_thread import WorkCounters
from ..runtime.time_slice import piecewise, release
from ..settings import Settings
from ..snapshot.builder import SnapshotBuilder
from ..snapshot.model import PoolStatfs, Reading, Snapshot
from ..snapshot.osds import OsdReports
from ..snapshot.pg_statistics import PgStatistics
from .osd_map_reader import OsdMapReading, modified_at, read_osd_map


#: Seconds between readings of all statistics of every PG, while pools change and where none does.
_FULL_STATISTICS_SECONDS, _LONGEST_STATISTICS_SECONDS = 3600.0, 86_400.0
#: Ratio by which a pool's objects or omap have to differ from those at the last full reading.
_CHANGED_RATIO = 0.01
_GIB = 1 << 30
_ROWS_A_PIECE = 4000   # before it gives way again: about a millisecond

#: pool id → (PGs, objects, omap bytes)
_PoolTotals = Dict[int, Tuple[int, int, int]]


class NotReady(RuntimeError):
    """The mgr does not have enough data yet; the message is one sentence for operators."""


class SnapshotReader:
    """Not to be used by two threads at a time.

    `get` returns a structure of the mgr and raises NotReady while the mgr does not have it.
    """

    def __init__(self, mgr: MgrModule, get: Callable[[str], Mapping[str, Any]],
                 clock: Callable[[], float], settings: Callable[[], Settings],
                 counters: WorkCounters, reports: OsdReports) -> None:
        self._mgr = mgr
        self._get = get
        self._clock = clock
        self._settings = settings
        self.counters = counters
        self._osd_reports = reports
        self._statistics = PgStatistics()
        self._statistics_read_at: Optional[float] = None
        self._statistics_totals: _PoolTotals = {}
        self._builder = SnapshotBuilder()
        self._maps: Optional[OsdMapReading] = None   # of the last epoch that was read
        self.measured: Mapping[int, float] = {}   # pool id → bytes per object, see Reading
        self.drained: FrozenSet[int] = frozenset()   # OSDs that are to be emptied
        self.sent: FrozenSet[str] = frozenset()   # PGs that the last mgr had moved, see Reading
        self.last_reading: Optional[Reading] = None

    def snapshot(self) -> Snapshot:
        """Raises NotReady."""
        reading = self._read()
        snapshot = self._builder.build(reading)
        self.last_reading = reading
        return snapshot

    def _read(self) -> Reading:
        progress = self._get("pg_progress")
        if not progress.get("pg_ready", True):
            raise NotReady("the mgr has not received the statistics of all PGs yet")
        pgs = progress.get("pgs", {})
        pools = self._get("df").get("pools", [])
        maps, osdmap = self._maps, self._mgr.get_osdmap()
        if maps is None or maps.osd_map["epoch"] != osdmap.get_epoch():
            self.counters.add("osdmap_dumps")
            maps = self._maps = read_osd_map(osdmap)
        pool_stats = self._get("pool_stats").get("pool_stats", [])
        self._refresh_statistics(pool_stats)
        records = self._statistics.records(pgs, pool_stats, maps.acting, maps.up)
        held: List[Any] = [*pgs.values(), *pgs]
        del pgs, progress
        release(held)
        osds = self._get("osd_stats")
        osd_stats = osds.get("osd_stats", [])
        now, settings = self._clock(), self._settings()
        return Reading(
            taken_at=now, osd_map=maps.osd_map, crush=maps.crush, up=maps.up, records=records,
            osd_stats=osd_stats, pool_stats=pool_stats, pg_status=self._get("pg_status"),
            max_avail=_max_avail(pools), stale_osds=self._osd_reports.stale(osd_stats, now),
            acting=maps.acting, respect_weights=settings.respect_weights, measured=self.measured,
            min_omap_osd_bytes=int(settings.min_omap_osd_size * _GIB),
            changed_at=modified_at(maps.osd_map), drained=self.drained, sent=self.sent,
            pool_statfs=_pool_statfs(osds))

    def _refresh_statistics(self, pool_stats: Sequence[Mapping[str, Any]]) -> None:
        """Reads all statistics of every PG where those of the pools show that they have changed."""
        now = self._clock()
        totals = _totals(pool_stats)
        if self._statistics_read_at is not None:
            age = now - self._statistics_read_at
            if 0.0 <= age < _FULL_STATISTICS_SECONDS:
                return
            if 0.0 <= age < _LONGEST_STATISTICS_SECONDS and self._statistics.is_complete and (
                    not _have_changed(self._statistics_totals, totals)):
                return
        self.counters.add("pg_stats")
        self._statistics.read_full(self._get("pg_stats").get("pg_stats", []), pool_stats)
        self._statistics_read_at, self._statistics_totals = now, totals


def _max_avail(pools: Sequence[Mapping[str, Any]]) -> Dict[int, int]:
    return {p["id"]: p["stats"]["max_avail"] for p in pools if "max_avail" in p.get("stats", {})}


def _pool_statfs(osds: Mapping[str, Any]) -> List[PoolStatfs]:
    """Of `get('osd_stats')`; none where OSDs do not tell their pools apart."""
    return [(row["poolid"], row["osd"], row.get("allocated", 0), row.get("data_stored", 0))
            for row in piecewise(osds.get("pool_statfs", ()), _ROWS_A_PIECE)]


def _totals(pool_stats: Sequence[Mapping[str, Any]]) -> _PoolTotals:
    sums = {pool["poolid"]: pool.get("stat_sum", {}) for pool in pool_stats}
    return {pool["poolid"]: (pool.get("num_pg", 0), sums[pool["poolid"]].get("num_objects", 0),
                             sums[pool["poolid"]].get("num_omap_bytes", 0)) for pool in pool_stats}


def _have_changed(then: _PoolTotals, now: _PoolTotals) -> bool:
    """True where a pool was created, deleted, split or merged, or holds clearly more or less."""
    return then.keys() != now.keys() or any(
        then[pool][0] != pgs or any(abs(a - b) > _CHANGED_RATIO * a
                                    for a, b in zip(then[pool][1:], counts))
        for pool, (pgs, *counts) in now.items())


class PoolSpaceNow(NamedTuple):
    """Ceph's own figures of one pool at this moment; None for what a release does not tell."""

    name: str
    stored: Optional[int]            # client bytes
    percent_used: Optional[float]    # a ratio: used ÷ (used + available), raw bytes of the pool
    max_avail: Optional[int]         # client bytes


def pool_space(df: Mapping[str, Any]) -> Dict[int, PoolSpaceNow]:
    """Pool id → its space, from get('df')."""
    return {int(pool["id"]): PoolSpaceNow(
        str(pool["name"]), pool.get("stats", {}).get("stored"),
        pool.get("stats", {}).get("percent_used"), pool.get("stats", {}).get("max_avail"))
        for pool in df.get("pools", [])}

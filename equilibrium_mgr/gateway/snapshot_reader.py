"""Reads the whole cluster, at the cost of what has changed since the last time.

Statistics and PGs are kept and amended. Now and then a full reading of the same moment is held
against the amended one: a difference is an error of this module, which is logged, counted and
healed by going on with the full one.
"""
from __future__ import annotations

import logging
from typing import (
    Any, Callable, Dict, FrozenSet, List, Mapping, NamedTuple, Optional, Sequence, Tuple)

from ..runtime.time_slice import piecewise, release
from ..runtime.work_counters import WorkCounters
from ..settings import Settings
from ..snapshot.amend.differences import differences
from ..snapshot.builder import SnapshotBuilder
from ..snapshot.model import Snapshot
from ..snapshot.reading import PoolStatfs, Reading
from ..snapshot.statistics.osd_reports import OsdReports
from ..snapshot.statistics.pg_reports import PgReports
from ..snapshot.statistics.pg_statistics import PgStatistics
from .mgr_api import MgrApi
from .osd_map_reader import OsdMapReader, modified_at

#: Seconds between readings of all statistics of every PG, while pools change and where none does.
_FULL_STATISTICS_SECONDS, _LONGEST_STATISTICS_SECONDS = 3600.0, 86_400.0
#: Ratio by which a pool's objects or omap have to differ from those at the last full reading.
_CHANGED_RATIO = 0.01
_GIB = 1 << 30
_ROWS_A_PIECE = 4000   # before it gives way again: about a millisecond
#: Amended snapshots after which one is held against a full one.
LOOKS_BETWEEN_CHECKS = 100
#: Differences that are logged one by one.
_DIFFERENCES_LOGGED = 10

#: pool id → (PGs, objects, omap bytes)
_PoolTotals = Dict[int, Tuple[int, int, int]]


class NotReady(RuntimeError):
    """The mgr does not have enough data yet; the message is one sentence for operators."""


class _FullReading(NamedTuple):
    """A reading whose records were all made anew, and what has made them."""

    statistics: PgStatistics
    reading: Reading


class SnapshotReader:
    """Not to be used by two threads at a time.

    `get` returns a structure of the mgr and raises NotReady while the mgr does not have it.
    """

    def __init__(self, mgr: MgrApi, get: Callable[[str], Mapping[str, Any]],
                 clock: Callable[[], float], settings: Callable[[], Settings],
                 counters: WorkCounters, reports: OsdReports) -> None:
        self._get = get
        self._clock = clock
        self._settings = settings
        self.counters = counters
        self._osd_reports = reports
        self._log = logging.getLogger(__name__)
        self._pg_reports = PgReports()
        self._statistics = PgStatistics()
        self._statistics_read_at: Optional[float] = None
        self._statistics_totals: _PoolTotals = {}
        self._builder = SnapshotBuilder()
        self._looks = 0   # since the last one that was built in full
        self._maps = OsdMapReader(mgr, counters)
        self.measured: Mapping[int, float] = {}   # pool id → bytes per object, see Reading
        self.drained: FrozenSet[int] = frozenset()   # OSDs that are to be emptied
        self.sent: FrozenSet[str] = frozenset()   # PGs that the last mgr had moved, see Reading
        self.last_reading: Optional[Reading] = None

    def snapshot(self, fresh: bool) -> Snapshot:
        """Raises NotReady. `fresh` asks for what a plan needs: what shards take on each OSD by what
        it reports now."""
        if fresh:
            self.fit_factors_anew()
        is_check = self._looks >= LOOKS_BETWEEN_CHECKS
        try:
            builder = self._builder.copy() if is_check else None
            reading, full = self._read(is_check)
            snapshot = self._builder.build(reading)
            if builder is not None and full is not None and self._builder.has_amended:
                self._looks = 0
                reading, snapshot = self._checked(reading, snapshot, full, builder)
        except Exception:
            self.start_over()   # what was kept may be of two moments
            raise
        self.last_reading = reading
        self._looks = self._looks + 1 if self._builder.has_amended else 0
        return snapshot

    @property
    def has_amended(self) -> bool:
        """True where the last snapshot was made of the one before."""
        return self._builder.has_amended

    def fit_factors_anew(self) -> None:
        """Has the next snapshot tell again what shards take on each OSD."""
        self._builder.fit_factors_anew()

    def start_over(self) -> None:
        """Has the next snapshot built in full. What is known of the cluster's past stays."""
        self._pg_reports.forget()
        self._statistics = self._statistics.copy()
        self._builder = self._builder.copy()

    def _checked(self, reading: Reading, amended: Snapshot, full: _FullReading,
                 builder: SnapshotBuilder) -> Tuple[Reading, Snapshot]:
        """Reading and snapshot to go on with: what was built in full where the amended snapshot is
        another, which is logged and counted."""
        expected = builder.build(full.reading)
        found = differences(amended, expected)
        if not found:
            return reading, amended
        for difference in found[:_DIFFERENCES_LOGGED]:
            self._log.error("the kept snapshot was wrong: %s", difference)
        self._log.error("the kept snapshot was wrong in %d values; a full one replaces it",
                        len(found))
        self.counters.add("snapshot_differences", len(found))
        self._statistics, self._builder = full.statistics, builder
        return full.reading, expected

    def _read(self, is_check: bool) -> Tuple[Reading, Optional[_FullReading]]:
        """(reading, for a check the same with all records made anew)."""
        progress = self._get("pg_progress")
        if not progress.get("pg_ready", True):
            raise NotReady("the mgr has not received the statistics of all PGs yet")
        pgs = progress.get("pgs", {})
        pools = self._get("df").get("pools", [])
        changes = self._pg_reports.read(pgs)
        maps = self._maps.read()
        pool_stats = self._get("pool_stats").get("pool_stats", [])
        self._refresh_statistics(pool_stats)
        statistics = self._statistics.copy() if is_check else None
        arguments = pgs, pool_stats, maps.acting, maps.up, self._pg_reports, changes
        records = self._statistics.records(*arguments)
        osds = self._get("osd_stats")
        osd_stats = osds.get("osd_stats", [])
        now, settings = self._clock(), self._settings()
        reading = Reading(
            taken_at=now, osd_map=maps.osd_map, crush=maps.crush, up=maps.up, records=records,
            osd_stats=osd_stats, pool_stats=pool_stats, pg_status=self._get("pg_status"),
            max_avail=_max_avail(pools), stale_osds=self._osd_reports.stale(osd_stats, now),
            acting=maps.acting, respect_weights=settings.respect_weights, measured=self.measured,
            min_omap_osd_bytes=int(settings.min_omap_osd_size * _GIB),
            changed_at=modified_at(maps.osd_map), drained=self.drained, sent=self.sent,
            pool_statfs=_pool_statfs(osds))
        full = None if statistics is None else _FullReading(
            statistics, reading._replace(records=statistics.records(*arguments)))
        held: List[Any] = [*pgs.values(), *pgs]
        del arguments, pgs, progress
        release(held)
        return reading, full

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

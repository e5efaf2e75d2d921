"""PG statistics between the rare full readings.

`pg_stats` holds the mgr's global lock for a second and more on big clusters, so it is read about
hourly. In between `pg_progress` tells each PG's bytes, state and recovered bytes, and `pool_stats`
by how much the pool's objects and omap have grown since.
"""
from __future__ import annotations

from collections import Counter
from typing import (Any, Callable, Collection, Dict, Iterable, Mapping, NamedTuple, Sequence,
                    Tuple)

from .paced import no_pause, paced
from .reading import PgRecord

_PGS_A_PIECE = 200   # between two pauses: well below a millisecond


class _Full(NamedTuple):
    """What only the full reading tells about one PG."""

    num_objects: int
    omap_bytes: int


class _PoolSize(NamedTuple):
    """PGs of a pool and their logical bytes, as of now."""

    pgs: int
    bytes: int


class _Transfer(NamedTuple):
    """Where a PG's movement stood when it was first seen."""

    to_come: float        # ratio
    recovered_bytes: int  # the PG's cumulative counter at that time


class PgStatistics:
    """The newest known record of every PG, kept up to date from cheap readings.

    `pause` is called between small pieces of work.
    """

    def __init__(self, pause: Callable[[], object] = no_pause) -> None:
        self._pause = pause
        self._full: Dict[str, _Full] = {}
        self._pool_totals: Dict[int, _Full] = {}
        self._counts: Mapping[int, int] = {}      # pool → PGs of the last full reading
        self._transfers: Dict[str, _Transfer] = {}
        self._recovered: Dict[str, int] = {}   # as of the last reading, before a transfer begins

    def read_full(self, pg_stats: Iterable[Mapping[str, Any]],
                  pool_stats: Iterable[Mapping[str, Any]]) -> None:
        """Takes in `get('pg_stats')['pg_stats']` and the pool statistics of the same moment."""
        self._pool_totals = _pool_totals(pool_stats)
        self._full = {}
        self._transfers = {}
        for pg in pg_stats:
            stat = pg.get("stat_sum", {})
            objects = max(0, stat.get("num_objects", 0))
            self._full[pg["pgid"]] = _Full(objects, max(0, stat.get("num_omap_bytes", 0)))
            moving = _moving(pg.get("up", ()), pg.get("acting", ()))
            if moving and objects:
                misplaced = max(0, stat.get("num_objects_misplaced", 0))
                self._transfers[pg["pgid"]] = _Transfer(
                    min(1.0, misplaced / (objects * moving)), stat.get("num_bytes_recovered", 0))
        self._counts = Counter(int(pgid.split(".", 1)[0]) for pgid in self._full)

    def records(self, progress: Mapping[str, Mapping[str, Any]],
                pool_stats: Iterable[Mapping[str, Any]],
                moving: Collection[str]) -> Dict[str, PgRecord]:
        """pgid → record, from `get('pg_progress')['pgs']`; `moving` are the PGs with a pg_temp."""
        totals = _pool_totals(pool_stats)
        self._transfers = {pgid: t for pgid, t in self._transfers.items() if pgid in moving}
        sizes = _pool_sizes(paced(progress.items(), _PGS_A_PIECE, self._pause))
        # of PGs that were split or merged since, the last full reading tells nothing
        resized = {pool for pool, size in sizes.items() if size.pgs != self._counts.get(pool)}
        growth = {pool: _growth(self._pool_totals.get(pool), now) for pool, now in totals.items()}
        records: Dict[str, PgRecord] = {}
        for pgid, pg in paced(progress.items(), _PGS_A_PIECE, self._pause):
            pool = int(pgid.split(".", 1)[0])
            full = self._full.get(pgid) if pool not in resized else None
            if full is None:
                full = _part(totals.get(pool, _Full(0, 0)), max(0, pg.get("num_bytes", 0)),
                             sizes[pool])
            else:
                objects, omap = growth.get(pool, (1.0, 1.0))
                full = _Full(int(full.num_objects * objects), int(full.omap_bytes * omap))
            to_come = 1.0
            if pgid in moving:
                to_come = self._to_come(pgid, pg)
            records[pgid] = PgRecord(max(0, pg.get("num_bytes", 0)), full.num_objects,
                                     full.omap_bytes, pg.get("state", ""), to_come,
                                     pg.get("reported_epoch", 0))
        self._recovered = {pgid: pg.get("num_bytes_recovered", 0)
                           for pgid, pg in progress.items()}
        return records

    def _to_come(self, pgid: str, pg: Mapping[str, Any]) -> float:
        """Ratio still to be copied: an object counts as recovered once, when all its moving shards
        have arrived (PrimaryLogPG::on_global_recover)."""
        recovered = pg.get("num_bytes_recovered", 0)
        seen = self._transfers.setdefault(
            pgid, _Transfer(1.0, self._recovered.get(pgid, recovered)))
        whole = pg.get("num_bytes", 0)
        if whole <= 0:
            return seen.to_come
        return min(1.0, max(0.0, seen.to_come - (recovered - seen.recovered_bytes) / whole))


def _moving(up: Sequence[int], acting: Sequence[int]) -> int:
    return sum(1 for osd in up if osd not in acting)


def _pool_totals(pool_stats: Iterable[Mapping[str, Any]]) -> Dict[int, _Full]:
    return {p["poolid"]: _Full(max(0, p.get("stat_sum", {}).get("num_objects", 0)),
                               max(0, p.get("stat_sum", {}).get("num_omap_bytes", 0)))
            for p in pool_stats}


def _growth(then: Any, now: _Full) -> Sequence[float]:
    if then is None:
        return 1.0, 1.0
    return (now.num_objects / then.num_objects if then.num_objects else 1.0,
            now.omap_bytes / then.omap_bytes if then.omap_bytes else 1.0)


def _pool_sizes(progress: Iterable[Tuple[str, Mapping[str, Any]]]) -> Dict[int, _PoolSize]:
    """Pool → its PGs and their bytes."""
    found: Dict[int, _PoolSize] = {}
    for pgid, pg in progress:
        pool = int(pgid.split(".", 1)[0])
        pgs, known = found.get(pool, (0, 0))
        found[pool] = _PoolSize(pgs + 1, known + max(0, pg.get("num_bytes", 0)))
    return found


def _part(total: _Full, pg_bytes: int, pool: _PoolSize) -> _Full:
    """Of a pool's totals, for a PG that no full reading has seen: by its bytes, which are known at
    once (between two powers of 2 PGs differ by half), or the mean of PGs that have none."""
    share, whole = (pg_bytes, pool.bytes) if pool.bytes else (1, pool.pgs)
    return _Full(total.num_objects * share // whole, total.omap_bytes * share // whole)

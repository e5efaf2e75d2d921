"""Statistics of every PG, kept up to date between the rare full readings.

`pg_stats` holds the mgr's global lock for a second and more on big clusters, so it is read about
hourly. In between `pg_progress` has each PG's bytes, state and recovered bytes, and `pool_stats`
the present objects and omap of each pool.
"""
from __future__ import annotations

from collections import Counter
from typing import (Any, Collection, Dict, Iterable, Mapping, NamedTuple, Sequence,
                    Tuple)

from ..runtime.checkpoints import Checkpoint, no_checkpoint, with_checkpoints
from ..runtime.row_store import Rows
from .model import pool_of
from .pool_figures import NOTHING, PgFigures, PoolFigures
from .reading import PgRecord

_PGS_A_PIECE = 200   # between two checkpoints: well below a millisecond


class _Transfer(NamedTuple):
    """The state of a PG's movement when it was first seen."""

    uncopied_ratio: float        # ratio
    recovered_bytes: int  # the PG's cumulative counter at that time
    last: float = 1.0     # the ratio when the PG was last active
    up: Tuple[int, ...] = ()   # its targets; empty where not known


class PgStatistics:
    """The newest known record of every PG, kept up to date from cheap readings.

    `checkpoint` is called between small pieces of work.
    """

    def __init__(self, checkpoint: Checkpoint = no_checkpoint) -> None:
        self._checkpoint = checkpoint
        self._full: Rows[PgFigures] = Rows(PgFigures)
        self._counts: Mapping[int, int] = {}      # pool → PGs of the last full reading
        self._transfers: Dict[str, _Transfer] = {}
        self._recovered: Dict[str, int] = {}   # as of the last reading, before a transfer begins

    def read_full(self, pg_stats: Iterable[Mapping[str, Any]],
                  pool_stats: Iterable[Mapping[str, Any]]) -> None:
        """Reads `get('pg_stats')['pg_stats']` and the pool statistics of the same moment.

        PGs that no OSD has reported yet get no figures.
        """
        self._full = Rows(PgFigures)
        self._transfers = {}
        counts: Counter[int] = Counter()
        holding = {pool["poolid"] for pool in pool_stats
                   if pool.get("stat_sum", {}).get("num_objects", 0) > 0}
        for pg in pg_stats:
            pool = pool_of(pg["pgid"])
            counts[pool] += 1
            stat = pg.get("stat_sum", {})
            if _is_unreported(pg) or (not stat and pool in holding):
                continue
            objects = max(0, stat.get("num_objects", 0))
            self._full[pg["pgid"]] = PgFigures(objects, max(0, stat.get("num_omap_bytes", 0)),
                                           stat.get("num_objects_omap", -1))
            moving = _moving(pg.get("up", ()), pg.get("acting", ()))
            if moving and objects:
                # copies that no OSD has any more, counted as degraded only, have to be copied too
                missing = (max(0, stat.get("num_objects_misplaced", 0))
                           + max(0, stat.get("num_objects_degraded", 0)))
                self._transfers[pg["pgid"]] = _Transfer(
                    min(1.0, missing / (objects * moving)), stat.get("num_bytes_recovered", 0),
                    up=tuple(pg.get("up", ())))
        self._counts = counts

    @property
    def is_complete(self) -> bool:
        """True where the last full reading had the statistics of every PG."""
        return len(self._full) == sum(self._counts.values())

    def records(self, progress: Mapping[str, Mapping[str, Any]],
                pool_stats: Iterable[Mapping[str, Any]], moving: Collection[str],
                up_sets: Mapping[str, Sequence[int]] = {}) -> Rows[PgRecord]:
        """pgid → record, from `get('pg_progress')['pgs']`.

        `moving`: PGs with a pg_temp. `up_sets` (pgid → up set) distinguish a movement from the next
        one of the same PG.
        """
        pools = self._pools(progress, pool_stats)
        transfers: Dict[str, _Transfer] = {}
        records: Rows[PgRecord] = Rows(PgRecord)
        for pgid, pg in with_checkpoints(progress.items(), _PGS_A_PIECE, self._checkpoint):
            state, num_bytes = pg.get("state", ""), max(0, pg.get("num_bytes", 0))
            uncopied_ratio, full = 1.0, NOTHING
            is_clean = "clean" in state
            if is_clean or not _is_unreported(pg):
                full = pools[pool_of(pgid)].figures(self._full.get(pgid), num_bytes)
            if pgid in moving or not is_clean and (pgid in self._transfers or full is not NOTHING):
                uncopied_ratio = self._to_come(pgid, pg, tuple(up_sets.get(pgid, ())), transfers)
            records[pgid] = PgRecord(
                num_bytes, full.num_objects, full.omap_bytes, state, uncopied_ratio,
                pg.get("reported_epoch", 0), full.omap_objects)
        self._transfers = transfers
        before = self._recovered   # an unreported PG's counter reads 0
        self._recovered = {pgid: pg.get("num_bytes_recovered", 0) or before.get(pgid, 0)
                           for pgid, pg in progress.items()}
        return records

    def _pools(self, progress: Mapping[str, Mapping[str, Any]],
               pool_stats: Iterable[Mapping[str, Any]]) -> Dict[int, PoolFigures]:
        """Pool id → how its present totals are apportioned to its PGs."""
        counts: Counter[int] = Counter()
        found: Dict[int, PoolFigures] = {}
        for pgid, pg in with_checkpoints(progress.items(), _PGS_A_PIECE, self._checkpoint):
            pool = pool_of(pgid)
            counts[pool] += 1
            figures = found.get(pool)
            if figures is None:
                figures = found[pool] = PoolFigures()
            if "clean" in pg.get("state", "") or not _is_unreported(pg):
                figures.add(self._full.get(pgid), max(0, pg.get("num_bytes", 0)))
        totals = {pool["poolid"]: pool.get("stat_sum", {}) for pool in pool_stats}
        for pool, figures in found.items():
            # the last full reading says nothing about PGs that were split or merged since
            figures.apportion(totals.get(pool), counts[pool] != self._counts.get(pool))
        return found

    def _to_come(self, pgid: str, pg: Mapping[str, Any], up: Tuple[int, ...],
                 transfers: Dict[str, _Transfer]) -> float:
        """Ratio of the moving bytes that are still to be copied.

        An object counts as recovered once, when all its moving shards have arrived
        (PrimaryLogPG::on_global_recover).
        """
        recovered = pg.get("num_bytes_recovered", 0)
        seen = self._transfers.get(pgid)
        if seen is None:
            seen = _Transfer(1.0, self._recovered.get(pgid, recovered), up=up)
        elif up and seen.up and up != seen.up:  # earlier copies went to other OSDs
            seen = _Transfer(1.0, max(recovered, self._recovered.get(pgid, 0)), up=up)
        whole, uncopied_ratio = pg.get("num_bytes", 0), seen.uncopied_ratio
        if "active" not in pg.get("state", ""):
            # it peers, or its new primary has not reported (seen on 20.2.4)
            uncopied_ratio = seen.last
        elif whole > 0:
            done = (recovered - seen.recovered_bytes) / whole
            uncopied_ratio = min(1.0, max(0.0, seen.uncopied_ratio - done))
        transfers[pgid] = seen._replace(last=uncopied_ratio, up=up or seen.up)
        return uncopied_ratio


def _moving(up: Sequence[int], acting: Sequence[int]) -> int:
    return sum(1 for osd in up if osd not in acting)


def _is_unreported(pg: Mapping[str, Any]) -> bool:
    """True while the mgr knows the PG from the osdmap only."""
    return "unknown" in pg.get("state", "") or int(pg.get("reported_epoch", 1)) <= 0

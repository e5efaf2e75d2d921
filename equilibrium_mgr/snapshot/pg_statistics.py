"""Statistics of every PG, kept up to date between the rare full readings.

`pg_stats` holds the mgr's global lock for a second and more on big clusters, so it is read hourly,
and where it says nothing of a PG, or little of a pool that has grown since. In between,
`pg_progress` has each PG's bytes, state and recovered bytes, and `pool_stats` the present objects
and omap of each pool: what its PGs had of them grows and shrinks with these.
"""
from __future__ import annotations

from typing import (
    Any, Dict, FrozenSet, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple)

from ..crush.placement import NO_OSD
from ..runtime.time_slice import piecewise
from .model import PgRecord, pool_of


#: Of a pool that has grown by more than this factor the last full reading says little: few objects
#: in few PGs, and nothing of where those are that have come since.
_MOST_GROWTH = 4.0
_PGS_A_PIECE = 200   # before it gives way again: well below a millisecond
#: What only a full reading has of a PG, and `stat_sum` of a pool: objects, bytes of omap, objects
#: that have omap (-1 where not known).
_FIGURES = ("num_objects", "num_omap_bytes", "num_objects_omap")

Figures = Tuple[int, int, int]
Reports = Mapping[str, Mapping[str, Any]]   # get('pg_progress')['pgs']


class _Transfer(NamedTuple):
    """The state of a PG's movement when it was first seen."""

    uncopied_ratio: float   # of the bytes to be copied
    recovered_bytes: int    # the PG's cumulative counter at that time
    last: float             # the ratio when the PG was last active
    #: OSDs that get a shard; where that is not known all of its up set
    targets: FrozenSet[int]


class PgStatistics:
    """The newest known record of every PG, made anew at each reading."""

    def __init__(self) -> None:
        self._full: Dict[str, Figures] = {}       # of the last full reading
        self._had: Dict[int, List[int]] = {}      # pool → sums of these
        self._transfers: Dict[str, _Transfer] = {}
        self._recovered: Mapping[str, int] = {}   # pgid → its counter at the last reading

    def says_enough(self, progress: Reports, pool_stats: Iterable[Mapping[str, Any]]) -> bool:
        """True where the last full reading has figures of every PG that has reported, of none that
        is gone or merged, and of much of what each pool holds now."""
        for pool in pool_stats:
            had, now = self._had.get(pool["poolid"], (0, 0, 0)), pool.get("stat_sum", {})
            if any(now.get(name, 0) > _MOST_GROWTH * before for name, before in zip(
                    _FIGURES[:2], had)):
                return False
        known = 0
        for pgid, pg in piecewise(progress.items(), _PGS_A_PIECE):
            if pgid in self._full:
                known += 1
            elif not _is_silent(pg):
                return False
        return known == len(self._full)

    def read_full(self, pg_stats: Iterable[Mapping[str, Any]],
                  pool_stats: Iterable[Mapping[str, Any]]) -> None:
        """Reads `get('pg_stats')['pg_stats']` and the pool statistics of the same moment.

        PGs that no OSD has reported yet get no figures.
        """
        self._full, self._had = {}, {}   # PGs that are filled by their log look as if at rest
        holding = {pool["poolid"] for pool in pool_stats
                   if pool.get("stat_sum", {}).get("num_objects", 0) > 0}
        for pg in piecewise(pg_stats, _PGS_A_PIECE):
            pool, stat = pool_of(pg["pgid"]), pg.get("stat_sum", {})
            if _is_unreported(pg) or (not stat and pool in holding):
                continue
            objects = max(0, stat.get("num_objects", 0))
            figures = self._full[pg["pgid"]] = (
                objects, max(0, stat.get("num_omap_bytes", 0)), stat.get("num_objects_omap", -1))
            self._had[pool] = [sum_ + max(0, one) for sum_, one in zip(
                self._had.get(pool, (0, 0, 0)), figures)]
            up, acting = pg.get("up", ()), pg.get("acting", ())
            moving = sum([osd not in acting for osd in up])
            if moving and objects:
                # copies that no OSD has any more, counted as degraded only, have to be copied too
                missing = (max(0, stat.get("num_objects_misplaced", 0))
                           + max(0, stat.get("num_objects_degraded", 0)))
                self._transfers[pg["pgid"]] = _Transfer(
                    min(1.0, missing / (objects * moving)), stat.get("num_bytes_recovered", 0),
                    1.0, _targets(up, acting) or frozenset(up))

    def records(self, progress: Reports, pool_stats: Iterable[Mapping[str, Any]],
                moving: Mapping[str, Sequence[int]],
                up_sets: Mapping[str, Sequence[int]]) -> Mapping[str, PgRecord]:
        """pgid → record, from `get('pg_progress')['pgs']`.

        `moving`: pgid → acting set, of PGs with a pg_temp. `up_sets` (pgid → up set) distinguish a
        movement from the next one of the same PG.
        """
        totals = {pool["poolid"]: pool.get("stat_sum", {}) for pool in pool_stats}
        transfers: Dict[str, _Transfer] = {}
        records: Dict[str, PgRecord] = {}
        recovered: Dict[str, int] = {}
        for pgid, pg in piecewise(progress.items(), _PGS_A_PIECE):
            state, num_bytes = pg.get("state", ""), max(0, pg.get("num_bytes", 0))
            count = pg.get("num_bytes_recovered", 0)
            before = self._recovered.get(pgid, count)
            recovered[pgid] = count or before   # it reads 0 while nobody reports the PG
            uncopied_ratio, is_silent = 1.0, _is_silent(pg)
            figures = _NOTHING if is_silent else self._figures(
                pgid, num_bytes, totals.get(pool_of(pgid)))
            if pgid in moving or "clean" not in state and (
                    pgid in self._transfers or not is_silent):
                transfers[pgid] = self._transfer(pgid, pg, up_sets.get(pgid, ()),
                                                 moving.get(pgid, ()), before)
                uncopied_ratio = transfers[pgid].last
            objects, omap_bytes, omap_objects = figures
            records[pgid] = PgRecord(num_bytes, objects, omap_bytes, state, uncopied_ratio,
                                     pg.get("reported_epoch", 0), omap_objects)
        self._transfers, self._recovered = transfers, recovered
        return records

    def _figures(self, pgid: str, num_bytes: int, totals: Optional[Mapping[str, Any]]) -> Figures:
        """Present figures of a PG that has reported; 0 objects only where it is certainly empty.
        `totals`: the pool's `stat_sum` now, if it has any."""
        had, sums = self._full.get(pgid, _NOTHING), self._had.get(pool_of(pgid), (0, 0, 0))
        objects, omap, omap_objects = had if totals is None else [
            round(one * max(0, totals.get(name, 0)) / sum_) if one > 0 else one
            for name, one, sum_ in zip(_FIGURES, had, sums)]
        if not objects and (num_bytes or (
                totals is not None and not had[0] and totals.get(_FIGURES[0], 0) > sums[0])):
            objects = 1
        return objects, omap, omap_objects if totals is None or _FIGURES[2] in totals else -1

    def _transfer(self, pgid: str, pg: Mapping[str, Any], up: Sequence[int],
                  acting: Sequence[int], before: int) -> _Transfer:
        """The state of a PG that moves; `last` is what is still to be copied. `before`: the PG's
        counter of recovered bytes at the last reading.

        An object counts as recovered once, when all its moving shards have arrived
        (PrimaryLogPG::on_global_recover). An OSD that has its shard may go down and come back: the
        target keeps what it has got, and its backfill goes on from there
        (pg_info_t::last_backfill).
        """
        recovered, targets = pg.get("num_bytes_recovered", 0), _targets(up, acting)
        seen = self._transfers.get(pgid)
        if seen is None:
            seen = _Transfer(1.0, before, 1.0, targets or frozenset(up))
        elif not targets <= seen.targets <= frozenset(up):   # earlier copies went to other OSDs
            seen = _Transfer(1.0, max(recovered, before), 1.0, targets or frozenset(up))
        whole = pg.get("num_bytes", 0)
        if "active" not in pg.get("state", ""):
            return seen   # it peers, or its new primary has not reported (seen on 20.2.4)
        done = (recovered - seen.recovered_bytes) / whole if whole > 0 else 0.0
        return seen._replace(last=min(1.0, max(0.0, seen.uncopied_ratio - done)))


_NOTHING: Figures = (0, 0, -1)


def _targets(up: Sequence[int], acting: Sequence[int]) -> FrozenSet[int]:
    """OSDs that get a shard; none where the acting set is not known."""
    return frozenset([osd for osd in up if osd not in acting and osd != NO_OSD] if acting else ())


def _is_unreported(pg: Mapping[str, Any]) -> bool:
    """True while the mgr knows the PG from the osdmap only."""
    return "unknown" in pg.get("state", "") or int(pg.get("reported_epoch", 1)) <= 0


def _is_silent(pg: Mapping[str, Any]) -> bool:
    """True where nothing is known of a PG but that it exists."""
    return "clean" not in pg.get("state", "") and _is_unreported(pg)

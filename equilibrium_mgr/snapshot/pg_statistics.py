"""Apportions a pool's present totals of objects and omap to its PGs.

The totals are present figures. Those of single PGs are from the last full reading, up to an hour
old; for PGs whose OSDs had not reported then, or that were split or merged since, there are none.
The figures of all PGs add up to the totals.

Statistics of every PG, kept up to date between the rare full readings.

`pg_stats` holds the mgr's global lock for a second and more on big clusters, so it is read about
hourly. In between `pg_progress` has each PG's bytes, state and recovered bytes, and `pool_stats`
the present objects and omap of each pool.
"""
from __future__ import annotations

from collections import Counter
from typing import Any, Dict, FrozenSet, Iterable, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..crush.placement import NO_OSD
from ..runtime.time_slice import piecewise
from .model import PgRecord, pool_of


#: A pool that has grown by more than this factor is apportioned by bytes alone: the few objects
#: that its PGs had say little about the many that have come since.
_MOST_GROWTH = 4.0


class PgFigures(NamedTuple):
    """Figures of one PG that only a full reading has."""

    num_objects: int
    omap_bytes: int
    omap_objects: int   # objects that have omap; -1 where not known


NOTHING = PgFigures(0, 0, -1)


class _Apportionment(NamedTuple):
    """The rule by which one of the totals is apportioned."""

    factor: Optional[float]   # by which a PG's last figure is multiplied; None: not by that
    rest: int                 # for the PGs without a figure, or for all where there is no factor
    rest_bytes: int           # bytes of these PGs
    rest_pgs: int

    def part(self, had: Optional[int], num_bytes: int) -> int:
        """The part of one PG. `had`: its last figure."""
        if had is not None and self.factor is not None:
            return int(had * self.factor)
        # by bytes, which are always known: where pg_num is no power of 2, PGs differ by half
        return (self.rest * num_bytes // self.rest_bytes if self.rest_bytes
                else self.rest // self.rest_pgs)


class PoolRule(NamedTuple):
    """The rules by which the present totals of one pool are apportioned to its PGs."""

    objects: _Apportionment
    omap: _Apportionment
    omap_objects: _Apportionment
    has_grown: bool
    tells_omap_objects: bool
    is_unchanged: bool   # the last full reading is still right

    def figures(self, full: Optional[PgFigures], num_bytes: int) -> PgFigures:
        """Present figures of a PG that has reported; 0 objects only where it is certainly empty."""
        if full is not None and self.is_unchanged and full.num_objects:
            return full
        found = self.objects.part(full.num_objects if full else None, num_bytes)
        was_empty = full is None or not full.num_objects
        if not found and (num_bytes or (self.has_grown and was_empty)):
            found = 1
        is_known = self.tells_omap_objects and (full is None or full.omap_objects >= 0)
        return PgFigures(
            found, self.omap.part(full.omap_bytes if full else None, num_bytes),
            self.omap_objects.part(full.omap_objects if full else None, num_bytes)
            if is_known else -1)


_AS_IT_WAS = _Apportionment(1.0, 0, 0, 1)
#: For a pool that has no statistics of its own.
NO_TOTALS = PoolRule(_AS_IT_WAS, _AS_IT_WAS, _AS_IT_WAS, False, False, True)


class PoolFigures:
    """Sums over the PGs of one pool that have reported: `add` them, then `rule`."""

    def __init__(self) -> None:
        self.pgs = 0   # of all, reported or not
        self._pgs = self._known = 0
        self._bytes = self._known_bytes = 0
        self._objects = self._omap_bytes = self._omap_objects = 0   # of the known PGs, as they were

    def add(self, full: Optional[PgFigures], num_bytes: int) -> None:
        """Adds one PG: its figures at the full reading, if there are any, and its bytes now."""
        self._pgs += 1
        self._bytes += num_bytes
        if full is not None:
            self._known += 1
            self._known_bytes += num_bytes
            self._objects += full.num_objects
            self._omap_bytes += full.omap_bytes
            self._omap_objects += max(0, full.omap_objects)

    def rule(self, totals: Optional[Mapping[str, Any]], resized: bool) -> PoolRule:
        """`totals`: the pool's `stat_sum` now; `resized`: its pg_num has changed since."""
        if totals is None:
            return NO_TOTALS
        objects = max(0, totals.get("num_objects", 0))
        tells = "num_objects_omap" in totals
        rules = (
            self._share(objects, self._objects, resized),
            self._share(max(0, totals.get("num_omap_bytes", 0)), self._omap_bytes, resized),
            self._share(max(0, totals.get("num_objects_omap", 0)), self._omap_objects, resized))
        return PoolRule(*rules, objects > self._objects, tells, all(
            rule.factor == 1.0 for rule in rules) and (tells or not self._omap_objects))

    def _share(self, total: int, had: int, resized: bool) -> _Apportionment:
        everyone = _Apportionment(None, total, self._bytes, max(1, self._pgs))
        if resized or not self._known:
            return everyone
        if total * self._known > _MOST_GROWTH * had * self._pgs:
            return everyone
        others = self._bytes - self._known_bytes, max(1, self._pgs - self._known)
        if self._known == self._pgs or had > total:
            return _Apportionment(total / had if had else 1.0, 0, *others)
        return _Apportionment(1.0, total - had, *others)


Reports = Mapping[str, Mapping[str, Any]]   # get('pg_progress')['pgs']

_PGS_A_PIECE = 200   # before it gives way again: well below a millisecond


class _Transfer(NamedTuple):
    """The state of a PG's movement when it was first seen."""

    uncopied_ratio: float        # ratio
    recovered_bytes: int  # the PG's cumulative counter at that time
    last: float = 1.0     # the ratio when the PG was last active
    up: Tuple[int, ...] = ()   # its present up set; empty where not known
    targets: FrozenSet[int] = frozenset()   # OSDs that get a shard; empty where not known
    members: FrozenSet[int] = frozenset()   # OSDs of its up sets since then

    def goes_on(self, up: Tuple[int, ...], targets: FrozenSet[int]) -> bool:
        """True where the same shards are still to be copied.

        An OSD that has its shard may go down and come back: the target keeps what it has got, and
        its backfill goes on from there (pg_info_t::last_backfill).
        """
        if not up or not self.up:
            return True
        if self.targets and not targets <= self.targets:
            return False
        return up == self.up or (
            bool(self.targets) and self.targets <= set(up) <= self.members | {NO_OSD})

    def now(self, up: Tuple[int, ...], targets: FrozenSet[int], last: float) -> _Transfer:
        """The same movement with the present up set, and with the targets once they are known."""
        return self._replace(last=last, up=up or self.up, targets=self.targets or targets,
                             members=self.members.union(up))


class PgStatistics:
    """The newest known record of every PG, made anew at each reading."""

    def __init__(self) -> None:
        self._full: Dict[str, PgFigures] = {}     # of the last full reading
        self._counts: Mapping[int, int] = {}      # pool → PGs of the last full reading
        self._transfers: Dict[str, _Transfer] = {}
        self._recovered: Mapping[str, int] = {}        # pgid → its counter, as of then
        self._rules: Mapping[int, PoolRule] = {}       # pool → how its totals are apportioned

    def read_full(self, pg_stats: Iterable[Mapping[str, Any]],
                  pool_stats: Iterable[Mapping[str, Any]]) -> None:
        """Reads `get('pg_stats')['pg_stats']` and the pool statistics of the same moment.

        PGs that no OSD has reported yet get no figures.
        """
        self._full, self._transfers, self._rules = {}, {}, {}
        counts: Counter[int] = Counter()
        holding = {pool["poolid"] for pool in pool_stats
                   if pool.get("stat_sum", {}).get("num_objects", 0) > 0}
        for pg in piecewise(pg_stats, _PGS_A_PIECE):
            pool = pool_of(pg["pgid"])
            counts[pool] += 1
            stat = pg.get("stat_sum", {})
            if _is_unreported(pg) or (not stat and pool in holding):
                continue
            objects = max(0, stat.get("num_objects", 0))
            self._full[pg["pgid"]] = PgFigures(objects, max(0, stat.get("num_omap_bytes", 0)),
                                               stat.get("num_objects_omap", -1))
            up, acting = tuple(pg.get("up", ())), pg.get("acting", ())
            moving = _moving(up, acting)
            if moving and objects:
                # copies that no OSD has any more, counted as degraded only, have to be copied too
                missing = (max(0, stat.get("num_objects_misplaced", 0))
                           + max(0, stat.get("num_objects_degraded", 0)))
                self._transfers[pg["pgid"]] = _Transfer(
                    min(1.0, missing / (objects * moving)), stat.get("num_bytes_recovered", 0),
                    1.0, up, _targets(up, acting), frozenset(up))
        self._counts = counts

    @property
    def is_complete(self) -> bool:
        """True where the last full reading had the statistics of every PG."""
        return len(self._full) == sum(self._counts.values())

    def records(self, progress: Reports, pool_stats: Iterable[Mapping[str, Any]],
                moving: Mapping[str, Sequence[int]],
                up_sets: Mapping[str, Sequence[int]] = {}) -> Mapping[str, PgRecord]:
        """pgid → record, from `get('pg_progress')['pgs']`.

        `moving`: pgid → acting set, of PGs with a pg_temp. `up_sets` (pgid → up set) distinguish a
        movement from the next one of the same PG.
        """
        self._rules = self._new_rules(progress, pool_stats)
        transfers: Dict[str, _Transfer] = {}
        records: Dict[str, PgRecord] = {}
        recovered: Dict[str, int] = {}
        for pgid, pg in piecewise(progress.items(), _PGS_A_PIECE):
            count = pg.get("num_bytes_recovered", 0)
            before = self._recovered.get(pgid, count)
            records[pgid] = self._record(pgid, pg, moving, up_sets, before, transfers)
            recovered[pgid] = count or before   # it reads 0 while nobody reports the PG
        self._transfers, self._recovered = transfers, recovered
        return records

    def _record(self, pgid: str, pg: Mapping[str, Any], moving: Mapping[str, Sequence[int]],
                up_sets: Mapping[str, Sequence[int]], recovered: int,
                transfers: Dict[str, _Transfer]) -> PgRecord:
        """The record of one PG. `recovered`: its counter at the last reading."""
        state, num_bytes = pg.get("state", ""), max(0, pg.get("num_bytes", 0))
        uncopied_ratio, full = 1.0, NOTHING
        if not _is_silent(pg):
            full = self._rules[pool_of(pgid)].figures(self._full.get(pgid), num_bytes)
        if pgid in moving or "clean" not in state and (
                pgid in self._transfers or full is not NOTHING):
            up = tuple(up_sets.get(pgid, ()))
            uncopied_ratio = self._to_come(pgid, pg, up, _targets(up, moving.get(pgid, ())),
                                           recovered, transfers)
        return PgRecord(num_bytes, full.num_objects, full.omap_bytes, state, uncopied_ratio,
                        pg.get("reported_epoch", 0), full.omap_objects)

    def _new_rules(self, progress: Reports,
                   pool_stats: Iterable[Mapping[str, Any]]) -> Dict[int, PoolRule]:
        """Pool id → how its present totals are apportioned to its PGs."""
        figures: Dict[int, PoolFigures] = {}
        for pgid, pg in piecewise(progress.items(), _PGS_A_PIECE):
            pool = pool_of(pgid)
            if pool not in figures:
                figures[pool] = PoolFigures()
            figures[pool].pgs += 1
            if not _is_silent(pg):
                figures[pool].add(self._full.get(pgid), max(0, pg.get("num_bytes", 0)))
        totals = {pool["poolid"]: pool.get("stat_sum", {}) for pool in pool_stats}
        found: Dict[int, PoolRule] = {}
        for pool, sums in figures.items():
            # the last full reading says nothing about PGs that were split or merged since
            found[pool] = sums.rule(totals.get(pool), sums.pgs != self._counts.get(pool))
        return found

    def _to_come(self, pgid: str, pg: Mapping[str, Any], up: Tuple[int, ...],
                 targets: FrozenSet[int], before: int, transfers: Dict[str, _Transfer]) -> float:
        """Ratio of the moving bytes that are still to be copied. `before`: the PG's counter of
        recovered bytes at the last reading.

        An object counts as recovered once, when all its moving shards have arrived
        (PrimaryLogPG::on_global_recover).
        """
        recovered = pg.get("num_bytes_recovered", 0)
        seen = self._transfers.get(pgid)
        if seen is None:
            seen = _Transfer(1.0, before)
        elif not seen.goes_on(up, targets):  # earlier copies went to other OSDs
            seen = _Transfer(1.0, max(recovered, before))
        whole, uncopied_ratio = pg.get("num_bytes", 0), seen.uncopied_ratio
        if "active" not in pg.get("state", ""):
            # it peers, or its new primary has not reported (seen on 20.2.4)
            uncopied_ratio = seen.last
        elif whole > 0:
            done = (recovered - seen.recovered_bytes) / whole
            uncopied_ratio = min(1.0, max(0.0, seen.uncopied_ratio - done))
        transfers[pgid] = seen.now(up, targets, uncopied_ratio)
        return uncopied_ratio


def _moving(up: Sequence[int], acting: Sequence[int]) -> int:
    return sum(1 for osd in up if osd not in acting)


def _targets(up: Sequence[int], acting: Sequence[int]) -> FrozenSet[int]:
    """OSDs that get a shard; none where the acting set is not known."""
    return frozenset([osd for osd in up if osd not in acting and osd != NO_OSD] if acting else ())


def _is_unreported(pg: Mapping[str, Any]) -> bool:
    """True while the mgr knows the PG from the osdmap only."""
    return "unknown" in pg.get("state", "") or int(pg.get("reported_epoch", 1)) <= 0


def _is_silent(pg: Mapping[str, Any]) -> bool:
    """True where nothing is known of a PG but that it exists."""
    return "clean" not in pg.get("state", "") and _is_unreported(pg)

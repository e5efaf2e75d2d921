"""Statistics of every PG, kept up to date between the rare full readings.

`pg_stats` holds the mgr's global lock for a second and more on big clusters, so the gateway reads
it once an hour at most. In between `pg_progress` has the bytes, state and recovered bytes of each
PG. `pool_stats` has the present objects and omap of each pool, and the copies that it lacks.

Objects and omap of a pool are apportioned to its PGs. A PG without figures gets them by its bytes:
its OSDs had not reported at the last full reading, or the pool was split or merged since. Other PGs
keep their figures, and the difference is apportioned by the bytes that each PG has received. If the
new objects have another size than the old ones, one factor applies to all PGs instead.
"""
from __future__ import annotations

import math
from collections import Counter, defaultdict
from typing import (
    Any, Collection, Dict, FrozenSet, Iterable, List, Mapping, NamedTuple, Optional, Sequence,
    Tuple)

from ..crush.placement import NO_OSD
from ..runtime.time_slice import piecewise
from .model import PgRecord, pool_of
from .pg_states import (
    ACTIVE, BACKFILL, BACKFILLING, CLEAN, PEERED, RECOVERING, RECOVERY, UNKNOWN)


#: A pool that has grown by more than this factor is apportioned by bytes alone: the few objects
#: that its PGs had say little about the many new ones.
_MOST_GROWTH = 4.0
#: If the size of new objects is between this ratio of the old ones and the inverse, bytes show
#: which PGs got them. Small objects beside large ones do not show in bytes.
_AS_LARGE = 0.8
_PGS_A_PIECE = 200   # between two calls of `give_way`: well below a millisecond
#: Figures of a PG that only a full reading has, and a pool's `stat_sum` always: objects, bytes of
#: omap, objects that have omap (-1 if not known).
_FIGURES = _OBJECTS, _OMAP, _OMAP_OBJECTS = ("num_objects", "num_omap_bytes", "num_objects_omap")

Figures = Tuple[int, int, int]
Full = Tuple[int, int, int, int]   # figures, and the PG's bytes with them
Reports = Mapping[str, Mapping[str, Any]]   # get('pg_progress')['pgs']
PoolStats = Iterable[Mapping[str, Any]]   # get('pool_stats')['pool_stats']
Totals = Mapping[int, Mapping[str, Any]]   # pool id → its `stat_sum`
OsdSets = Mapping[str, Sequence[int]]   # pgid → up set or acting set


class _PoolSums:
    """Adds up the PGs of one pool that have reported, and apportions the pool's totals to them."""

    pgs = 0   # all PGs, reported or not
    #: sums of weights (_weight): of all PGs, of PGs with figures, of the new bytes of these
    weight = known_weight = came_weight = 0
    lacks_omap = False   # a PG with objects shows no omap, as until its deep scrub
    is_resized = has_grown = tells_omap_objects = False

    def __init__(self) -> None:
        self.had = [0, 0, 0, 0]      # sums of the figures that PGs had, and of their bytes then
        #: for each figure: factor of the old figure; part of a weight, for new bytes, and for a PG
        #: without figures
        self.rules: List[Tuple[float, float, float]] = []

    def add(self, num_bytes: int, had: Optional[Full]) -> None:
        """Adds a PG that has reported. `had`: its last full figures."""
        weight = _weight(num_bytes)
        self.weight += weight
        if had is not None:
            self.known_weight += weight
            self.came_weight += _weight(num_bytes - had[3])
            self.lacks_omap |= had[0] > 0 >= had[1]
            self.had = [before + max(0, one) for before, one in zip(self.had, had)]

    def set_rules(self, totals: Optional[Mapping[str, Any]], resized: bool) -> None:
        """Sets the rules. `totals`: the pool's present `stat_sum`, if it has any; `resized`: its
        pg_num has changed since the last full reading."""
        if totals is None:
            self.rules = [(1.0, 0.0, 0.0)] * 3
            return
        self.is_resized, self.tells_omap_objects = resized, _OMAP_OBJECTS in totals
        objects, _, _, num_bytes = self.had
        counts = [_count(totals, name) for name in _FIGURES]
        self.has_grown = counts[0] > objects
        shares = [count / max(1, self.weight) for count in counts]
        # new objects × old bytes
        came = max(0.0, shares[0] * self.known_weight - objects) * num_bytes
        # the same as `came` if the new objects are as large as the old ones
        as_large = self.came_weight * objects
        bytes_tell = came > 0.0 and _AS_LARGE * as_large <= came <= as_large / _AS_LARGE
        for name, share, had in zip(_FIGURES, shares, self.had):
            known = share * self.known_weight
            more = max(0.0, known - had)
            if name == _OMAP and self.lacks_omap:
                # a deep scrub has shown it; the next full reading shows whose omap it is
                more = 0.0
            elif not bytes_tell and 0 < had <= known <= _MOST_GROWTH * had:
                self.rules.append((known / had, 0.0, share))
                continue
            self.rules.append((min(1.0, known / max(1, had)), more / max(1, self.came_weight),
                               share))

    def figures(self, had: Optional[Full], num_bytes: int) -> Figures:
        """Returns the present figures of a PG that has reported. Only a PG that is certainly empty
        has 0 objects."""
        if had is None or self.is_resized:
            weight = _weight(num_bytes)
            found = [round(share * weight) for _, _, share in self.rules]
        else:
            came = _weight(num_bytes - had[3])
            found = [round(one * factor + part * came)
                     for one, (factor, part, _) in zip(had, self.rules)]
        objects, omap, omap_objects = found
        if not objects:
            was_empty = had is None or not had[0]
            if num_bytes or (self.has_grown and was_empty):
                objects = 1
        is_known = self.tells_omap_objects and (had is None or had[2] >= 0)
        return objects, omap, omap_objects if is_known else -1


def _weight(num_bytes: int) -> int:
    """Returns the weight of a PG by its bytes; PGs without any have the same."""
    return max(0, num_bytes) + 1


class _Transfer(NamedTuple):
    """The state of a PG's movement when the PG was last active."""

    recovered_bytes: int   # the PG's cumulative counter then
    #: OSD that gets a shard (any of the up set if it is not known which do) → ratio of the shard's
    #: bytes still to be copied
    uncopied: Mapping[int, float]


class PgStatistics:
    """Keeps the last full figures of every PG, and makes its record at each reading."""

    def __init__(self) -> None:
        self._full: Dict[str, Full] = {}       # of the last full reading
        self._counts: Mapping[int, int] = {}      # pool → PGs of the last full reading
        self._transfers: Dict[str, _Transfer] = {}
        self._recovered: Mapping[str, int] = {}   # pgid → its counter at the last reading

    def read_full(self, pg_stats: Iterable[Mapping[str, Any]], pool_stats: PoolStats) -> None:
        """Reads `get('pg_stats')['pg_stats']` and the pool statistics of the same moment.

        PGs that no OSD has reported yet get no figures.
        """
        self._full = {}
        counts: Counter[int] = Counter()
        holding = [pool for pool, totals in _totals(pool_stats).items()
                   if _count(totals, _OBJECTS)]
        for pg in piecewise(pg_stats, _PGS_A_PIECE):
            pgid = pg["pgid"]
            stat = pg.get("stat_sum", {})
            pool = pool_of(pgid)
            counts[pool] += 1
            if is_unreported(pg) or (not stat and pool in holding):
                continue
            self._full[pgid] = (
                _count(stat, _OBJECTS), _count(stat, _OMAP), stat.get(_OMAP_OBJECTS, -1),
                _count(stat, "num_bytes"))
            if _is_counted(pg.get("state", "")):
                self._read_transfer(pgid, stat, pg.get("up", ()), pg.get("acting", ()))
        self._counts = counts

    def _read_transfer(self, pgid: str, stat: Mapping[str, Any], up: Sequence[int],
                       acting: Sequence[int]) -> None:
        """Measures how much of a PG that moves has arrived, by a full reading."""
        moving = sum([osd not in acting for osd in up])
        objects = self._full[pgid][0]
        if not moving or not objects:
            return
        # copies that no OSD has any more count as degraded only, and have to be copied too
        missing = _count(stat, "num_objects_misplaced") + _count(stat, "num_objects_degraded")
        known = self._transfers.get(pgid, _NO_TRANSFER).uncopied
        uncopied = {osd: known.get(osd, 1.0) for osd in _targets(up, acting) or up}
        more = min(1.0, missing / (objects * moving)) - _mean(uncopied.values())
        self._transfers[pgid] = _Transfer(
            stat.get("num_bytes_recovered", 0),
            {osd: min(1.0, max(0.0, one + more)) for osd, one in uncopied.items()})

    @property
    def is_complete(self) -> bool:
        """Returns True if the last full reading had the statistics of every PG."""
        return len(self._full) == sum(self._counts.values())

    def records(self, progress: Reports, pool_stats: PoolStats, moving: OsdSets,
                up_sets: OsdSets) -> Mapping[str, PgRecord]:
        """Returns pgid → record, from `get('pg_progress')['pgs']`.

        `moving`: pgid → acting set, of PGs with a pg_temp. `up_sets` distinguish a movement from
        the next one of the same PG.
        """
        totals = _totals(pool_stats)
        pools = self._pool_sums(progress, totals)
        arrived = self._arrived(progress, totals, moving, up_sets)
        transfers: Dict[str, _Transfer] = {}
        records: Dict[str, PgRecord] = {}
        recovered: Dict[str, int] = {}
        for pgid, pg in piecewise(progress.items(), _PGS_A_PIECE):
            state = pg.get("state", "")
            num_bytes = max(0, pg.get("num_bytes", 0))
            count = pg.get("num_bytes_recovered", 0)
            pool = pool_of(pgid)
            before = self._recovered.get(pgid, count)
            if count - before >= num_bytes > 0:
                before = count   # an earlier movement, begun and ended since the last reading
            recovered[pgid] = count or before   # it reads 0 while nobody reports the PG
            moves = pgid in moving
            if not moves and CLEAN not in state:
                moves = pgid in self._transfers or BACKFILL in state or RECOVERY in state
            uncopied = _NO_TRANSFER.uncopied
            if moves:
                transfers[pgid] = self._transfer(
                    pgid, pg, up_sets.get(pgid, ()), moving.get(pgid, ()), before,
                    arrived.get(pool, 0.0))
                uncopied = transfers[pgid].uncopied
            objects, omap_bytes, omap_objects = _NOTHING
            if not _is_silent(pg):
                objects, omap_bytes, omap_objects = pools[pool].figures(
                    self._full.get(pgid), num_bytes)
            records[pgid] = PgRecord(
                num_bytes, objects, omap_bytes, state, _mean(uncopied.values()),
                pg.get("reported_epoch", 0), omap_objects, uncopied)
        self._transfers = transfers
        self._recovered = recovered
        return records

    def _pool_sums(self, progress: Reports, totals: Totals) -> Dict[int, _PoolSums]:
        """Returns pool id → how its present totals are apportioned to its PGs."""
        pools: Dict[int, _PoolSums] = defaultdict(_PoolSums)
        for pgid, pg in piecewise(progress.items(), _PGS_A_PIECE):
            sums = pools[pool_of(pgid)]
            sums.pgs += 1
            if not _is_silent(pg):
                sums.add(max(0, pg.get("num_bytes", 0)), self._full.get(pgid))
        for pool, sums in pools.items():
            # the last full reading has no figures of PGs that were split or merged since
            sums.set_rules(totals.get(pool), sums.pgs != self._counts.get(pool))
        return pools

    def _arrived(self, progress: Reports, totals: Totals, moving: OsdSets,
                 up_sets: OsdSets) -> Mapping[int, float]:
        """Returns pool id → the ratio of its copies that has arrived, for pools without bytes.

        PGs with omap alone do not count recovered bytes, but the copies that the pool lacks become
        fewer. If it lacks copies that nobody recovers, less seems to have arrived.
        """
        lacked: Dict[int, float] = defaultdict(float)   # copies, at the last reading
        running: Counter[int] = Counter()   # copies, arrived or not, of PGs that are being copied
        for pgid, transfer in self._transfers.items():
            state = progress.get(pgid, {}).get("state", "")
            pool = pool_of(pgid)
            if _is_counted(state) and CLEAN not in state:   # else it has not reported yet
                objects, _, _, _ = self._full.get(pgid, _NO_FIGURES)
                is_running = _is_running(state)
                for osd in _targets(up_sets.get(pgid, ()), moving.get(pgid, ())):
                    lacked[pool] += objects * transfer.uncopied.get(osd, 1.0)
                    running[pool] += objects * is_running
        found: Dict[int, float] = {}
        for pool, stat in totals.items():
            if running[pool] and not stat.get("num_bytes", 1):
                misplaced = stat.get("num_objects_misplaced", math.inf)
                degraded = stat.get("num_objects_degraded", 0)
                found[pool] = (lacked[pool] - misplaced - degraded) / running[pool]
        return found

    def _transfer(self, pgid: str, pg: Mapping[str, Any], up: Sequence[int],
                  acting: Sequence[int], before: int, arrived: float) -> _Transfer:
        """Returns the state of a PG that moves.

        `before`: the PG's counter of recovered bytes at the last reading; `arrived`: the ratio that
        replaces it if the PG has no bytes.

        An object counts as recovered once, when all its moving shards have arrived
        (PrimaryLogPG::on_global_recover). Backfill goes through the objects once and sends each to
        all targets that lack it, so the targets that are behind get theirs first
        (recover_backfill). Recovery by log sends each to all (recover_replicas). If an OSD with its
        shard goes down and comes back, the target keeps its objects. Its backfill goes on from
        there (pg_info_t::last_backfill), whichever other targets the PG has.
        """
        targets = _targets(up, acting)
        state = pg.get("state", "")
        whole = pg.get("num_bytes", 0)
        seen = self._transfers.get(pgid) or _Transfer(before, dict.fromkeys(targets or up, 1.0))
        recovered, uncopied = seen
        if _is_counted(state):   # else a new primary has not reported (seen on 20.2.4)
            recovered = max(recovered, pg.get("num_bytes_recovered", 0))
            if whole > 0:
                done = (recovered - seen.recovered_bytes) / whole
            else:
                done = max(0.0, arrived) * _is_running(state)
            most = math.inf
            if BACKFILL in state:
                most = max([one for osd, one in uncopied.items() if osd in up], default=0.0) - done
                done = 0.0
            uncopied = {osd: max(0.0, min(one - done, most)) for osd, one in uncopied.items()}
        targets = targets or frozenset(up).intersection(uncopied) or frozenset(up)
        return _Transfer(recovered, {osd: uncopied.get(osd, 1.0) for osd in targets})


_NOTHING: Figures = (0, 0, -1)
_NO_FIGURES: Full = (0, 0, -1, 0)
_NO_TRANSFER = _Transfer(0, {})


def _count(stat: Mapping[str, Any], name: str) -> int:
    """Returns a figure that Ceph counts; 0 if it is missing or negative."""
    count: int = stat.get(name, 0)
    return max(0, count)


def _totals(pool_stats: PoolStats) -> Totals:
    """Returns pool id → its `stat_sum`."""
    return {pool["poolid"]: pool.get("stat_sum", {}) for pool in pool_stats}


def _mean(ratios: Collection[float]) -> float:
    """Returns the mean, 1.0 without ratios."""
    if not ratios:
        return 1.0
    return sum(ratios) / len(ratios)


def _targets(up: Sequence[int], acting: Sequence[int]) -> FrozenSet[int]:
    """Returns the OSDs that get a shard; none if the acting set is not known."""
    if not acting:
        return frozenset()
    return frozenset(up).difference(acting, (NO_OSD,))


def _is_running(state: str) -> bool:
    """Returns True if data of a PG with this state is being copied."""
    return BACKFILLING in state or RECOVERING in state


def _is_counted(state: str) -> bool:
    """Returns True if the primary of a PG counts which copies are missing: not while it peers or is
    down (PeeringState::update_calc_stats)."""
    return ACTIVE in state or PEERED in state


def is_unreported(pg: Mapping[str, Any]) -> bool:
    """Returns True while the mgr knows the PG from the osdmap only."""
    return UNKNOWN in pg.get("state", "") or int(pg.get("reported_epoch", 1)) <= 0


def _is_silent(pg: Mapping[str, Any]) -> bool:
    """Returns True if nobody knows more of a PG than that it exists."""
    return CLEAN not in pg.get("state", "") and is_unreported(pg)

"""Statistics of every PG, kept up to date between the rare full readings.

`pg_stats` holds the mgr's global lock for a second and more on big clusters, so it is read about
hourly. In between `pg_progress` has each PG's bytes, state and recovered bytes, and `pool_stats`
the present objects and omap of each pool, and the copies that it lacks. Objects and omap are
apportioned to the pool's PGs: to one without a figure, as its OSDs had not reported at the last
full reading, or as the pool was split or merged since, by its bytes; to the others by what they had
then, and what has come since by the bytes that have come to them where objects are as large as
before, and else by one factor for all.
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
from .pg_states import ACTIVE, BACKFILL, BACKFILLING, CLEAN, RECOVERING, RECOVERY, UNKNOWN


#: A pool that has grown by more than this factor is apportioned by bytes alone: the few objects
#: that its PGs had say little about the many that have come since.
_MOST_GROWTH = 4.0
#: Where objects that came are so nearly as large as those before (a ratio, and its inverse), bytes
#: tell which PGs got them. Of small objects beside large ones they do not.
_AS_LARGE = 0.8
_PGS_A_PIECE = 200   # before it gives way again: well below a millisecond
#: What only a full reading has of a PG, and `stat_sum` of a pool: objects, bytes of omap, objects
#: that have omap (-1 where not known).
_FIGURES = ("num_objects", "num_omap_bytes", "num_objects_omap")

Figures = Tuple[int, int, int]
Full = Tuple[int, int, int, int]   # figures, and the PG's bytes with them
Reports = Mapping[str, Mapping[str, Any]]   # get('pg_progress')['pgs']


class _PoolSums:
    """Of the PGs of one pool that have reported; then how its totals are apportioned to them."""

    def __init__(self) -> None:
        self.pgs = 0                 # of all, reported or not
        #: sums of weights (_weight): of all, of PGs with figures, of what has come to the latter
        self.weight = self.known_weight = self.came_weight = 0
        self.had = [0, 0, 0, 0]      # sums of the figures that PGs had, and of their bytes then
        #: for each figure: factor of what a PG had; part of a weight, for what has come, and for a
        #: PG without figures
        self.rules: List[Tuple[float, float, float]] = []
        #: a PG with objects shows no omap, as until its deep scrub
        self.lacks_omap = False
        self.is_resized = self.has_grown = self.tells_omap_objects = False

    def set_rules(self, totals: Optional[Mapping[str, Any]], resized: bool) -> None:
        """`totals`: the pool's `stat_sum` now, if it has any; `resized`: its pg_num has changed
        since."""
        if totals is None:
            self.rules = [(1.0, 0.0, 0.0)] * 3
            return
        self.is_resized, self.tells_omap_objects = resized, _FIGURES[2] in totals
        self.has_grown = totals.get(_FIGURES[0], 0) > self.had[0]
        shares = [max(0, totals.get(name, 0)) / max(1, self.weight) for name in _FIGURES]
        objects, _, _, num_bytes = self.had
        came = max(0.0, shares[0] * self.known_weight - objects) * num_bytes
        as_large = self.came_weight * objects   # what came, if its objects are as large as those
        bytes_tell = came and _AS_LARGE * as_large <= came <= as_large / _AS_LARGE
        for name, share, had in zip(_FIGURES, shares, self.had):
            known = share * self.known_weight
            more = max(0.0, known - had)
            if name == _FIGURES[1] and self.lacks_omap:
                more = 0.0   # a deep scrub has shown it; which, the next full reading tells
            elif not bytes_tell and 0 < had <= known <= _MOST_GROWTH * had:
                self.rules.append((known / had, 0.0, share))
                continue
            self.rules.append((min(1.0, known / max(1, had)), more / max(1, self.came_weight),
                               share))

    def figures(self, had: Optional[Full], num_bytes: int) -> Figures:
        """Present figures of a PG that has reported; 0 objects only where it is certainly empty."""
        *figures, had_bytes = had or (0, 0, 0, 0)
        by_bytes, came = had is None or self.is_resized, _weight(num_bytes - had_bytes)
        objects, omap, omap_objects = [
            round(share * _weight(num_bytes) if by_bytes else one * factor + part * came)
            for one, (factor, part, share) in zip(figures, self.rules)]
        if not objects and (num_bytes or (self.has_grown and not (had and had[0]))):
            objects = 1
        is_known = self.tells_omap_objects and (had is None or had[2] >= 0)
        return objects, omap, omap_objects if is_known else -1


def _weight(num_bytes: int) -> int:
    """What a PG counts by, where it goes by bytes; those without any count alike."""
    return max(0, num_bytes) + 1


class _Transfer(NamedTuple):
    """The state of a PG's movement when the PG was last active."""

    recovered_bytes: int   # the PG's cumulative counter then
    #: OSD that gets a shard (any of the up set where it is not known which do) → ratio of the
    #: shard's bytes still to be copied
    uncopied: Mapping[int, float]


class PgStatistics:
    """The newest known record of every PG, made anew at each reading."""

    def __init__(self) -> None:
        self._full: Dict[str, Full] = {}       # of the last full reading
        self._counts: Mapping[int, int] = {}      # pool → PGs of the last full reading
        self._transfers: Dict[str, _Transfer] = {}
        self._recovered: Mapping[str, int] = {}   # pgid → its counter at the last reading

    def read_full(self, pg_stats: Iterable[Mapping[str, Any]],
                  pool_stats: Iterable[Mapping[str, Any]]) -> None:
        """Reads `get('pg_stats')['pg_stats']` and the pool statistics of the same moment.

        PGs that no OSD has reported yet get no figures.
        """
        self._full = {}
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
            self._full[pg["pgid"]] = (objects, max(0, stat.get("num_omap_bytes", 0)),
                                      stat.get("num_objects_omap", -1),
                                      max(0, stat.get("num_bytes", 0)))
            up, acting = pg.get("up", ()), pg.get("acting", ())
            moving = sum([osd not in acting for osd in up])
            # one that is down or peers counts nothing (PeeringState::update_calc_stats)
            if moving and objects and ACTIVE in pg.get("state", ""):
                # copies that no OSD has any more, counted as degraded only, have to be copied too
                missing = (max(0, stat.get("num_objects_misplaced", 0))
                           + max(0, stat.get("num_objects_degraded", 0)))
                known = self._transfers.get(pg["pgid"], _NO_TRANSFER).uncopied
                uncopied = {osd: known.get(osd, 1.0) for osd in _targets(up, acting) or up}
                more = min(1.0, missing / (objects * moving)) - _mean(uncopied.values())
                self._transfers[pg["pgid"]] = _Transfer(
                    stat.get("num_bytes_recovered", 0),
                    {osd: min(1.0, max(0.0, one + more)) for osd, one in uncopied.items()})
        self._counts = counts

    @property
    def is_complete(self) -> bool:
        """True where the last full reading had the statistics of every PG."""
        return len(self._full) == sum(self._counts.values())

    def records(self, progress: Reports, pool_stats: Iterable[Mapping[str, Any]],
                moving: Mapping[str, Sequence[int]],
                up_sets: Mapping[str, Sequence[int]]) -> Mapping[str, PgRecord]:
        """pgid → record, from `get('pg_progress')['pgs']`.

        `moving`: pgid → acting set, of PGs with a pg_temp. `up_sets` (pgid → up set) distinguish a
        movement from the next one of the same PG.
        """
        pools = self._pool_sums(progress, pool_stats)
        arrived = self._arrived(progress, pool_stats, moving, up_sets)
        transfers: Dict[str, _Transfer] = {}
        records: Dict[str, PgRecord] = {}
        recovered: Dict[str, int] = {}
        for pgid, pg in piecewise(progress.items(), _PGS_A_PIECE):
            state, num_bytes = pg.get("state", ""), max(0, pg.get("num_bytes", 0))
            count = pg.get("num_bytes_recovered", 0)
            before = self._recovered.get(pgid, count)
            if count - before >= num_bytes > 0:
                before = count   # an earlier movement, begun and ended since the last reading
            recovered[pgid] = count or before   # it reads 0 while nobody reports the PG
            if pgid in moving or CLEAN not in state and (
                    pgid in self._transfers or BACKFILL in state or RECOVERY in state):
                transfers[pgid] = self._transfer(
                    pgid, pg, up_sets.get(pgid, ()), moving.get(pgid, ()), before,
                    arrived.get(pool_of(pgid), 0.0))
            objects, omap_bytes, omap_objects = _NOTHING if _is_silent(pg) else (
                pools[pool_of(pgid)].figures(self._full.get(pgid), num_bytes))
            uncopied = transfers.get(pgid, _NO_TRANSFER).uncopied
            records[pgid] = PgRecord(
                num_bytes, objects, omap_bytes, state, _mean(uncopied.values()),
                pg.get("reported_epoch", 0), omap_objects, uncopied)
        self._transfers, self._recovered = transfers, recovered
        return records

    def _pool_sums(self, progress: Reports,
                   pool_stats: Iterable[Mapping[str, Any]]) -> Dict[int, _PoolSums]:
        """Pool id → how its present totals are apportioned to its PGs."""
        pools: Dict[int, _PoolSums] = {}
        for pgid, pg in piecewise(progress.items(), _PGS_A_PIECE):
            pool, had = pool_of(pgid), self._full.get(pgid)
            sums = pools.setdefault(pool, _PoolSums())
            sums.pgs += 1
            if not _is_silent(pg):
                num_bytes = max(0, pg.get("num_bytes", 0))
                weight = _weight(num_bytes)
                sums.weight += weight
                if had is not None:
                    sums.known_weight += weight
                    sums.came_weight += _weight(num_bytes - had[3])
                    sums.lacks_omap |= had[0] > 0 >= had[1]
                    sums.had = [sum_ + max(0, one) for sum_, one in zip(sums.had, had)]
        totals = {pool["poolid"]: pool.get("stat_sum", {}) for pool in pool_stats}
        for pool, sums in pools.items():
            # the last full reading says nothing about PGs that were split or merged since
            sums.set_rules(totals.get(pool), sums.pgs != self._counts.get(pool))
        return pools

    def _arrived(self, progress: Reports, pool_stats: Iterable[Mapping[str, Any]],
                 moving: Mapping[str, Sequence[int]],
                 up_sets: Mapping[str, Sequence[int]]) -> Mapping[int, float]:
        """Pool of omap alone → what has arrived of its PGs that are being copied, as a ratio: their
        counters of bytes stand still, and the copies that the pool lacks become fewer. Where it
        lacks copies that nobody brings, less seems to have arrived."""
        lacked: Dict[int, float] = defaultdict(float)   # copies, as of the last reading
        running: Counter[int] = Counter()   # copies, arrived or not, of PGs that are being copied
        for pgid, transfer in self._transfers.items():
            state, pool = progress.get(pgid, {}).get("state", ""), pool_of(pgid)
            if ACTIVE in state and CLEAN not in state:   # else it has not told yet
                objects, targets = self._full.get(pgid, _NOTHING)[0], _targets(
                    up_sets.get(pgid, ()), moving.get(pgid, ()))
                for osd in targets:
                    lacked[pool] += objects * transfer.uncopied.get(osd, 1.0)
                    running[pool] += objects * (BACKFILLING in state or RECOVERING in state)
        return {pool["poolid"]: (
            lacked[pool["poolid"]] - pool["stat_sum"].get("num_objects_misplaced", math.inf)
            - pool["stat_sum"].get("num_objects_degraded", 0)) / running[pool["poolid"]]
            for pool in pool_stats
            if running[pool["poolid"]] and not pool.get("stat_sum", {}).get("num_bytes", 1)}

    def _transfer(self, pgid: str, pg: Mapping[str, Any], up: Sequence[int],
                  acting: Sequence[int], before: int, arrived: float) -> _Transfer:
        """The state of a PG that moves. `before`: the PG's counter of recovered bytes at the last
        reading; `arrived`: what stands for it where the PG has no bytes, as a ratio.

        An object counts as recovered once, when all its moving shards have arrived
        (PrimaryLogPG::on_global_recover). Backfill goes through the objects once and sends each to
        all targets that lack it, so that those that are behind get theirs first (recover_backfill);
        recovery by log sends each to all (recover_replicas). An OSD that has its shard may go down
        and come back: the target keeps what it has got, and its backfill goes on from there
        (pg_info_t::last_backfill), whichever other targets the PG has.
        """
        targets, state, whole = _targets(up, acting), pg.get("state", ""), pg.get("num_bytes", 0)
        recovered, uncopied = seen = self._transfers.get(pgid) or _Transfer(
            before, dict.fromkeys(targets or up, 1.0))
        if ACTIVE in state:   # else it peers, or a new primary has not reported (seen on 20.2.4)
            recovered = max(recovered, pg.get("num_bytes_recovered", 0))
            done = (recovered - seen.recovered_bytes) / whole if whole > 0 else (
                max(0.0, arrived) * (BACKFILLING in state or RECOVERING in state))
            most = max([one for osd, one in uncopied.items() if osd in up], default=0.0) - done
            uncopied = {osd: max(0.0, min(one, most) if BACKFILL in state else one - done)
                        for osd, one in uncopied.items()}
        return _Transfer(recovered, {osd: uncopied.get(osd, 1.0) for osd in (
            targets or frozenset(up).intersection(uncopied) or up)})


_NOTHING: Figures = (0, 0, -1)
_NO_TRANSFER = _Transfer(0, {})


def _mean(ratios: Collection[float]) -> float:
    """1.0 of none."""
    return sum(ratios) / len(ratios) if ratios else 1.0


def _targets(up: Sequence[int], acting: Sequence[int]) -> FrozenSet[int]:
    """OSDs that get a shard; none where the acting set is not known."""
    return frozenset([osd for osd in up if osd not in acting and osd != NO_OSD] if acting else ())


def _is_unreported(pg: Mapping[str, Any]) -> bool:
    """True while the mgr knows the PG from the osdmap only."""
    return UNKNOWN in pg.get("state", "") or int(pg.get("reported_epoch", 1)) <= 0


def _is_silent(pg: Mapping[str, Any]) -> bool:
    """True where nothing is known of a PG but that it exists."""
    return CLEAN not in pg.get("state", "") and _is_unreported(pg)

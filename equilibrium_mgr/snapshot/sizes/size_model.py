"""The size model: an OSD holds its shards, each with what its pool takes there, and a residual.

Shard: data (num_bytes ÷ k, by position in EC-optimized pools) × padding (stored ÷ logical bytes of
the pool) × ratio (allocated ÷ stored), its omap, and metadata by a cost per object of the class.

What is not known at a look lies between two bounds: what is certainly on the OSD (`whole` shards),
and what may be there in part: shards that are copied to it or recovered, that came within a minute,
and that it still deletes. It counts these in `num_pgs` beyond those of the map. What was known
before is kept as far as it lies between the bounds; where nothing moves they coincide, and it is
measured. So there is nothing to wait for, and nothing to store.
"""
from __future__ import annotations

from math import inf, sqrt
from typing import Any, Collection, Dict, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from ...crush.placement import NO_OSD
from ...runtime.time_slice import piecewise
from .. import immovable_reasons as reasons
from ..immovable_reasons import Immovable
from ..model import Look, Osd, Pg, PgRecord, Pool, pool_of, transfers
from ..pg_states import ACTIVATING, CLEAN
from .omap import REPORTED_LATE, OmapEstimate, OmapSums, is_unmeasured
from .osd_factors import (
    Factors, exact_ratio, factor_of, fit_osd_factors, is_same, of_whole, position_ratios)

#: Before it gives way again: about a millisecond.
_PGS_A_PIECE, _OSDS_A_PIECE, _ROWS_A_PIECE = 150, 30, 1000
#: Seconds after which an OSD has reported what has come to it, and the mgr has its figures; and
#: after which a shard is taken for whole although its PG has not reported since.
_REPORTED_SECONDS, _LATEST_SECONDS = 60.0, 43200.0
#: Shards that left an OSD and may still be there: no more than these are remembered.
_MOST_LEFT = 2000
#: The report of an OSD may fall by no more than this ratio of omap that has left it: deletions are
#: written as well, and RocksDB only estimates the sizes of ranges (16.2.15: of 52 MiB 41 showed).
_FREED_RATIO = 0.7
#: RocksDB's files come and go by so many bytes on any OSD. A cost of objects that explains smaller
#: differences only is believed where it is clear: in full from so many times its standard error on,
#: and not at all below half of that. Of 7 OSDs of 20.2.4, with 20 MB beside 4,700 objects and 15
#: beside 3,800, it was 3.6 times, and there were 20 MB still once 3,400 of these had left.
_NOISE_BYTES = 64 << 20
_CLEAR_ERRORS = 8.0
#: Metadata is at most this ratio of a pool's bytes: data is what differs among OSDs.
_MOST_METADATA = 0.99


class ShardInput(NamedTuple):
    """One PG as the size model sees it: figures of its mean shard."""

    pool: int
    acting: Sequence[int]
    data_bytes: int   # num_bytes ÷ k
    omap_bytes: int
    objects: int


class _OsdSums:
    """What is on one OSD. Data is as stored without padding, by pool id."""

    def __init__(self) -> None:
        self.whole: Dict[int, float] = {}     # shards that are certainly there
        self.may: Dict[int, float] = {}       # shards that may be there, in part
        self.change: Dict[int, float] = {}    # shards that are to be there, less the whole ones
        self.undeleted: Dict[int, float] = {}   # what has left it and may be there
        self.largest = (0.0, 0)   # (its largest shard, pool id)
        self.objects = 0                      # of the whole shards
        self.omap = 0                         # of all that it serves, but for what has just come
        self.pgs = 0                          # that the map gives it
        self.spare = 0                        # that it counts beyond those
        self.unseen = 0                       # of these, what nobody saw leave: of any pool

    @property
    def is_at_rest(self) -> bool:
        return not self.may and not any(map(round, self.change.values())) and self.spare <= 0


class SizeModel:
    """For each look: `fit`, then `input_of` and `shard_bytes` of its PGs, then
    `osds_with_traffic`."""

    def __init__(self) -> None:
        self.pools: Mapping[int, Pool] = {}   # of the look, with the ratios of their shards' sizes
        self.size_factors: Mapping[int, float] = {}    # OSD id → its size_factor, of odd ones
        self._factors: Factors = {}
        self._padding: Dict[int, float] = {}           # pool id → stored ÷ logical bytes
        self._allocation: Dict[int, float] = {}        # pool id → allocated ÷ logical bytes
        self._omap: Dict[int, OmapEstimate] = {}       # pool id → where its statistics have omap
        self._omap_is_late = False
        self._means: Dict[int, ShardInput] = {}        # pool id → its mean PG
        #: device class → (bytes of metadata per object, used ÷ believed bytes, at most 1)
        self._classes: Dict[str, Tuple[float, float]] = {}
        self._class_of: Mapping[int, str] = {}         # OSD with statistics → device class
        self._mixed: Dict[Tuple[str, ...], Tuple[float, float]] = {}   # the same of several classes
        self._positions: Dict[int, Tuple[float, ...]] = {}   # pool id → see position_ratios
        self._measured: Mapping[int, float] = {}
        self._osds: Dict[int, _OsdSums] = {}
        self._residual: Dict[int, float] = {}          # OSD id → bytes of data
        self._last: Optional[Look] = None
        #: (pgid, OSD) → seconds since the epoch, and the osdmap that the PG has to know
        self._came: Dict[Tuple[str, int], Tuple[float, int]] = {}
        #: OSD → (when, pool id, bytes of data) of shards that have left it since it last deleted
        #: nothing
        self._left: Dict[int, List[Tuple[float, int, float]]] = {}
        self._renumbered_at = -inf   # when PGs were split, merged, made or deleted
        self._assigned: Dict[int, List[float]] = {}    # OSD → when the map gave it PGs lately
        self._omap_left: Dict[int, List[str]] = {}     # OSD → pgids whose omap it may still have
        self._known: Set[int] = set()   # OSDs that were once seen when they deleted nothing

    def fit(self, look: Look) -> None:
        """Fits all factors to a look."""
        reading = look.reading
        self._measured = reading.measured
        self._omap_is_late = reading.osd_map.get("require_osd_release", "") in REPORTED_LATE
        self._class_of = {osd: look.osds[osd].device_class for osd in look.with_statistics}
        self._factors = fit_osd_factors(reading.pool_statfs, reading.osd_stats, self._factors)
        self._note_changes(look)
        self._fit_omap(look)
        self._positions = {}
        for dump in reading.osd_map["pools"]:
            pool, mean = look.pools[dump["pool"]], self._means.get(dump["pool"])
            ratios = position_ratios(dump, pool.data_shards, mean.data_bytes * pool.data_shards
                                     / mean.objects) if (
                pool.is_optimized and mean is not None and mean.objects) else ()
            if ratios:
                self._positions[pool.id] = ratios
        self._add_shards(look)
        self._fit_allocation(look)
        self._fit_classes(look)
        self._fit_pools(look)

    # -- one PG --------------------------------------------------------------------------------

    def input_of(self, pool: Pool, record: PgRecord,
                 acting: Sequence[int]) -> Tuple[ShardInput, Optional[Immovable]]:
        """(input of a PG, why its size is not known; None where it is). An OSD that has not
        reported makes its PGs unknown, not empty: they count as the mean of their pool."""
        if record.is_unknown:
            mean = self._means.get(pool.id) or ShardInput(pool.id, (), 0, 0, 0)
            return mean._replace(acting=acting), reasons.NO_STATISTICS
        estimate = self._omap.get(pool.id)
        is_untold = not pool.erasure if estimate is None else self._omap_is_late
        return ShardInput(
            pool.id, acting, -(-record.num_bytes // pool.data_shards),
            record.omap_bytes if estimate is None else estimate.bytes_of(record),
            record.num_objects), reasons.OMAP_UNMEASURED if (
                is_untold and is_unmeasured(record, self._omap_is_late)) else None

    def shard_bytes(self, shard: ShardInput) -> int:
        """Bytes that the mean shard of a PG occupies on usual OSDs; never negative. Adds what OSDs
        used beyond all that when shards arrived (execution/size_check)."""
        cost, ratio = self._class_factors(shard.acting)
        raw = (shard.data_bytes * self._allocation.get(shard.pool, 1.0) + shard.omap_bytes
               + shard.objects * cost)
        measured = self._measured.get(shard.pool, 0.0) if self._measured else 0.0
        return max(0, int(raw * ratio + shard.objects * measured))

    def _class_factors(self, osds: Sequence[int]) -> Tuple[float, float]:
        """Their mean over the OSDs of a PG; PGs share few combinations of classes."""
        classes = self._class_of
        members = tuple([classes[osd] for osd in osds if osd in classes])
        found = self._mixed.get(members)
        if found is None:
            rows = [self._classes.get(name, (0.0, 1.0)) for name in members] or [(0.0, 1.0)]
            found = self._mixed[members] = (sum(row[0] for row in rows) / len(rows),
                                            sum(row[1] for row in rows) / len(rows))
        return found

    def _data(self, look: Look, pgid: str, position: int) -> float:
        """Bytes of data of the shard at a position, as stored without padding."""
        pool = look.pools[pool_of(pgid)]
        shard, _ = self.input_of(pool, look.record(pgid), ())
        ratios = self._positions.get(pool.id, ())
        return max(0, shard.data_bytes) * (ratios[position] if position < len(ratios) else 1.0)

    # -- what is where -------------------------------------------------------------------------

    def _note_changes(self, look: Look) -> None:
        """Notes what has come to OSDs and left them since the last look."""
        now, last, epoch = look.reading.taken_at, self._last, int(look.reading.osd_map["epoch"])
        # until it is in the OSD's report, and the PG has told since whether it is whole there; an
        # idle one may have nothing to tell
        self._came = {key: came for key, came in self._came.items() if 0.0 <= now - came[0] < (
            _LATEST_SECONDS if 0 < look.record(key[0]).reported_epoch < came[1]
            else _REPORTED_SECONDS)}
        self._last = look
        if last is None:   # what the last mgr had moved may not be reported yet
            self._came = {(pgid, osd): (now, 0) for pgid in look.reading.sent
                          if pgid in look.reading.up for osd in look.acting_set(pgid)}
            return
        if last.reading.up is look.reading.up and last.reading.acting == look.reading.acting:
            return
        for pgid in piecewise(last.pgids, _PGS_A_PIECE):
            up, old_up = look.reading.up.get(pgid, ()), last.reading.up[pgid]
            acting, old_acting = look.reading.acting.get(pgid), last.reading.acting.get(pgid)
            if up == old_up and acting == old_acting or (
                    not up and pgid not in look.reading.up and pool_of(pgid) in look.pools):
                continue   # merged PGs stay where they are, in another
            acting, old_acting = acting or up, old_acting or old_up
            # one that has become clean since tells that it is whole, whatever epoch has followed
            is_told = CLEAN in look.record(pgid).state and (
                CLEAN not in last.record(pgid).state)
            for osd in set(acting).difference(old_acting):
                self._came[pgid, osd] = now, 0 if is_told else epoch
                if pgid in self._omap_left.get(osd, ()):   # it is there again
                    self._omap_left[osd].remove(pgid)
            for osd in {*acting, *up}.difference(old_acting, old_up, (NO_OSD,)):
                self._assigned.setdefault(osd, []).append(now)
            for osd in {*old_acting, *old_up}.difference(acting, up, (NO_OSD,)):
                held = old_acting if osd in old_acting else old_up
                self._left.setdefault(osd, []).append((now, pool_of(pgid), self._data(
                    last, pgid, tuple(held).index(osd))))
                if look.record(pgid).omap_bytes or pool_of(pgid) in self._omap:
                    self._omap_left.setdefault(osd, []).append(pgid)
        if len(look.pgids) != len(last.pgids):
            self._renumbered_at = now

    def _fit_omap(self, look: Look) -> None:
        """Fits what depends on records alone: omap that PGs do not tell, and the pools' means."""
        sums: Dict[int, OmapSums] = {pool: OmapSums() for pool in look.pools}
        totals: Dict[int, List[int]] = {pool: [0, 0, 0, 0] for pool in look.pools}
        acting_of: Dict[int, Sequence[int]] = {}   # pool id → acting set of one of its PGs
        reported = look.with_statistics
        for pgid in piecewise(look.pgids, _PGS_A_PIECE):
            record, pool, up = look.record(pgid), pool_of(pgid), look.reading.up[pgid]
            acting = look.reading.acting.get(pgid) or up
            copies = sum([osd in reported for osd in acting])
            sums[pool].add(record, copies, 0 if acting is up else len(set(up).difference(acting)))
            if not record.is_unknown:
                acting_of[pool], row = acting, totals[pool]
                for number, count in enumerate((1, record.num_bytes, record.omap_bytes,
                                                record.num_objects)):
                    row[number] += max(0, count)
        self._means = {
            pool: ShardInput(pool, acting_of[pool],
                             -(-data // (pgs * look.pools[pool].data_shards)),
                             omap // pgs, objects // pgs)
            for pool, (pgs, data, omap, objects) in totals.items() if pgs}
        for pgids in piecewise(self._omap_left.values(), _OSDS_A_PIECE):
            for pgid in pgids:
                if pgid in look.reading.up and pool_of(pgid) in sums:
                    sums[pool_of(pgid)].add(look.record(pgid), 0, 1)
        found: Dict[int, OmapEstimate] = {}
        for stats in look.reading.pool_stats:
            pool, allocated = stats["poolid"], stats.get("store_stats", {}).get("omap_allocated", 0)
            if allocated > 0:
                found[pool] = sums[pool].estimate(
                    allocated, self._omap.get(pool), self._omap_is_late) if (
                        pool in sums) else OmapEstimate()
        self._omap = found

    def _add_shards(self, look: Look) -> None:
        self._osds = {osd: _OsdSums() for osd in look.with_statistics}
        came = {pgid for pgid, _ in self._came}
        for pgid in piecewise(look.pgids, _PGS_A_PIECE):
            record, up = look.record(pgid), look.reading.up[pgid]
            pool, acting = look.pools[pool_of(pgid)], look.reading.acting.get(pgid) or up
            shard, _ = self.input_of(pool, record, acting)
            data, ratios = max(0, shard.data_bytes), self._positions.get(pool.id, ())
            # some of its OSDs may not have all of it; what nobody reports is not known to move
            lacks = CLEAN not in record.state and not record.is_unknown
            is_activating = ACTIVATING in record.state   # an OSD may withhold it
            is_plain = acting is up and not lacks and pgid not in came
            for position, osd in enumerate(acting):
                sums = self._osds.get(osd)
                if sums is None:
                    continue
                part = data * ratios[position] if position < len(ratios) else data
                sums.pgs += not is_activating
                has_come = not is_plain and (pgid, osd) in self._came
                if not has_come:   # whoever else lacks it
                    sums.omap += shard.omap_bytes
                if is_plain or not (lacks or has_come):
                    sums.whole[pool.id] = sums.whole.get(pool.id, 0) + part
                    sums.objects += shard.objects
                    if not is_plain:
                        sums.change[pool.id] = sums.change.get(pool.id, 0) - part
                else:
                    sums.may[pool.id] = sums.may.get(pool.id, 0) + part
                if part > sums.largest[0]:
                    sums.largest = part, pool.id
            for position, osd in enumerate(() if is_plain else up):
                sums = self._osds.get(osd)
                if sums is None:
                    continue
                part = data * ratios[position] if position < len(ratios) else data
                sums.change[pool.id] = sums.change.get(pool.id, 0) + part
                if osd not in acting:
                    sums.pgs += not is_activating
                    sums.may[pool.id] = sums.may.get(pool.id, 0) + part
        self._add_undeleted(look)

    def _add_undeleted(self, look: Look) -> None:
        """Adds the largest of what has left OSDs, as many as each counts PGs beyond the map: all of
        it where PGs were split or merged, which OSDs count later."""
        now = look.reading.taken_at
        is_renumbered = 0.0 <= now - self._renumbered_at < _REPORTED_SECONDS
        # an OSD may be purged, or count a stray PG for ever
        self._left = {osd: rows[-_MOST_LEFT:] for osd, rows in self._left.items()
                      if osd in self._osds}
        self._omap_left = {osd: rows[-_MOST_LEFT:] for osd, rows in self._omap_left.items()
                           if osd in self._osds}
        for stats in piecewise(look.reading.osd_stats, _OSDS_A_PIECE):
            sums = self._osds.get(stats["osd"])
            if sums is None:
                continue
            osd, rows = stats["osd"], self._left.get(stats["osd"], [])
            # its report may be from before what it was given and what left it within a minute
            given = self._assigned[osd] = [at for at in self._assigned.get(osd, ())
                                           if 0.0 <= now - at < _REPORTED_SECONDS]
            beyond = int(stats.get("num_pgs", 0)) - sums.pgs
            sums.spare = max(beyond + len(given), sum(
                [is_renumbered or 0.0 <= now - at < _REPORTED_SECONDS for at, _, _ in rows]))
            if sums.spare <= 0:
                self._left.pop(osd, None)
                self._known.add(osd)
                continue
            parts = sorted([(part, pool) for _, pool, part in rows], reverse=True)[:sums.spare]
            # from before this mgr, or missed as its reports were late: each as large as the largest
            unseen = beyond - len(parts)
            if osd not in self._known:
                parts, unseen = [], sums.spare
            sums.unseen = max(0, unseen)
            parts += [sums.largest] * unseen
            for part, pool in parts:
                sums.undeleted[pool] = sums.undeleted.get(pool, 0.0) + part

    # -- factors -------------------------------------------------------------------------------

    def _fit_allocation(self, look: Look) -> None:
        """Allocated ÷ stored is told at any time, since what left counts in both; stored ÷ logical
        where nothing moves, and kept between bounds elsewhere: by those OSDs of which it is known
        what they hold. Others may have what is of any pool, or in no acting set: of a pool that is
        on none of those, the shards that nobody saw leave may be of it."""
        reading, has_rows = look.reading, bool(look.reading.pool_statfs)
        telling = {osd: sums for osd, sums in self._osds.items() if not has_rows or (
            look.osds[osd].up and osd not in reading.stale_osds)}
        known: Set[int] = {pool for sums in piecewise(telling.values(), _OSDS_A_PIECE)
                           if has_rows and not sums.unseen
                           for pool, part in sums.whole.items() if part}
        whole: Dict[int, float] = {}
        may: Dict[int, float] = {}
        for osd, sums in piecewise(telling.items(), _OSDS_A_PIECE):
            others = {pool: float(sums.unseen * self._means[pool].data_bytes)
                      for pool in sums.whole if pool in self._means and has_rows
                      and pool != sums.largest[1]}
            for into, parts in ((whole, sums.whole), (may, sums.may), (may, sums.undeleted),
                                (may, others)):
                for pool, part in parts.items():
                    if not sums.unseen or pool not in known:
                        into[pool] = into.get(pool, 0.0) + part * factor_of(
                            self._factors, pool, osd)
        untold: Dict[int, Tuple[int, int]] = {}   # pool id → allocated, stored on the others
        for pool, osd, more, held in piecewise(reading.pool_statfs, _ROWS_A_PIECE):
            sums_of = telling.get(osd)
            # the mgr keeps the row of a pool of which an OSD has nothing any more
            if sums_of is None or sums_of.unseen and pool in known or not (
                    pool in sums_of.whole or pool in sums_of.may or pool in sums_of.undeleted):
                before = untold.get(pool, (0, 0))
                untold[pool] = before[0] + more, before[1] + held
        found = {pool: self._allocation[pool] for sums in self._osds.values()
                 for pool in sums.undeleted if pool in self._allocation}   # of deleted pools
        for stats in reading.pool_stats:
            pool, figures = stats["poolid"], stats.get("store_stats", {})
            allocated, stored = figures.get("allocated", 0), figures.get("data_stored", 0)
            if allocated <= 0:
                continue
            told, there = stored - untold.get(pool, (0, 0))[1], whole.get(pool, 0.0) + may.get(
                pool, 0.0)
            if stored <= 0 or pool in self._factors:
                # OSDs differ: only what they have allocated is comparable
                stored, told = allocated, allocated - untold.get(pool, (0, 0))[0]
            if there > 0.0 and told > 0:
                high = told / whole[pool] if whole.get(pool) else inf
                self._padding[pool] = min(max(self._padding.get(pool, 1.0), told / there), high)
            found[pool] = self._padding.get(pool, 1.0) * allocated / stored
        self._allocation = found

    def _fit_classes(self, look: Look) -> None:
        """Fits the factors of each class to its OSDs at which nothing moves, where these are half
        of them, or where nothing is known."""
        rows: Dict[str, List[Tuple[bool, int, int, int, int]]] = {}
        for stats in piecewise(look.reading.osd_stats, _OSDS_A_PIECE):
            osd, sums = stats["osd"], self._osds.get(stats["osd"])
            if sums is not None:
                used = look.osds[osd].used_bytes
                own = int(self._allocated(osd, sums.whole)) + sums.omap
                data, omap = _data_and_omap(stats, used)
                beside = used - (own if data + omap == used else data + max(omap, sums.omap))
                rows.setdefault(self._class_of[osd], []).append(
                    (sums.is_at_rest, sums.objects, beside, used, own))
        self._mixed = {}
        for name, members in piecewise(rows.items(), 1):
            quiet = [row for row in members if row[0]]
            if 2 * len(quiet) < len(members):
                if name in self._classes:
                    continue
                quiet = members
            _, objects, beside_all, used_all, own_all = zip(*quiet)
            self._classes[name] = cost_per_object(objects, beside_all), min(
                1.0, sum(used_all) / sum(own_all)) if sum(own_all) else 1.0

    def _fit_pools(self, look: Look) -> None:
        """The pools with the ratios of their shards' sizes. Metadata and omap of a shard take the
        same on OSDs and at positions where its data takes more or less."""
        metadata: Dict[int, float] = {}
        uneven = {*self._factors, *self._positions}
        for pool in uneven.intersection(self._means):
            mean = self._means[pool]
            whole = self.shard_bytes(mean)
            metadata[pool] = min(_MOST_METADATA, self.shard_bytes(
                mean._replace(data_bytes=0)) / whole) if whole else 0.0
        found: Dict[int, float] = {}
        odd = {osd for factors in self._factors.values() for osd in factors}
        for osd in odd & self._osds.keys():   # the factor of its mean pool
            parts = {pool: part / (1.0 - metadata.get(pool, 0.0))
                     for pool, part in self._osds[osd].whole.items()}
            total, before = sum(parts.values()), self.size_factors.get(osd)
            ratio = sum([part * factor_of(self._factors, pool, osd, metadata.get(pool, 0.0))
                         for pool, part in parts.items()]) / total if total else 1.0
            found[osd] = before if before and is_same(ratio, before) else round(ratio, 3)
        self.size_factors = found
        pools = dict(look.pools)
        for pool in pools if self.size_factors or self._positions else ():
            beside = metadata.get(pool, 0.0)
            ratios = {osd: exact_ratio(factor_of(self._factors, pool, osd, beside) / factor)
                      for osd, factor in self.size_factors.items()}
            pools[pool] = pools[pool]._replace(
                osd_ratios={osd: ratio for osd, ratio in ratios.items() if ratio != 1.0},
                position_ratios=tuple([exact_ratio(of_whole(ratio, beside))
                                       for ratio in self._positions.get(pool, ())]))
        self.pools = pools

    def _allocated(self, osd: int, parts: Mapping[int, float]) -> float:
        """Bytes on an OSD of data by pool, but for what all drives of its class compress."""
        return sum([part * self._allocation.get(pool, 1.0) * factor_of(self._factors, pool, osd)
                    for pool, part in parts.items()])

    def _taken(self, osd: int, parts: Mapping[int, float]) -> float:
        """Bytes on an OSD's device of data by pool."""
        return self._classes.get(self._class_of[osd], (0.0, 1.0))[1] * self._allocated(osd, parts)

    # -- what OSDs report, and what they will have ---------------------------------------------

    def osds_with_traffic(self, look: Look, moving: Collection[Pg]) -> Dict[int, Osd]:
        """The OSDs with bytes that are comparable among them, with what moves to and from them and
        has left them, and their residuals. `moving`: the PGs that move."""
        all_sums, self._osds = self._osds, {}   # of this look alone: megabytes while plans are made
        inbound: Dict[int, int] = {}    # comparable bytes still to come
        outbound: Dict[int, int] = {}
        to_come: Dict[int, float] = {}   # bytes on the device of data to come, less that to leave
        #: OSD → omap bytes of PGs that it is about to give away and still holds, though the map
        #: has it serve them no more
        leaving: Dict[int, Dict[str, int]] = {}
        for pg in piecewise(moving, _PGS_A_PIECE):
            pool = look.pools[pg.pool]
            gains, losses = transfers(pg, pool.erasure)
            for osd in gains:
                inbound[osd] = inbound.get(osd, 0) + int(
                    pool.bytes_on(pg.shard_bytes, osd, pg.up)
                    * pg.uncopied.get(osd, pg.uncopied_ratio))
            for osd in losses:
                outbound[osd] = outbound.get(osd, 0) + pool.bytes_on(
                    pg.shard_bytes, osd, pg.holders)
                if osd not in pg.acting:
                    leaving.setdefault(osd, {})[pg.pgid] = self._omap_bytes(look, pg.pgid)
            for osds, up in ((gains, pg.up), (losses, pg.holders)):
                for osd in osds:
                    if osd in all_sums:
                        to_come[osd] = to_come.get(osd, 0.0) + (
                            pg.uncopied.get(osd, pg.uncopied_ratio) if osds is gains else -1.0
                        ) * self._taken(osd, {pg.pool: self._data(look, pg.pgid, up.index(osd))})
        reports = {stats["osd"]: stats for stats in look.reading.osd_stats}
        found: Dict[int, Osd] = {}
        for number, one in piecewise(look.osds.items(), _OSDS_A_PIECE):
            undeleted = uncompacted = beyond = 0
            residual = low = padding = 0.0
            # one that is down deletes nothing, and comes back with what it has
            if number in all_sums and number not in look.reading.stale_osds and one.up:
                sums = all_sums[number]
                left = self._taken(number, sums.undeleted)   # if all of it is there
                data, omap = _data_and_omap(reports[number], one.used_bytes)
                whole = self._taken(number, sums.whole)
                high = data - whole
                low = high - self._taken(number, sums.may) - left
                residual = self._residual[number] = min(
                    max(self._residual.get(number, 0.0), low), high)
                stored = (reports[number].get("statfs") or {}).get("data_stored", 0) or data
                padding = min(residual, max(0, data - stored))
                if number in to_come or not sums.is_at_rest:
                    # reported and to come, less what will be there
                    beyond = int(data + to_come.get(number, 0.0)
                                 - whole - self._taken(number, sums.change) - residual)
                    undeleted = max(0, min(beyond, int(left)))
                uncompacted = self._uncompacted(
                    look, number, omap - sums.omap, leaving.get(number, {}))
            factor = self.size_factors.get(number, 1.0)
            come = inbound.get(number, 0) + int((undeleted - beyond) / factor)
            found[number] = one._replace(
                inbound_bytes=max(0, come), outbound_bytes=outbound.get(number, 0),
                undeleted_bytes=int(undeleted / factor) + max(0, -come),
                uncompacted_bytes=int(uncompacted / factor),
                residual_bytes=int(residual / factor), least_residual_bytes=int(low / factor),
                padding_bytes=int(padding / factor))
            if number in self.size_factors:
                found[number] = found[number]._replace(
                    size_factor=factor, device=(one.size_bytes, one.used_bytes),
                    size_bytes=int(one.size_bytes / factor),
                    used_bytes=int(one.used_bytes / factor))
        return found

    def _uncompacted(self, look: Look, osd: int, excess: int, leaving: Mapping[str, int]) -> int:
        """Bytes of omap that has left an OSD. `excess`: what it reports beyond its shards, those of
        `leaving` PGs among it.

        RocksDB frees it when it has compacted: after minutes on a busy OSD, and never by itself on
        an idle one (16.2.15 and 20.2.4)."""
        held = self._omap_left.pop(osd, [])
        rows = [pgid for pgid in held if pgid not in leaving]
        sizes = [self._omap_bytes(look, pgid) for pgid in rows]
        left, excess = sum(sizes), excess - sum(leaving.values())
        while rows and (not sizes[0] or excess < left - _FREED_RATIO * sizes[0]):
            left -= sizes.pop(0)
            rows.pop(0)
        rows += [pgid for pgid in held if pgid in leaving]
        if rows:
            self._omap_left[osd] = rows
        return max(0, min(left, excess))

    def _omap_bytes(self, look: Look, pgid: str) -> int:
        """Bytes of omap of a PG, the mean of its pool where it tells none; 0 of one that is gone.
        What clients have written since its deep scrub came to where it is now."""
        if pgid not in look.reading.up or pool_of(pgid) not in look.pools:
            return 0
        record = look.record(pgid)
        omap = self.input_of(look.pools[pool_of(pgid)], record, ())[0].omap_bytes
        return min(record.omap_bytes or omap, omap)


def _data_and_omap(stats: Mapping[str, Any], used: int) -> Tuple[int, int]:
    """Bytes of data and of omap that an OSD reports; of drives that compress all but omap is data.
    What RocksDB takes beside comes and goes by itself."""
    statfs = stats.get("statfs") or {}
    omap = max(0, statfs.get("omap_allocated", 0) or stats.get("kb_used_omap", 0) * 1024)
    allocated = int(statfs.get("allocated", -1))
    return (allocated if 0 <= allocated <= used - omap else used - omap), omap


def cost_per_object(objects: Sequence[int], beside: Sequence[int]) -> float:
    """Slope of overhead over objects (least squares), kept between 0 and the mean cost: the part of
    it that is more than noise. Whole numbers, so that the order of the OSDs makes no difference."""
    count, sum_x, sum_y = len(objects), sum(objects), sum(beside)
    spread_x = count * sum([x * x for x in objects]) - sum_x * sum_x
    both = count * sum([x * y for x, y in zip(objects, beside)]) - sum_x * sum_y
    if sum_x <= 0 or sum_y <= 0 or spread_x <= 0:
        return 0.0
    cost: float = min(max(0.0, both / spread_x), sum_y / sum_x)
    explained = cost * (max(objects) - min(objects))
    if explained >= 2.0 * _NOISE_BYTES:
        return cost
    # how clear the slope is, from 0 to 1: by its standard error (Student's t)
    spread_y = count * sum([y * y for y in beside]) - sum_y * sum_y
    clearness, unexplained = 1.0, spread_x * spread_y - both * both
    if count >= 3 and unexplained > 0:
        errors = sqrt(both * both * (count - 2) / unexplained)
        clearness = min(1.0, max(0.0, 2.0 * errors / _CLEAR_ERRORS - 1.0))
    return cost * max(0.0, explained / _NOISE_BYTES - 1.0, clearness)

"""The size model: an OSD stores its shards, each of the size of its pool there, and a residual.

The size of a shard is data × padding × ratio, plus omap, plus metadata:
- data: num_bytes ÷ k, by position in EC-optimized pools;
- padding: stored ÷ logical bytes of the pool;
- ratio: allocated ÷ stored;
- metadata: a cost per object of the device class.
If the drives of a class compress, a ratio of the class reduces all of it. Bytes that arriving
shards took above that are added.

While data moves, the data on an OSD lies between two bounds. `whole` shards are certainly there.
Other shards may be there in part: shards that are copied or recovered, shards that came within the
last minute, and shards that the OSD still deletes. The OSD counts the last kind in `num_pgs`, in
addition to the PGs of the osdmap. The model keeps the residual and the padding of the last reading
if they lie between the bounds. If nothing moves the bounds are equal, and the model measures. So
there is nothing to wait for, and nothing to store.
"""
from __future__ import annotations

from collections import defaultdict
from math import inf, sqrt
from operator import mul
from typing import (
    AbstractSet, Any, Collection, DefaultDict, Dict, Iterable, List, Mapping, NamedTuple, Optional,
    Sequence, Set, Tuple, TypeVar)

from ...crush.placement import NO_OSD
from ...runtime.time_slice import piecewise
from .. import immovable_reasons as reasons
from ..immovable_reasons import Immovable
from ..model import Look, Osd, Pg, PgRecord, Pool, PoolStatfs, pool_of, transfers
from ..pg_states import ACTIVATING, CLEAN
from .omap import REPORTED_LATE, OmapEstimate, OmapSums, is_unmeasured
from .osd_factors import (
    Factors, exact_ratio, factor_of, fit_osd_factors, is_same, of_whole, position_ratios)

#: Items between two calls of `give_way`: about a millisecond.
_PGS_A_PIECE = 150
_OSDS_A_PIECE = 30
_ROWS_A_PIECE = 1000
#: Seconds until an OSD has reported a shard that has come, and the mgr has that report.
_REPORTED_SECONDS = 60.0
#: Seconds until a shard counts as whole although its PG has not reported since.
_LATEST_SECONDS = 43200.0
#: The model remembers at most this many shards that left an OSD.
_MOST_LEFT = 2000
#: The report of an OSD falls by at least this ratio of the omap that it has freed. It may fall by
#: less than all: deletions are written as well, and RocksDB estimates the sizes of ranges
#: (16.2.15: of 52 MiB 41 showed).
_FREED_RATIO = 0.7
#: RocksDB's files come and go by this many bytes on any OSD. A cost per object that explains a
#: smaller difference counts only if it is clear: in full from _CLEAR_ERRORS times its standard
#: error on, and not at all below half of that. Of 7 OSDs of 20.2.4, with 20 MB overhead at 4,700
#: objects and 15 MB at 3,800, it was 3.6 times. 20 MB stayed after 3,400 of these objects had left.
_NOISE_BYTES = 64 << 20
_CLEAR_ERRORS = 8.0
#: Metadata is at most this ratio of a pool's bytes: data is what differs among OSDs.
_MOST_METADATA = 0.99

#: (bytes of metadata per object, used ÷ expected bytes) of a class without a measurement.
_NO_COST = (0.0, 1.0)
_NO_POOLS: AbstractSet[int] = frozenset()


_T = TypeVar("_T")


class ShardInput(NamedTuple):
    """The figures of a PG's mean shard."""

    pool: int
    acting: Sequence[int]
    data_bytes: int   # num_bytes ÷ k
    omap_bytes: int
    objects: int


class _OsdSums:
    """The shards of one OSD. Data is stored bytes without padding, by pool id."""

    largest = (0.0, 0)   # (data of its largest shard, pool id)
    objects = 0          # of the whole shards
    omap = 0             # of the shards that it serves, except those that have just come
    pgs = 0              # that the osdmap gives it
    spare = 0            # that it reports in addition
    unseen = 0           # of these, PGs that nobody saw leave: of any pool

    def __init__(self) -> None:
        self.whole: Dict[int, float] = defaultdict(int)    # shards that are certainly there
        self.may: Dict[int, float] = defaultdict(int)      # shards that may be there in part
        #: of PGs that move: the shards that it will have, less those that are certainly there
        self.change: Dict[int, float] = defaultdict(int)
        self.undeleted: Dict[int, float] = defaultdict(int)   # shards that it may still delete

    @property
    def is_at_rest(self) -> bool:
        """Returns True if no data moves to or from the OSD and it deletes none."""
        if self.may or self.spare > 0:
            return False
        return not any(map(round, self.change.values()))

    def has_data_of(self, pool: int) -> bool:
        """Returns True if the OSD may store data of the pool."""
        return pool in self.whole or pool in self.may or pool in self.undeleted


class _PoolData:
    """The data of one pool: its shards on OSDs that report all of it, and reports of the others."""

    whole = may = 0.0         # stored bytes without padding of shards, certain or possible
    allocated = stored = 0    # bytes that other OSDs report


class _Traffic:
    """The shards that move to or from one OSD. Inbound and outbound bytes are comparable among
    OSDs."""

    inbound = outbound = 0
    to_come = 0.0   # bytes of data on its device: still to come, less those to leave

    def __init__(self) -> None:
        #: pgid → bytes of omap that the OSD is about to give away, but does not serve any more
        self.leaving: Dict[str, int] = {}


_NO_TRAFFIC = _Traffic()   # nothing may be added to it


class _Beside(NamedTuple):
    """Bytes on one device in addition to its shards; zeros if they are not known."""

    undeleted: int = 0
    beyond: int = 0         # reported or to come, and neither of shards nor residual
    uncompacted: int = 0
    residual: float = 0.0
    least_residual: float = 0.0
    padding: float = 0.0


_UNKNOWN = _Beside()


class SizeModel:
    """Finds the sizes of shards and the traffic of OSDs.

    For each reading call `fit`, then `input_of` and `shard_bytes` for its PGs, then
    `osds_with_traffic`.
    """

    # of the present reading: `fit` sets them
    pools: Mapping[int, Pool]         # with the size ratios of their shards
    _omap_is_late: bool
    _class_of: Mapping[int, str]      # OSD with statistics → device class
    _measured: Mapping[int, float]
    _osds: Dict[int, _OsdSums]

    _last: Optional[Look] = None
    _renumbered_at = -inf   # when PGs were last split, merged, made or deleted

    def __init__(self) -> None:
        self.size_factors: Mapping[int, float] = {}    # OSD id → its size_factor, if not 1
        self._factors: Factors = {}
        self._padding: Dict[int, float] = {}           # pool id → stored ÷ logical bytes
        self._allocation: Dict[int, float] = {}        # pool id → allocated ÷ logical bytes
        self._omap: Dict[int, OmapEstimate] = {}       # of pools whose statistics have omap
        self._means: Dict[int, ShardInput] = {}        # pool id → its mean PG
        #: device class → (bytes of metadata per object, used ÷ expected bytes, at most 1)
        self._classes: Dict[str, Tuple[float, float]] = {}
        self._mixed: Dict[Tuple[str, ...], Tuple[float, float]] = {}   # classes → their mean
        self._positions: Dict[int, Tuple[float, ...]] = {}   # pool id → see position_ratios
        self._residual: Dict[int, float] = {}          # OSD id → bytes of data
        #: (pgid, OSD) → (seconds since the epoch, osdmap epoch that the PG has to know)
        self._came: Dict[Tuple[str, int], Tuple[float, int]] = {}
        #: OSD → (when, pool id, bytes of data) of shards that have left it since it last deleted
        #: nothing
        self._left: Dict[int, List[Tuple[float, int, float]]] = defaultdict(list)
        #: OSD → when the osdmap gave it PGs lately
        self._assigned: Dict[int, List[float]] = defaultdict(list)
        #: OSD → pgids whose omap it may still have
        self._omap_left: Dict[int, List[str]] = defaultdict(list)
        self._known: Set[int] = set()   # OSDs that the model has seen delete nothing

    def fit(self, look: Look) -> None:
        """Fits all factors to a reading."""
        reading = look.reading
        self._measured = reading.measured
        self._omap_is_late = reading.osd_map.get("require_osd_release", "") in REPORTED_LATE
        self._class_of = {osd: look.osds[osd].device_class for osd in look.with_statistics}
        self._factors = fit_osd_factors(reading.pool_statfs, look.osds, self._factors)
        self._note_changes(look)
        self._fit_omap(look)
        self._fit_positions(look)
        self._add_shards(look)
        self._add_undeleted(look)
        self._fit_allocation(look)
        self._fit_classes(look)
        self._fit_pools(look)

    # -- one PG --------------------------------------------------------------------------------

    def input_of(self, pool: Pool, record: PgRecord,
                 acting: Sequence[int]) -> Tuple[ShardInput, Optional[Immovable]]:
        """Returns (input of a PG, why its size is not known or None).

        A PG that no OSD has reported is unknown, not empty: it counts as the mean of its pool.
        """
        number = pool.id
        if record.is_unknown:
            mean = self._means.get(number) or ShardInput(number, (), 0, 0, 0)
            return mean._replace(acting=acting), reasons.NO_STATISTICS
        estimate = self._omap.get(number)
        is_late = self._omap_is_late
        if estimate is None:
            omap = record.omap_bytes
            is_untold = not pool.erasure
        else:
            omap = estimate.bytes_of(record)
            is_untold = is_late
        data = -(-record.num_bytes // pool.data_shards)
        shard = ShardInput(number, acting, data, omap, record.num_objects)
        if is_untold and is_unmeasured(record, is_late):
            return shard, reasons.OMAP_UNMEASURED
        return shard, None

    def shard_bytes(self, shard: ShardInput) -> int:
        """Returns the bytes of a PG's mean shard on usual OSDs; never negative.

        Adds the bytes that arriving shards took above the prediction (execution/size_check).
        """
        cost, ratio = self._class_factors(shard.acting)
        raw = (shard.data_bytes * self._allocation.get(shard.pool, 1.0) + shard.omap_bytes
               + shard.objects * cost)
        measured = self._measured.get(shard.pool, 0.0)
        return max(0, int(raw * ratio + shard.objects * measured))

    def _class_factors(self, osds: Sequence[int]) -> Tuple[float, float]:
        """Returns the mean class factors over the OSDs of a PG. PGs share few combinations of
        classes."""
        classes = self._class_of
        members = tuple([classes[osd] for osd in osds if osd in classes])
        found = self._mixed.get(members)
        if found is None:
            rows = [self._classes.get(name, _NO_COST) for name in members] or [_NO_COST]
            costs, ratios = zip(*rows)
            found = self._mixed[members] = sum(costs) / len(rows), sum(ratios) / len(rows)
        return found

    def _data(self, look: Look, pgid: str, position: int) -> float:
        """Returns the data of the shard at a position: stored bytes without padding."""
        shard, _ = self.input_of(look.pools[pool_of(pgid)], look.record(pgid), ())
        return self._parts(shard, position + 1)[position]

    def _parts(self, shard: ShardInput, count: int) -> List[float]:
        """Returns the data of a PG's shards at the first `count` positions."""
        data = max(0, shard.data_bytes)
        parts: List[float] = [data] * count
        for position, ratio in enumerate(self._positions.get(shard.pool, ())[:count]):
            parts[position] = data * ratio
        return parts

    # -- which OSD has which data --------------------------------------------------------------

    def _note_changes(self, look: Look) -> None:
        """Notes the shards that have come to OSDs, or left them, since the last reading."""
        reading = look.reading
        last = self._last
        up_sets = reading.up
        acting_sets = reading.acting
        self._came = {key: came for key, came in self._came.items()
                      if _may_be_partial(look, key[0], came)}
        self._last = look
        if last is None:   # moves of the last mgr may not be reported yet
            for pgid in reading.sent:
                if pgid in up_sets:
                    came = reading.taken_at, 0
                    serving = acting_sets.get(pgid) or up_sets[pgid]
                    self._came.update({(pgid, osd): came for osd in serving})
            return
        old_up_sets = last.reading.up
        old_acting_sets = last.reading.acting
        if old_up_sets is up_sets and old_acting_sets == acting_sets:
            return
        for pgid in piecewise(last.pgids, _PGS_A_PIECE):
            up = up_sets.get(pgid, ())
            old_up = old_up_sets[pgid]
            acting = acting_sets.get(pgid)
            old_acting = old_acting_sets.get(pgid)
            if up == old_up and acting == old_acting:
                continue
            if pgid not in up_sets and pool_of(pgid) in look.pools:
                continue   # merged PGs stay on their OSDs, in another PG
            acting = acting or up
            old_acting = old_acting or old_up
            self._note_arrivals(look, last, pgid, set(acting).difference(old_acting))
            self._note_places(look, last, pgid, {*acting, *up}, old_acting)
        if len(look.pgids) != len(last.pgids):
            self._renumbered_at = reading.taken_at

    def _note_arrivals(self, look: Look, last: Look, pgid: str, osds: Iterable[int]) -> None:
        """Notes that OSDs serve a shard of a PG from now on."""
        # a PG that has become clean since is whole, even if other epochs have followed
        was_clean = CLEAN in last.record(pgid).state
        is_told = CLEAN in look.record(pgid).state and not was_clean
        epoch = 0
        if not is_told:
            epoch = int(look.reading.osd_map["epoch"])
        for osd in osds:
            self._came[pgid, osd] = look.reading.taken_at, epoch
            left = self._omap_left[osd]
            if pgid in left:   # it is there again
                left.remove(pgid)

    def _note_places(self, look: Look, last: Look, pgid: str, places: Set[int],
                     old_acting: Sequence[int]) -> None:
        """Notes the OSDs that get a PG or lose it by the osdmap. `places`: its OSDs now."""
        now = look.reading.taken_at
        pool = pool_of(pgid)
        old_up = last.reading.up[pgid]
        old_places = {*old_acting, *old_up}
        for osd in places.difference(old_places, (NO_OSD,)):
            self._assigned[osd].append(now)
        has_omap = pool in self._omap or look.record(pgid).omap_bytes
        for osd in old_places.difference(places, (NO_OSD,)):
            held = old_up
            if osd in old_acting:
                held = old_acting
            data = self._data(last, pgid, tuple(held).index(osd))
            self._left[osd].append((now, pool, data))
            if has_omap:
                self._omap_left[osd].append(pgid)

    def _fit_omap(self, look: Look) -> None:
        """Fits the factors that depend on records alone: omap that PGs do not report, and the mean
        PG of each pool."""
        sums: Dict[int, OmapSums] = defaultdict(OmapSums)
        #: pool id → sums over its PGs: their number, bytes, omap and objects
        totals: Dict[int, List[int]] = defaultdict(lambda: [0, 0, 0, 0])
        acting_of: Dict[int, Sequence[int]] = {}   # pool id → acting set of one of its PGs
        reported = look.with_statistics
        pools = look.pools
        reading = look.reading
        up_sets = reading.up
        acting_sets = reading.acting
        for pgid in piecewise(look.pgids, _PGS_A_PIECE):
            record = look.record(pgid)
            pool = pool_of(pgid)
            up = up_sets[pgid]
            acting = acting_sets.get(pgid) or up
            copies = sum([osd in reported for osd in acting])
            moved = 0
            if acting is not up:
                moved = len(set(up).difference(acting))
            sums[pool].add(record, copies, moved)
            if not record.is_unknown:
                acting_of[pool] = acting
                row = totals[pool]
                for number, count in enumerate((1, *record[:3])):
                    row[number] += max(0, count)
        self._means = {}
        for pool, (pgs, data, objects, omap) in totals.items():
            shard_data = -(-data // (pgs * pools[pool].data_shards))
            self._means[pool] = ShardInput(
                pool, acting_of[pool], shard_data, omap // pgs, objects // pgs)
        for pgids in piecewise(self._omap_left.values(), _OSDS_A_PIECE):
            for pgid in pgids:
                if pgid in up_sets and pool_of(pgid) in pools:
                    sums[pool_of(pgid)].add(look.record(pgid), 0, 1)
        found: Dict[int, OmapEstimate] = {}
        for stats in reading.pool_stats:
            pool = stats["poolid"]
            allocated = stats.get("store_stats", {}).get("omap_allocated", 0)
            if allocated > 0:
                found[pool] = sums[pool].estimate(
                    allocated, self._omap.get(pool), self._omap_is_late)
        self._omap = found

    def _fit_positions(self, look: Look) -> None:
        """Finds the size ratios by position of each EC-optimized pool whose mean PG is known."""
        self._positions = {}
        for dump in look.reading.osd_map["pools"]:
            number = dump["pool"]
            pool = look.pools[number]
            mean = self._means.get(number)
            if pool.is_optimized and mean is not None and mean.objects:
                object_bytes = mean.data_bytes * pool.data_shards / mean.objects
                ratios = position_ratios(dump, pool.data_shards, object_bytes)
                if ratios:
                    self._positions[number] = ratios

    def _add_shards(self, look: Look) -> None:
        """Adds each shard to the sums of its OSDs."""
        self._osds = {osd: _OsdSums() for osd in look.with_statistics}
        came = self._came
        came_pgids = {pgid for pgid, _ in came}
        up_sets = look.reading.up
        acting_sets = look.reading.acting
        pools = look.pools
        for pgid in piecewise(look.pgids, _PGS_A_PIECE):
            record = look.record(pgid)
            up = up_sets[pgid]
            pool = pool_of(pgid)
            acting = acting_sets.get(pgid) or up
            state = record.state
            shard, _ = self.input_of(pools[pool], record, acting)
            # some of its OSDs may not have all of it; nobody reports that an unknown PG moves
            lacks = CLEAN not in state and not record.is_unknown
            count = int(ACTIVATING not in state)   # an OSD may withhold the PG
            is_plain = acting is up and not lacks and pgid not in came_pgids
            for osd, part in zip(acting, self._parts(shard, len(acting))):
                sums = self._osds.get(osd)
                if sums is None:
                    continue
                sums.pgs += count
                has_come = not is_plain and (pgid, osd) in came
                if not has_come:   # even if another OSD lacks its shard
                    sums.omap += shard.omap_bytes
                if lacks or has_come:
                    sums.may[pool] += part
                else:
                    sums.whole[pool] += part
                    sums.objects += shard.objects
                    if not is_plain:
                        sums.change[pool] -= part
                if part > sums.largest[0]:
                    sums.largest = part, pool
            if not is_plain:
                self._add_wanted(up, acting, shard, count)

    def _add_wanted(self, up: Sequence[int], acting: Sequence[int], shard: ShardInput,
                    count: int) -> None:
        """Adds the shards of a PG that moves, or has just moved, to the OSDs of its up set."""
        pool = shard.pool
        for osd, part in zip(up, self._parts(shard, len(up))):
            sums = self._osds.get(osd)
            if sums is None:
                continue
            sums.change[pool] += part
            if osd not in acting:
                sums.pgs += count
                sums.may[pool] += part

    def _add_undeleted(self, look: Look) -> None:
        """Adds the shards that an OSD has not deleted yet: the largest that left it, as many as it
        reports PGs in addition to the osdmap.

        After a split or merge adds all of them, because OSDs report the new PGs late.
        """
        now = look.reading.taken_at
        is_renumbered = _is_recent(now, self._renumbered_at)
        # an OSD may be purged, or count a stray PG for ever
        osds = self._osds
        _trim(self._left, osds)
        _trim(self._omap_left, osds)
        for stats in piecewise(look.reading.osd_stats, _OSDS_A_PIECE):
            osd = stats["osd"]
            sums = osds.get(osd)
            if sums is None:
                continue
            rows = self._left[osd]
            # its report may predate the PGs that it got or lost within the last minute
            given = self._assigned[osd] = [
                at for at in self._assigned[osd] if _is_recent(now, at)]
            lost = [at for at, _, _ in rows if is_renumbered or _is_recent(now, at)]
            more = int(stats.get("num_pgs", 0)) - sums.pgs
            sums.spare = max(more + len(given), len(lost))
            if sums.spare <= 0:
                rows.clear()
                self._known.add(osd)
                continue
            parts = sorted([(part, pool) for _, pool, part in rows], reverse=True)[:sums.spare]
            # they left before this mgr was active, or late reports hid them: each counts as the
            # largest shard of the OSD
            unseen = more - len(parts)
            if osd not in self._known:
                parts = []
                unseen = sums.spare
            sums.unseen = max(0, unseen)
            parts += [sums.largest] * unseen
            for part, pool in parts:
                sums.undeleted[pool] += part

    # -- factors -------------------------------------------------------------------------------

    def _fit_allocation(self, look: Look) -> None:
        """Fits the allocated bytes of each pool, as a ratio of its logical bytes.

        Allocated ÷ stored is known at any time, because both include shards that an OSD still
        deletes. Stored ÷ logical is the padding. It is measured if nothing moves, and else kept
        between bounds, by the OSDs whose data is known.
        """
        telling = self._telling_osds(look)
        rows = look.reading.pool_statfs
        known = _known_pools(telling.values()) if rows else _NO_POOLS
        pools = self._data_by_pool(telling, known, bool(rows))
        _add_untold(pools, rows, telling, known)
        deleted: Set[int] = set()   # pools may be gone, and OSDs still delete their shards
        for sums in self._osds.values():
            deleted.update(sums.undeleted)
        found = {pool: ratio for pool, ratio in self._allocation.items() if pool in deleted}
        for stats in look.reading.pool_stats:
            pool = stats["poolid"]
            figures = stats.get("store_stats", {})
            allocated = figures.get("allocated", 0)
            if allocated > 0:
                stored = figures.get("data_stored", 0)
                found[pool] = self._pool_allocation(pool, allocated, stored, pools[pool])
        self._allocation = found

    def _telling_osds(self, look: Look) -> Mapping[int, _OsdSums]:
        """Returns the OSDs whose own figures of pools are up to date. All OSDs count if none has
        such figures."""
        reading = look.reading
        if not reading.pool_statfs:
            return self._osds
        return {osd: sums for osd, sums in self._osds.items()
                if look.osds[osd].up and osd not in reading.stale_osds}

    def _data_by_pool(self, telling: Mapping[int, _OsdSums], known: AbstractSet[int],
                      has_rows: bool) -> DefaultDict[int, _PoolData]:
        """Returns pool id → its data on the OSDs that report it.

        An OSD with `unseen` PGs may store any pool. It counts only for pools that are not `known`
        from other OSDs, and its unseen PGs may be of each of these.
        """
        pools: DefaultDict[int, _PoolData] = defaultdict(_PoolData)
        for osd, sums in piecewise(telling.items(), _OSDS_A_PIECE):
            left_out: AbstractSet[int] = _NO_POOLS
            others: Mapping[int, float] = {}
            if sums.unseen:
                left_out = known
                if has_rows:
                    others = self._unseen_data(sums)
            for pool, part in sums.whole.items():
                if pool not in left_out:
                    pools[pool].whole += part * factor_of(self._factors, pool, osd)
            for parts in (sums.may, sums.undeleted, others):
                for pool, part in parts.items():
                    if pool not in left_out:
                        pools[pool].may += part * factor_of(self._factors, pool, osd)
        return pools

    def _unseen_data(self, sums: _OsdSums) -> Mapping[int, float]:
        """Returns pool id → data of the unseen PGs of an OSD if all of them are of that pool.

        `undeleted` has them as PGs of the pool of its largest shard already.
        """
        return {pool: float(sums.unseen * self._means[pool].data_bytes) for pool in sums.whole
                if pool in self._means and pool != sums.largest[1]}

    def _pool_allocation(self, pool: int, allocated: int, stored: int, data: _PoolData) -> float:
        """Measures the padding of a pool if that is possible, and returns the pool's allocated
        bytes as a ratio of its logical ones. `allocated`, `stored`: bytes on all OSDs."""
        told = stored - data.stored
        if stored <= 0 or pool in self._factors:
            # OSDs differ: only allocated bytes are comparable among them
            stored = allocated
            told = allocated - data.allocated
        padding = self._padding.get(pool, 1.0)
        there = data.whole + data.may
        if there > 0.0 and told > 0:
            padding = max(padding, told / there)
            if data.whole:
                padding = min(padding, told / data.whole)
            self._padding[pool] = padding
        return padding * allocated / stored

    def _fit_classes(self, look: Look) -> None:
        """Fits the factors of each class to its OSDs without traffic.

        If these are fewer than half, a class keeps its last factors. Without last factors all its
        OSDs are used.
        """
        rows: Dict[str, List[Tuple[bool, int, int, int, int]]] = defaultdict(list)
        for stats in piecewise(look.reading.osd_stats, _OSDS_A_PIECE):
            osd = stats["osd"]
            sums = self._osds.get(osd)
            if sums is not None:
                used = look.osds[osd].used_bytes
                own = int(self._allocated(osd, sums.whole)) + sums.omap
                data, omap, _ = _data_and_omap(stats, used)
                known = own
                if data + omap != used:
                    known = data + max(omap, sums.omap)
                rows[self._class_of[osd]].append(
                    (sums.is_at_rest, sums.objects, used - known, used, own))
        self._mixed = {}
        for name, members in piecewise(rows.items(), 1):
            quiet = [row for row in members if row[0]]
            if 2 * len(quiet) < len(members):
                if name in self._classes:
                    continue
                quiet = members
            _, objects, overheads, all_used, all_own = zip(*quiet)
            own = sum(all_own)
            ratio = 1.0
            if own:
                ratio = min(1.0, sum(all_used) / own)
            self._classes[name] = cost_per_object(objects, overheads), ratio

    def _fit_pools(self, look: Look) -> None:
        """Finds the pools with the size ratios of their shards.

        Metadata and omap of a shard take the same space on OSDs and at positions where its data
        takes more or less.
        """
        metadata = self._metadata_ratios()
        self.size_factors = self._fit_size_factors(metadata)
        self.pools = pools = dict(look.pools)
        if not self.size_factors and not self._positions:
            return
        for pool in pools:
            beside = metadata.get(pool, 0.0)
            ratios = {osd: exact_ratio(factor_of(self._factors, pool, osd, beside) / factor)
                      for osd, factor in self.size_factors.items()}
            positions = [exact_ratio(of_whole(ratio, beside))
                         for ratio in self._positions.get(pool, ())]
            pools[pool] = pools[pool]._replace(
                osd_ratios={osd: ratio for osd, ratio in ratios.items() if ratio != 1.0},
                position_ratios=tuple(positions))

    def _metadata_ratios(self) -> Mapping[int, float]:
        """Returns pool id → metadata and omap of a mean shard ÷ all its bytes.

        Only pools whose shards differ in size have such a ratio.
        """
        found: Dict[int, float] = {}
        for pool in {*self._factors, *self._positions}.intersection(self._means):
            mean = self._means[pool]
            whole = self.shard_bytes(mean)
            beside = self.shard_bytes(mean._replace(data_bytes=0))
            found[pool] = min(_MOST_METADATA, beside / max(1, whole))
        return found

    def _fit_size_factors(self, metadata: Mapping[int, float]) -> Mapping[int, float]:
        """Returns OSD id → the mean factor of its shards, for OSDs with a factor in any pool."""
        found: Dict[int, float] = {}
        for osd in set().union(*self._factors.values()).intersection(self._osds):
            total = taken = 0.0
            for pool, data in self._osds[osd].whole.items():
                beside = metadata.get(pool, 0.0)
                part = data / (1.0 - beside)
                total += part
                taken += part * factor_of(self._factors, pool, osd, beside)
            ratio = 1.0
            if total:
                ratio = taken / total
            found[osd] = round(ratio, 3)
            before = self.size_factors.get(osd)
            if before and is_same(ratio, before):
                found[osd] = before
        return found

    def _allocated(self, osd: int, parts: Mapping[int, float]) -> float:
        """Returns the allocated bytes of data by pool on an OSD, before its drive compresses."""
        return sum([part * self._allocation.get(pool, 1.0) * factor_of(self._factors, pool, osd)
                    for pool, part in parts.items()])

    def _taken(self, osd: int, parts: Mapping[int, float]) -> float:
        """Returns the bytes that data by pool takes on an OSD's device."""
        return self._classes.get(self._class_of[osd], _NO_COST)[1] * self._allocated(osd, parts)

    # -- reports and traffic of OSDs -----------------------------------------------------------

    def osds_with_traffic(self, look: Look, moving: Collection[Pg]) -> Dict[int, Osd]:
        """Returns the OSDs with their traffic, undeleted data and residuals, in bytes that are
        comparable among OSDs. `moving`: the PGs that move."""
        traffic = self._traffic(look, moving)
        reports = {stats["osd"]: stats for stats in look.reading.osd_stats}
        found: Dict[int, Osd] = {}
        stale = look.reading.stale_osds
        for osd, one in piecewise(look.osds.items(), _OSDS_A_PIECE):
            own = traffic.get(osd, _NO_TRAFFIC)
            beside = _UNKNOWN
            # an OSD that is down deletes nothing, and comes back with all its data
            if one.up and osd in self._osds and osd not in stale:
                beside = self._beside(look, one, reports[osd], own)
            found[osd] = self._with_traffic(one, own, beside)
        self._osds = {}   # megabytes that nobody needs while plans are made
        return found

    def _traffic(self, look: Look, moving: Collection[Pg]) -> Mapping[int, _Traffic]:
        """Returns OSD id → the shards that move to or from it."""
        traffic: DefaultDict[int, _Traffic] = defaultdict(_Traffic)
        for pg in piecewise(moving, _PGS_A_PIECE):
            pool = look.pools[pg.pool]
            gains, losses = transfers(pg, pool.erasure)
            for osd in gains:
                one = traffic[osd]
                uncopied = pg.uncopied.get(osd, pg.uncopied_ratio)
                one.inbound += int(pool.bytes_on(pg.shard_bytes, osd, pg.up) * uncopied)
                one.to_come += uncopied * self._taken_by_shard(look, pg, osd, pg.up)
            for osd in losses:
                one = traffic[osd]
                one.outbound += pool.bytes_on(pg.shard_bytes, osd, pg.holders)
                one.to_come -= self._taken_by_shard(look, pg, osd, pg.holders)
                if osd not in pg.acting:
                    one.leaving[pg.pgid] = self._omap_bytes(look, pg.pgid)
        return traffic

    def _taken_by_shard(self, look: Look, pg: Pg, osd: int, osds: Sequence[int]) -> float:
        """Returns the bytes that the data of a shard takes on the device of an OSD; 0 without
        statistics. `osds`: those of the PG by position."""
        if osd not in self._osds:
            return 0.0
        return self._taken(osd, {pg.pool: self._data(look, pg.pgid, osds.index(osd))})

    def _beside(self, look: Look, one: Osd, report: Mapping[str, Any],
                traffic: _Traffic) -> _Beside:
        """Returns what an OSD stores in addition to its shards, by its last report."""
        osd = one.id
        sums = self._osds[osd]
        left = self._taken(osd, sums.undeleted)   # if all of it is there
        data, omap, stored = _data_and_omap(report, one.used_bytes)
        whole = self._taken(osd, sums.whole)
        high = data - whole
        low = high - self._taken(osd, sums.may) - left
        residual = min(max(self._residual.get(osd, 0.0), low), high)
        self._residual[osd] = residual
        undeleted = beyond = 0
        if traffic is not _NO_TRAFFIC or not sums.is_at_rest:
            # reported and to come, less its future shards
            beyond = int(data + traffic.to_come
                         - whole - self._taken(osd, sums.change) - residual)
            undeleted = max(0, min(beyond, int(left)))
        uncompacted = self._uncompacted(look, osd, omap - sums.omap, traffic.leaving)
        return _Beside(undeleted, beyond, uncompacted, residual, low,
                       min(residual, max(0, data - (stored or data))))

    def _with_traffic(self, one: Osd, traffic: _Traffic, beside: _Beside) -> Osd:
        """Returns an OSD with its traffic, in bytes that are comparable among OSDs."""
        factor = self.size_factors.get(one.id, 1.0)

        def comparable(count: float) -> int:
            return int(count / factor)

        undeleted = beside.undeleted
        come = traffic.inbound + comparable(undeleted - beside.beyond)
        found = one._replace(
            inbound_bytes=max(0, come), outbound_bytes=traffic.outbound,
            undeleted_bytes=comparable(undeleted) + max(0, -come),
            uncompacted_bytes=comparable(beside.uncompacted),
            residual_bytes=comparable(beside.residual),
            least_residual_bytes=comparable(beside.least_residual),
            padding_bytes=comparable(beside.padding))
        if one.id not in self.size_factors:
            return found
        size = one.size_bytes
        used = one.used_bytes
        return found._replace(
            size_factor=factor, device=(size, used),
            size_bytes=comparable(size), used_bytes=comparable(used))

    def _uncompacted(self, look: Look, osd: int, excess: int, leaving: Mapping[str, int]) -> int:
        """Returns the bytes of omap that has left an OSD and is not freed yet.

        `excess`: bytes that it reports in addition to its shards, those of `leaving` PGs included.

        RocksDB frees them when it has compacted: after minutes on a busy OSD, and never on an idle
        one (16.2.15 and 20.2.4).
        """
        held = self._omap_left.pop(osd, [])
        rows = [pgid for pgid in held if pgid not in leaving]
        sizes = [self._omap_bytes(look, pgid) for pgid in rows]
        left = sum(sizes)
        excess = excess - sum(leaving.values())
        while rows and (not sizes[0] or excess < left - _FREED_RATIO * sizes[0]):
            left -= sizes.pop(0)
            rows.pop(0)
        rows += [pgid for pgid in held if pgid in leaving]
        if rows:
            self._omap_left[osd] = rows
        return max(0, min(left, excess))

    def _omap_bytes(self, look: Look, pgid: str) -> int:
        """Returns the bytes of omap of a PG, the mean of its pool if it reports none, 0 if the PG
        is gone.

        The smaller of two figures counts: what clients have written since the deep scrub went only
        to the present OSDs.
        """
        if pgid not in look.reading.up or pool_of(pgid) not in look.pools:
            return 0
        record = look.record(pgid)
        omap = self.input_of(look.pools[pool_of(pgid)], record, ())[0].omap_bytes
        return min(record.omap_bytes or omap, omap)


def _trim(rows: Dict[int, List[_T]], osds: Collection[int]) -> None:
    """Keeps only the last _MOST_LEFT rows of each OSD, and forgets OSDs that are gone."""
    for osd in list(rows):
        del rows[osd][:-_MOST_LEFT]
        if osd not in osds:
            del rows[osd]


def _is_recent(now: float, then: float, seconds: float = _REPORTED_SECONDS) -> bool:
    """Returns True if `then` is less than so many seconds ago, and not in the future."""
    return 0.0 <= now - then < seconds


def _may_be_partial(look: Look, pgid: str, came: Tuple[float, int]) -> bool:
    """Returns True while an OSD may not have reported a shard that has come, or while the PG has
    not reported since. An idle PG often has nothing to report."""
    then, epoch = came
    is_older_report = 0 < look.record(pgid).reported_epoch < epoch   # 0: unknown
    seconds = _REPORTED_SECONDS
    if is_older_report:
        seconds = _LATEST_SECONDS
    return _is_recent(look.reading.taken_at, then, seconds)


def _known_pools(telling: Iterable[_OsdSums]) -> Set[int]:
    """Returns the pools with data on an OSD all of whose PGs are known."""
    known: Set[int] = set()
    for sums in piecewise(telling, _OSDS_A_PIECE):
        if not sums.unseen:
            known.update([pool for pool, part in sums.whole.items() if part])
    return known


def _add_untold(pools: DefaultDict[int, _PoolData], rows: Iterable[PoolStatfs],
                telling: Mapping[int, _OsdSums], known: AbstractSet[int]) -> None:
    """Adds what OSDs report of pools whose data `_data_by_pool` has not counted there."""
    for pool, osd, allocated, stored in piecewise(rows, _ROWS_A_PIECE):
        sums = telling.get(osd)
        if sums is not None and not (sums.unseen and pool in known):
            # the mgr keeps the row after the last shard of the pool has left the OSD
            if sums.has_data_of(pool):
                continue
        untold = pools[pool]
        untold.allocated += allocated
        untold.stored += stored


def _data_and_omap(stats: Mapping[str, Any], used: int) -> Tuple[int, int, int]:
    """Returns (bytes of data, bytes of omap, stored bytes or 0) that an OSD reports, without
    RocksDB's other files.

    If its drive compresses, all used bytes except omap count as data.
    """
    statfs = stats.get("statfs") or {}
    omap = max(0, statfs.get("omap_allocated", 0))
    data = int(statfs.get("allocated", -1))
    most = used - omap
    if not 0 <= data <= most:
        data = most
    return data, omap, statfs.get("data_stored", 0)


def _covariance(xs: Sequence[int], ys: Sequence[int]) -> int:
    """Returns the covariance of pairs, times the square of their number."""
    products: Iterable[int] = map(mul, xs, ys)
    return len(xs) * sum(products) - sum(xs) * sum(ys)


def cost_per_object(objects: Sequence[int], beside: Sequence[int]) -> float:
    """Returns the slope of overhead over objects (least squares). The more of it noise can explain,
    the lower it is, down to 0.

    It is at most the mean cost. Sums are whole numbers, so the order of OSDs does not matter.
    """
    count = len(objects)
    sum_x = sum(objects)
    sum_y = sum(beside)
    spread_x = _covariance(objects, objects)
    both = _covariance(objects, beside)
    if sum_x <= 0 or sum_y <= 0 or spread_x <= 0:
        return 0.0
    cost: float = min(max(0.0, both / spread_x), sum_y / sum_x)
    explained = cost * (max(objects) - min(objects))
    if explained >= 2.0 * _NOISE_BYTES:
        return cost
    # how clear the slope is, from 0 to 1: by its standard error (Student's t)
    clearness = 1.0
    unexplained = spread_x * _covariance(beside, beside) - both * both
    if count >= 3 and unexplained > 0:
        errors = sqrt(both * both * (count - 2) / unexplained)
        clearness = min(1.0, max(0.0, 2.0 * errors / _CLEAR_ERRORS - 1.0))
    return cost * max(0.0, explained / _NOISE_BYTES - 1.0, clearness)

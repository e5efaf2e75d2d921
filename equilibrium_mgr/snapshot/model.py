"""The values of a snapshot, and the reading that it is built from.

Sizes are in bytes, utilizations and full ratios are ratios of a size, not percentages. A reading
has dictionaries as Ceph returns them.
"""
from __future__ import annotations

from collections import defaultdict
from math import inf
from typing import Any, Dict, FrozenSet, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..crush.hierarchy import CrushHierarchy
from ..crush.placement import NO_OSD, PlacementBlock, PlacementRule
from .immovable_reasons import Immovable
from .pg_states import UNKNOWN

UpmapItems = Tuple[Tuple[int, int], ...]
SizedShards = Sequence[Tuple[int, int]]   # (OSD id, bytes of the shard that it gains or loses)

#: The name of OSDs without a device class in tables and JSON.
NO_CLASS = "none"


def pool_of(pgid: str) -> int:
    """Returns the pool's id in a PG id such as `3.1f`."""
    return int(pgid.split(".", 1)[0])


def pg_number(pgid: str) -> int:
    """Returns the PG's number within its pool (Ceph's placement seed): `1f` of `3.1f`."""
    return int(pgid.split(".", 1)[1], 16)


class Osd(NamedTuple):
    """One OSD. Its device reports `size_bytes` and `used_bytes`; they are 0 if `has_statistics` is
    False.

    Its bytes, except `device`, are divided by its `size_factor`. If a shard takes twice its usual
    space there, the OSD stores as many shards as a usual OSD of half the size. `device_bytes`
    reverses that for people.
    """

    id: int
    device_class: str
    host: str
    up: bool
    is_in: bool
    destroyed: bool
    reweight: float
    size_bytes: int
    used_bytes: int
    has_statistics: bool
    inbound_bytes: int = 0   # still to be copied to it, by backfill or recovery
    outbound_bytes: int = 0  # freed when shards in flight have left it
    share: float = 1.0   # ratio of its size that the operator's weights leave it
    held_by: str = ""    # the weights that do so, if the share is below 1
    base_bytes: int = 0  # of an OSD with a lowered weight: used bytes that are no shards
    uncompacted_bytes: int = 0   # omap that has left it and is free once RocksDB has compacted
    undeleted_bytes: int = 0     # data that has left it and is still being deleted
    residual_bytes: int = 0      # data in addition to its shards, as estimated
    least_residual_bytes: int = 0   # its lower bound, if all shards are there that may be there
    drained: bool = False   # an operator wants all shards off it (`drain add`)
    size_factor: float = 1.0     # bytes of shards, as a ratio of their usual bytes
    device: Tuple[int, int] = (0, 0)   # its size and used bytes if size_factor is not 1
    uuid: str = ""                     # of its disk; a replaced one has another
    pg_shards: int = 0   # that it reports, those that come or that it still deletes included
    padding_bytes: int = 0   # of residual_bytes: allocated in addition to the stored data
    fixed_bytes: int = 0   # that its size and used bytes leave out (plan/fixed_bytes.py)

    def device_bytes(self, count: int) -> int:
        """Returns the bytes on its device for bytes that are comparable among OSDs."""
        if self.size_factor == 1.0:
            return count
        return int(count * self.size_factor)

    @property
    def device_size(self) -> int:
        """Returns the size of its device in bytes."""
        return self.device[0] or self.size_bytes

    @property
    def capacity_bytes(self) -> int:
        """Returns the bytes of its size that its weights leave it."""
        if self.share >= 1.0:
            return self.size_bytes
        return max(1, int(self.share * self.size_bytes))

    @property
    def spared_bytes(self) -> int:
        """Returns used bytes that the share of an OSD with a lowered weight does not count, because
        they cannot become fewer."""
        return int((1.0 - self.share) * self.base_bytes)

    @property
    def target_bytes(self) -> int:
        """Returns the used bytes once all shards in flight have arrived and old ones are gone."""
        return max(0, self.used_bytes + self.inbound_bytes - self.outbound_bytes
                   - self.leftover_bytes)

    @property
    def leftover_bytes(self) -> int:
        """Returns used bytes of shards that have left it: they become free without another move."""
        return self.uncompacted_bytes + self.undeleted_bytes

    @property
    def utilization(self) -> Optional[float]:
        """Returns the used bytes as a ratio of the size; None without statistics."""
        if not self.has_statistics:
            return None
        return self.used_bytes / self.size_bytes

    @property
    def target_utilization(self) -> Optional[float]:
        """Returns `target_bytes` as a ratio of the size; None without statistics."""
        if not self.has_statistics:
            return None
        return self.target_bytes / self.size_bytes

    def exceeds(self, ratio: float, more_bytes: int = 0) -> bool:
        """Returns True if the used bytes and `more_bytes` are above a full ratio.

        It is Ceph's own comparison (OSDService::recalc_full_state). False without statistics.
        """
        return self.has_statistics and self.used_bytes + more_bytes > ratio * self.size_bytes

    def reaches(self, ratio: float, more_bytes: int = 0) -> bool:
        """Returns True if `exceeds` does, and at the ratio itself: the safe side for an OSD that
        gets data, or that may be emptied."""
        return self.has_statistics and self.used_bytes + more_bytes >= ratio * self.size_bytes

    @property
    def is_for_data(self) -> bool:
        """Returns True if predicted figures include it: it is in, and nobody drains it."""
        return self.is_in and not self.drained

    def unusable_reason(self) -> Optional[str]:
        """Returns why no shard may be moved to this OSD, or None."""
        if self.destroyed:
            return "destroyed"
        if self.drained:
            return "being drained"
        if not self.up:
            return "down"
        if not self.is_in or self.reweight <= 0.0:
            return "out"
        if self.has_statistics and self.size_bytes > 0:
            return None
        return "without statistics"


def without_shares(snapshot: Snapshot) -> Snapshot:
    """Returns the cluster as if no weight was lowered: only the sizes of OSDs count."""
    if all(osd.share >= 1.0 for osd in snapshot.osds.values()):
        return snapshot
    return snapshot._replace(osds={number: osd._replace(share=1.0, held_by="", base_bytes=0)
                                   for number, osd in snapshot.osds.items()})


class Pool(NamedTuple):
    """One pool."""

    id: int
    name: str
    size: int                  # shards per PG
    data_shards: int           # k of an erasure-coded pool, 1 of a replicated one
    erasure: bool
    rule_id: int
    pg_num: int
    stored_bytes: int          # logical bytes of its objects
    rule: Optional[PlacementRule]   # None if the rule is not understood or does not exist
    immovable: Optional[Immovable]   # why none of its PGs may move, or None
    is_optimized: bool = False   # allow_ec_optimizations: shards may differ in size by position
    #: bytes of the shard at each position ÷ the mean of all; empty if they are alike
    position_ratios: Tuple[float, ...] = ()
    #: OSD id → bytes of its shards there, as a ratio of the OSD's size_factor
    osd_ratios: Mapping[int, float] = {}
    min_size: int = 1   # shards without which a PG serves no client
    is_grouped: bool = False   # a code such as lrc: neighboring chunks have a bucket of their own
    #: number of a PG → why a step of pg_num or pgp_num will change it; empty without steps
    touched: Mapping[int, Immovable] = {}
    stepped_at: float = inf   # first reading with these pg_nums, seconds since the epoch

    @property
    def shape(self) -> Tuple[Any, ...]:
        """Returns the values that decide which placements are legal.

        Leaves pg_num out while it changes step by step: `touched` shows the affected PGs then.
        """
        return 0 if self.touched else self.pg_num, self.size, self.rule_id, self.immovable

    @property
    def chunks(self) -> int:
        """Returns the number of PGs times data shards, among which the bytes of clients are
        divided."""
        return self.pg_num * self.data_shards

    @property
    def blocks(self) -> Sequence[PlacementBlock]:
        """Returns the blocks of its rule; none if `rule` is None."""
        if self.rule is None:
            return ()
        return self.rule.blocks

    @property
    def is_uniform(self) -> bool:
        """Returns True if all shards of a PG have the same size."""
        return not self.position_ratios and not self.osd_ratios

    def bytes_on(self, shard_bytes: int, osd: int, osds: Sequence[int]) -> int:
        """Returns the bytes of a PG's shard on one of its present or future OSDs.

        Only the planner computes them in another way (`size_ratio` of a group). `shard_bytes`: of
        the PG's mean shard; `osds`: by position.
        """
        if not self.position_ratios and not self.osd_ratios:
            return shard_bytes
        return int(shard_bytes * self.ratio_on(osd, osds))

    def uneven_bytes(self, shard_bytes: int, before: Sequence[int],
                     after: Sequence[int]) -> Tuple[Tuple[int, int], ...]:
        """Returns the OSDs that gain or lose a shard of a PG, with its bytes; empty if all shards
        are alike."""
        if self.is_uniform:
            return ()
        gains = [(osd, self.bytes_on(shard_bytes, osd, after)) for osd in after
                 if osd not in before]
        losses = [(osd, self.bytes_on(shard_bytes, osd, before)) for osd in before
                  if osd not in after]
        return tuple(gains + losses)

    def ratio_on(self, osd: int, osds: Sequence[int]) -> float:
        """Returns the bytes of a PG's shard on an OSD as a ratio of those of the PG's mean shard.
        `osds`: the PG's OSDs, by position."""
        ratio = self.osd_ratios.get(osd, 1.0)
        if self.position_ratios and osd in osds:
            ratio *= self.position_ratios[osds.index(osd)]
        return ratio


class PoolRates(NamedTuple):
    """What clients ask of a pool in a second, on average of days."""

    reads: float
    writes: float
    read_bytes: float
    written_bytes: float


class PoolLoad(NamedTuple):
    """What clients ask of one mean PG of a pool: the part of its time that a device of typical
    speed spends on it (ratio)."""

    reading: float   # of each OSD that serves reads (plan/load.py)
    writing: float   # of each OSD of the PG
    reads: float = 0.0    # of the whole pool, operations a second
    writes: float = 0.0   # likewise

    @property
    def operations(self) -> float:
        """Returns the reads and writes of the whole pool in a second."""
        return self.reads + self.writes


class Pg(NamedTuple):
    """One placement group. Its shards belong on the OSDs of `up`; those of `acting` serve them."""

    pgid: str
    pool: int
    raw: Tuple[int, ...]       # what CRUSH gives without upmap items
    up: Tuple[int, ...]
    acting: Tuple[int, ...]
    shard_bytes: int           # of its mean shard on a usual OSD
    objects: int
    uncopied_ratio: float             # ratio of its moving shards' bytes still to be copied
    state: str                 # Ceph's own, as in `active+clean`
    reported_epoch: int        # osdmap epoch that the state was reported at
    immovable: Optional[Immovable]   # why it must not be moved, or None
    holders: Tuple[int, ...]      # OSDs that hold its shards now; `up` if nothing moves
    doubtful_holders: bool = False   # only the holders that serve it are certain
    uncopied: Mapping[int, float] = {}   # OSD → the ratio of its shard, if known

    @property
    def is_moving(self) -> bool:
        """Returns True while shards are in flight, whether by backfill or by log recovery."""
        return self.holders is not self.up and self.holders != self.up


class SnapshotPgs(Dict[str, Pg]):
    """Has the PGs by pgid; `moving` has those that move."""

    moving: Mapping[str, Pg] = {}


class PgStateCounts(NamedTuple):
    """The numbers of a pool's PGs that prevent moves of others."""

    inactive: int
    degraded: int
    unreported: int = 0   # inactive PGs that nobody has reported to this mgr


class Snapshot(NamedTuple):
    """The cluster at one osdmap epoch."""

    epoch: int
    taken_at: float                       # seconds since the epoch
    flags: Tuple[str, ...]
    full_ratio: float
    backfillfull_ratio: float
    nearfull_ratio: float
    min_compat_client: str
    crush: CrushHierarchy
    crush_version: int
    osds: Dict[int, Osd]
    pools: Dict[int, Pool]
    pgs: Mapping[str, Pg]
    upmap_items: Dict[str, UpmapItems]
    pool_states: Dict[int, PgStateCounts]
    object_copies: int                    # the divisor of Ceph's misplaced ratio
    misplaced_copies: int                 # by pg_status, and of PGs in flight without a report
    skipped: Mapping[Immovable, int]      # reason → PGs that cannot be moved because of it
    stale_osds: FrozenSet[int] = frozenset()   # up and in, but with stale statistics
    #: seconds until PGs that were just remapped have shown whether they have to move
    unsettled_seconds: float = 0.0
    primaries: Mapping[str, int] = {}     # pgid → OSD, of PGs that have a pg-upmap-primary
    osd_release: str = ""                 # require_osd_release; empty if it is not known
    #: OSD, device class or CRUSH bucket → flags of its own (`ceph osd set-group`)
    group_flags: Mapping[str, FrozenSet[str]] = {}
    #: pool id → its load, of pools that have one; empty if it is not known yet
    loads: Mapping[int, PoolLoad] = {}
    #: OSD id → operations that its device can do, a ratio of the median of its class; 1 if absent
    speeds: Mapping[int, float] = {}
    #: OSD id → name of its set (snapshot/osds.py), if that is not its device class
    set_names: Mapping[int, str] = {}

    def set_of(self, osd: int) -> str:
        """Returns the name of an OSD's set: the OSDs on any of which the same bytes can be."""
        return self.set_names.get(osd) or self.osds[osd].device_class

    @property
    def drained_osds(self) -> FrozenSet[int]:
        """Returns the ids of the OSDs that are being drained."""
        return frozenset([number for number, osd in self.osds.items() if osd.drained])

    def is_out(self, osd: int) -> bool:
        """Returns True if CRUSH may not choose an OSD: it is gone, or its reweight is 0."""
        found = self.osds.get(osd)
        return found is None or not found.is_in or found.reweight <= 0.0

    def in_flight(self) -> Mapping[str, Pg]:
        """Returns the PGs whose data is not on the OSDs of `up` yet, by pgid."""
        if isinstance(self.pgs, SnapshotPgs):
            return self.pgs.moving
        return {pgid: pg for pgid, pg in self.pgs.items() if pg.is_moving}

    def shard_bytes(self, pg: Pg, osd: int, osds: Sequence[int]) -> int:
        """Returns the bytes of a PG's shard on one of its present or future OSDs. `osds`: these by
        position."""
        return self.pools[pg.pool].bytes_on(pg.shard_bytes, osd, osds)

    def max_utilization_by_class(self) -> Dict[str, float]:
        """Returns device class → the highest utilization that OSDs report, a ratio."""
        highest: Dict[str, float] = defaultdict(float)
        for osd in self.osds.values():
            name = osd.device_class
            highest[name] = max(highest[name], osd.utilization or 0.0)
        return highest

    def items_of(self, pgid: str) -> UpmapItems:
        """Returns the upmap items of a PG, or ()."""
        return self.upmap_items.get(pgid, ())

    @property
    def alive(self) -> FrozenSet[int]:
        """Returns the OSDs that are up and in."""
        return frozenset([number for number, osd in self.osds.items() if osd.up and osd.is_in])

    def transfers(self, pg: Pg) -> Tuple[Tuple[int, ...], Tuple[int, ...]]:
        """Returns (OSDs that gain a shard in flight, OSDs that lose it) of a PG."""
        return transfers(pg, self.is_positional(pg))

    def is_positional(self, pg: Pg) -> bool:
        """Returns True if each shard of the PG has its own data: its pool is erasure-coded."""
        return self.pools[pg.pool].erasure

    def changed_shards(self, pg: Pg, after: Tuple[int, ...]
                       ) -> Tuple[Tuple[int, ...], Tuple[int, ...]]:
        """Returns the `shard_changes` from the PG's up set to another."""
        return shard_changes(pg.up, after, self.is_positional(pg))

    def sized_transfers(self, pg: Pg) -> Tuple[SizedShards, SizedShards]:
        """Returns the `transfers` of a PG with the bytes of each shard."""
        gains, losses = self.transfers(pg)
        gained = tuple([(osd, self.shard_bytes(pg, osd, pg.up)) for osd in gains])
        return gained, tuple([(osd, self.shard_bytes(pg, osd, pg.holders)) for osd in losses])


def transfers(pg: Pg, positional: bool) -> Tuple[Tuple[int, ...], Tuple[int, ...]]:
    """Returns (OSDs that gain a shard, OSDs that lose one) until the PG is on the OSDs of `up`."""
    if not pg.is_moving:
        return (), ()
    gains, losses = shard_changes(pg.holders, pg.up, positional)
    return (tuple([osd for osd in gains if osd != NO_OSD]),
            tuple([osd for osd in losses if osd != NO_OSD]))


def is_same_placement(one: Tuple[int, ...], other: Tuple[int, ...], positional: bool) -> bool:
    """Returns True if no shard differs: the same OSDs, and in erasure-coded pools in the same
    order. In replicated pools the order only sets the primary."""
    if one == other or positional or len(one) != len(other):
        return one == other
    return set(one) == set(other)


def shard_changes(before: Sequence[int], after: Sequence[int],
                  positional: bool) -> Tuple[Tuple[int, ...], Tuple[int, ...]]:
    """Returns (OSDs that gain a shard, OSDs that lose one) between two sets of one PG, in pairs.

    Positions count in erasure-coded pools, because each shard has its own data.
    """
    if positional:
        changed = [(a, b) for a, b in zip(before, after) if a != b]
        return tuple([new for _, new in changed]), tuple([old for old, _ in changed])
    gains = [osd for osd in after if osd not in before]
    return tuple(gains), tuple([osd for osd in before if osd not in after])


class PgRecord(NamedTuple):
    """The statistics of one PG that placement depends on."""

    num_bytes: int     # logical bytes of its objects
    num_objects: int
    omap_bytes: int
    state: str         # as in `active+clean`; empty if unknown
    uncopied_ratio: float   # of its moving shards' bytes, still to be copied; 1.0 if unknown
    reported_epoch: int  # osdmap epoch of the report; 0 if unknown
    omap_objects: int = -1   # objects that have omap; -1 if unknown
    uncopied: Mapping[int, float] = {}   # OSD → the ratio of its shard, if known

    @property
    def is_unknown(self) -> bool:
        """Returns True while no OSD has reported the PG: its figures mean nothing then."""
        return self.reported_epoch <= 0 or not self.state or UNKNOWN in self.state


#: (pool id, OSD id, bytes allocated, bytes stored) of a pool's data on an OSD. No NamedTuple,
#: because there are as many as pools times OSDs.
PoolStatfs = Tuple[int, int, int, int]


class Reading(NamedTuple):
    """One consistent reading: maps and up sets are of the same osdmap epoch."""

    taken_at: float                        # seconds since the epoch
    osd_map: Mapping[str, Any]             # OSDMap.dump()
    crush: Mapping[str, Any]               # CRUSHMap.dump()
    up: Mapping[str, Sequence[int]]        # pgid → up set
    records: Mapping[str, PgRecord]        # pgid → statistics
    osd_stats: Sequence[Mapping[str, Any]]   # get('osd_stats')['osd_stats']
    pool_stats: Sequence[Mapping[str, Any]]  # get('pool_stats')['pool_stats']
    pg_status: Mapping[str, Any]           # get('pg_status')
    stale_osds: FrozenSet[int] = frozenset()   # they have stopped reporting
    acting: Mapping[str, Sequence[int]] = {}   # pgid → acting set if it differs from the up set
    #: pool id → bytes per object that OSDs used above the prediction (execution/size_check)
    measured: Mapping[int, float] = {}
    respect_weights: bool = True           # lowered weights limit OSDs to a share of their size
    #: PGs with much omap on smaller OSDs are immovable: RocksDB's own files outweigh the gain
    min_omap_osd_bytes: int = 0
    drained: FrozenSet[int] = frozenset()   # OSDs that an operator wants emptied
    #: PGs that the last mgr moved within the hour before this one took over, with their items
    #: before that; empty an hour later
    sent: Mapping[str, UpmapItems] = {}
    changed_at: Optional[float] = None     # of the osdmap's epoch, seconds since the epoch
    pool_statfs: Sequence[PoolStatfs] = ()   # get('osd_stats')['pool_statfs']
    rates: Mapping[int, PoolRates] = {}      # pool id → its rates, if known
    capacities: Mapping[int, float] = {}     # OSD id → operations a second, if known


#: The record of a PG that the mgr's statistics do not have.
NO_RECORD = PgRecord(0, 0, 0, "", 1.0, 0)


class PlacementRules(NamedTuple):
    """Beside up sets and upmap items, all that the check of the PGs' placements depends on.

    The builder checks all PGs again after one of the rare changes of these.
    """

    crush: CrushHierarchy   # the very object: another version is another one
    pools: Tuple[Tuple[int, int, int, bool], ...]
    in_osds: FrozenSet[int]   # CRUSH may choose these


class Look(NamedTuple):
    """A reading, and values derived from it."""

    reading: Reading
    pgids: Sequence[str]                  # of PGs whose pool is known
    pools: Mapping[int, Pool]
    osds: Mapping[int, Osd]
    items: Mapping[str, UpmapItems]
    pinned: Mapping[str, Immovable]       # pgid → who else has placed it
    placement: PlacementRules
    with_statistics: FrozenSet[int]

    def record(self, pgid: str) -> PgRecord:
        """Returns the statistics of a PG, or NO_RECORD."""
        return self.reading.records.get(pgid, NO_RECORD)

    def is_out(self, osd: int) -> bool:
        """Returns True if CRUSH may not choose an OSD."""
        return osd not in self.placement.in_osds

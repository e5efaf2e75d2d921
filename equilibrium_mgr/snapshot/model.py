"""The values a snapshot consists of. Bytes are bytes, ratios run from 0 to 1.

What one round reads from the mgr: dictionaries as Ceph returns them, not yet interpreted.
"""
from __future__ import annotations

from math import inf
from typing import Any, Dict, FrozenSet, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..crush.hierarchy import CrushHierarchy
from ..crush.placement import NO_OSD, PlacementBlock, PlacementRule
from .immovable_reasons import Immovable
from .pg_states import UNKNOWN

UpmapItems = Tuple[Tuple[int, int], ...]
SizedShards = Tuple[Tuple[int, int], ...]   # (OSD id, bytes of the shard that it gains or loses)

#: How OSDs without a device class are called in tables and JSON.
NO_CLASS = "none"


def pool_of(pgid: str) -> int:
    """The pool's id in a PG id such as `3.1f`."""
    return int(pgid.split(".", 1)[0])


def pg_number(pgid: str) -> int:
    """The PG's number within its pool (Ceph's placement seed) in a PG id such as `3.1f`."""
    return int(pgid.split(".", 1)[1], 16)


class Osd(NamedTuple):
    """One OSD. `size_bytes` and `used_bytes` are what its device reports now, 0 where
    `has_statistics` is False.

    All its bytes are divided by its `size_factor`: where a shard takes twice what it takes on usual
    OSDs, an OSD has room for as many as a usual one of half the size. `device_bytes` turns them
    back for people.
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
    inbound_bytes: int   # still to be copied to it, by backfills that run or wait
    outbound_bytes: int  # freed when those backfills have ended
    share: float = 1.0   # ratio of its size that the operator's weights leave it
    held_by: str = ""    # the weights that do so, where the share is below 1
    base_bytes: int = 0  # of a held OSD: what it uses beside shards
    uncompacted_bytes: int = 0   # omap that has left it and is free once RocksDB has compacted
    undeleted_bytes: int = 0     # data that has left it and is still being deleted
    residual_bytes: int = 0      # data beyond what its shards take, as believed
    least_residual_bytes: int = 0   # the least that it can be: all that may be there counted
    drained: bool = False   # an operator wants all shards off it (`drain add`)
    size_factor: float = 1.0     # bytes that shards take, as a ratio of what they take elsewhere
    device: Tuple[int, int] = (0, 0)   # its size and used bytes themselves, where that is not 1
    uuid: str = ""                     # of its disk; a replaced one has another
    pg_shards: int = 0   # that it reports: also of PGs that come, and that it still deletes
    padding_bytes: int = 0   # of residual_bytes: what is allocated for data that shards store
    fixed_bytes: int = 0   # that its size and used bytes leave out (plan/fixed_bytes.py)

    def device_bytes(self, count: int) -> int:
        """Bytes on its device, of bytes that are comparable among OSDs."""
        return count if self.size_factor == 1.0 else int(count * self.size_factor)

    @property
    def device_size(self) -> int:
        """Size of its device in bytes."""
        return self.device[0] or self.size_bytes

    @property
    def capacity_bytes(self) -> int:
        """The part of its size that is to be filled like other OSDs, in bytes."""
        return self.size_bytes if self.share >= 1.0 else max(1, int(self.share * self.size_bytes))

    @property
    def spared_bytes(self) -> int:
        """Used bytes of a held OSD that its share does not count: they cannot become less."""
        return int((1.0 - self.share) * self.base_bytes) if self.base_bytes else 0

    @property
    def target_bytes(self) -> int:
        """Used bytes once everything in flight has arrived, and what has left is gone."""
        return max(0, self.used_bytes + self.inbound_bytes - self.outbound_bytes
                   - self.leftover_bytes)

    @property
    def leftover_bytes(self) -> int:
        """Used bytes of what has left it: they become free without another move."""
        return self.uncompacted_bytes + self.undeleted_bytes

    @property
    def utilization(self) -> Optional[float]:
        """Used bytes now, as a ratio of the size; None without statistics."""
        return self.used_bytes / self.size_bytes if self.has_statistics else None

    @property
    def target_utilization(self) -> Optional[float]:
        """`target_bytes` as a ratio of the size; None without statistics."""
        return self.target_bytes / self.size_bytes if self.has_statistics else None

    def exceeds(self, ratio: float, more_bytes: int = 0) -> bool:
        """True where used bytes, as reported now, and so many more are above a full ratio: Ceph's
        own comparison (OSDService::recalc_full_state). False without statistics."""
        return self.has_statistics and self.used_bytes + more_bytes > ratio * self.size_bytes

    def reaches(self, ratio: float, more_bytes: int = 0) -> bool:
        """As `exceeds`, and True at the ratio itself: the cautious side for an OSD that is to get
        more, or that may be emptied."""
        return self.has_statistics and self.used_bytes + more_bytes >= ratio * self.size_bytes

    @property
    def is_for_data(self) -> bool:
        """True where figures of what is to be count it: it is in, and not being drained."""
        return self.is_in and not self.drained

    def unusable_reason(self) -> Optional[str]:
        """Returns why no shard may be moved to this OSD; None where one may."""
        if self.destroyed:
            return "destroyed"
        if self.drained:
            return "being drained"
        if not self.up:
            return "down"
        if not self.is_in or self.reweight <= 0.0:
            return "out"
        return "without statistics" if not self.has_statistics or self.size_bytes <= 0 else None


def without_shares(snapshot: Snapshot) -> Snapshot:
    """The same cluster with OSDs that are held to no share: their sizes alone count."""
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
    rule: Optional[PlacementRule]   # None where the rule is not understood
    immovable: Optional[Immovable]   # why none of its PGs may move
    is_optimized: bool = False   # allow_ec_optimizations: shards differ in size by position
    #: bytes of the shard at each position ÷ the mean of all; empty where they are alike
    position_ratios: Tuple[float, ...] = ()
    #: OSD id → bytes of its shards there, as a ratio of what the OSD's size_factor says
    osd_ratios: Mapping[int, float] = {}
    min_size: int = 1   # shards without which a PG serves no client
    positional: bool = False   # erasure-coded: neighboring positions have a bucket of their own
    #: number of a PG → what a step of pg_num or pgp_num will do to it; empty where none changes
    touched: Mapping[int, Immovable] = {}
    stepped_at: float = inf   # seconds since the epoch: since when no step of these is seen

    @property
    def shape(self) -> Tuple[Any, ...]:
        """What the legality of placements depends on. That pg_num changes step by step is known:
        what a step touches is asked of each PG."""
        return 0 if self.touched else self.pg_num, self.size, self.rule_id, self.immovable

    @property
    def blocks(self) -> Sequence[PlacementBlock]:
        """What its rule takes; nothing where the rule is not understood."""
        return self.rule.blocks if self.rule is not None else ()

    @property
    def is_uniform(self) -> bool:
        """True where all shards of a PG have the same size."""
        return not self.position_ratios and not self.osd_ratios

    def bytes_on(self, shard_bytes: int, osd: int, osds: Sequence[int]) -> int:
        """Bytes of the shard that a PG has, or is to have, on one of its OSDs: nothing else tells
        them. `shard_bytes`: of its mean shard; `osds`: by position."""
        if not self.position_ratios and not self.osd_ratios:
            return shard_bytes
        return int(shard_bytes * self.ratio_on(osd, osds))

    def uneven_bytes(self, shard_bytes: int, before: Sequence[int],
                     after: Sequence[int]) -> SizedShards:
        """OSDs that gain or lose a shard of a PG, with its bytes; empty where all are alike."""
        if self.is_uniform:
            return ()
        return tuple([(osd, self.bytes_on(shard_bytes, osd, osds)) for others, osds in (
            (before, after), (after, before)) for osd in osds if osd not in others])

    def ratio_on(self, osd: int, osds: Sequence[int]) -> float:
        """Bytes of that shard as a ratio of the mean one."""
        ratio = self.osd_ratios.get(osd, 1.0)
        if self.position_ratios and osd in osds:
            ratio *= self.position_ratios[osds.index(osd)]
        return ratio


class Pg(NamedTuple):
    """One placement group; `up` is where its shards are wanted, `acting` where they are served."""

    pgid: str
    pool: int
    raw: Tuple[int, ...]
    up: Tuple[int, ...]
    acting: Tuple[int, ...]
    shard_bytes: int           # what one shard occupies on a device
    objects: int
    uncopied_ratio: float             # ratio of its moving shards' bytes still to be copied
    state: str                 # Ceph's own, as in `active+clean`
    reported_epoch: int        # osdmap epoch that the state was reported at
    immovable: Optional[Immovable]   # why it must not be moved, or None
    holders: Tuple[int, ...]      # OSDs that hold its shards now; `up` where nothing moves
    doubtful_holders: bool = False   # only those of them that serve it are certain
    uncopied: Mapping[int, float] = {}   # OSD → the ratio of its shard, where that is known

    @property
    def is_moving(self) -> bool:
        """True while shards are in flight, whether by backfill or by log recovery."""
        return self.holders is not self.up and self.holders != self.up


class SnapshotPgs(Dict[str, Pg]):
    """pgid → PG. Knows which PGs move."""

    moving: Mapping[str, Pg] = {}


class PgStateCounts(NamedTuple):
    """Numbers of PGs of a pool that keep others from being moved."""

    inactive: int
    degraded: int
    unreported: int = 0   # of the inactive, those that nobody has reported to this mgr


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
    object_copies: int                    # what Ceph's misplaced ratio divides by
    misplaced_copies: int                 # as pg_status reports them
    skipped: Mapping[Immovable, int]      # reason → PGs that cannot be moved for it
    stale_osds: FrozenSet[int] = frozenset()   # up and in, but silent for too long
    #: seconds until PGs that were remapped a moment ago have shown whether they have to move
    unsettled_seconds: float = 0.0
    primaries: Mapping[str, int] = {}     # pgid → OSD, of PGs that have a pg-upmap-primary
    osd_release: str = ""                 # require_osd_release; empty where it is not known
    #: OSD, device class or CRUSH bucket → flags of its own (`ceph osd set-group`)
    group_flags: Mapping[str, FrozenSet[str]] = {}
    #: OSD id → name of its set (snapshot/osds.py), where that is not its device class
    set_names: Mapping[int, str] = {}

    def set_of(self, osd: int) -> str:
        """The name of the set of OSDs that limit each other."""
        return self.set_names.get(osd) or self.osds[osd].device_class

    @property
    def drained_osds(self) -> FrozenSet[int]:
        """Ids of the OSDs that are being drained."""
        return frozenset(osd.id for osd in self.osds.values() if osd.drained)

    def is_out(self, osd: int) -> bool:
        """True where CRUSH may not choose an OSD: it is gone, or its reweight is 0."""
        found = self.osds.get(osd)
        return found is None or not found.is_in or found.reweight <= 0.0

    def in_flight(self) -> Mapping[str, Pg]:
        """PGs whose data is not (yet) where `up` wants it."""
        return self.pgs.moving if isinstance(self.pgs, SnapshotPgs) else {
            pgid: pg for pgid, pg in self.pgs.items() if pg.is_moving}

    def shard_bytes(self, pg: Pg, osd: int, osds: Sequence[int]) -> int:
        """Bytes of the shard that a PG has, or is to have, on an OSD; `osds`: by position."""
        return self.pools[pg.pool].bytes_on(pg.shard_bytes, osd, osds)

    def max_utilization_by_class(self) -> Dict[str, float]:
        """Device class → the highest utilization as reported now, a ratio."""
        highest: Dict[str, float] = {}
        for osd in self.osds.values():
            highest[osd.device_class] = max(highest.get(osd.device_class, 0.0),
                                            osd.utilization or 0.0)
        return highest

    def items_of(self, pgid: str) -> UpmapItems:
        """The upmap items of a PG; empty where it has none."""
        return self.upmap_items.get(pgid, ())

    @property
    def alive(self) -> FrozenSet[int]:
        """OSDs that are up and in."""
        return frozenset(osd.id for osd in self.osds.values() if osd.up and osd.is_in)

    def transfers(self, pg: Pg) -> Tuple[Tuple[int, ...], Tuple[int, ...]]:
        """(OSDs that gain a shard of the PG, OSDs that lose one) by what is in flight."""
        return transfers(pg, self.is_positional(pg))

    def is_positional(self, pg: Pg) -> bool:
        """True where each shard of the PG has its own data: its pool is erasure-coded."""
        return self.pools[pg.pool].erasure

    def changed_shards(self, pg: Pg, after: Tuple[int, ...]
                       ) -> Tuple[Tuple[int, ...], Tuple[int, ...]]:
        """As `shard_changes`, from the PG's up set to another."""
        return shard_changes(pg.up, after, self.is_positional(pg))

    def sized_transfers(self, pg: Pg) -> Tuple[SizedShards, SizedShards]:
        """The same with the bytes of each shard."""
        gains, losses = self.transfers(pg)
        return (tuple([(osd, self.shard_bytes(pg, osd, pg.up)) for osd in gains]),
                tuple([(osd, self.shard_bytes(pg, osd, pg.holders)) for osd in losses]))


def transfers(pg: Pg, positional: bool) -> Tuple[Tuple[int, ...], Tuple[int, ...]]:
    """(OSDs that gain a shard, OSDs that lose one) until all of the PG is where `up` wants it."""
    if not pg.is_moving:
        return (), ()
    gains, losses = shard_changes(pg.holders, pg.up, positional)
    return (tuple([osd for osd in gains if osd != NO_OSD]),
            tuple([osd for osd in losses if osd != NO_OSD]))


def is_same_placement(one: Tuple[int, ...], other: Tuple[int, ...], positional: bool) -> bool:
    """True for the same OSDs, in replicated pools in any order: the primary comes first."""
    return one == other or (not positional and len(one) == len(other) and set(one) == set(other))


def shard_changes(before: Tuple[int, ...], after: Tuple[int, ...],
                  positional: bool) -> Tuple[Tuple[int, ...], Tuple[int, ...]]:
    """(OSDs that gain a shard, OSDs that lose one) between two sets of one PG, pair by pair.

    Positions count in erasure-coded pools, where a shard is not its neighbor.
    """
    if positional:
        changed = [(a, b) for a, b in zip(before, after) if a != b]
        return tuple(b for _, b in changed), tuple(a for a, _ in changed)
    old, new = set(before), set(after)
    return (tuple(o for o in after if o not in old), tuple(o for o in before if o not in new))


class PgRecord(NamedTuple):
    """The statistics of one PG that placement depends on."""

    num_bytes: int     # logical bytes of its objects
    num_objects: int
    omap_bytes: int
    state: str         # as in `active+clean`; empty where unknown
    uncopied_ratio: float   # of its moving shards' bytes, still to be copied; 1.0 where unknown
    reported_epoch: int  # osdmap epoch of the report; 0 where unknown
    omap_objects: int = -1   # objects that have omap; -1 where unknown
    uncopied: Mapping[int, float] = {}   # OSD → the ratio of its shard, where that is known

    @property
    def is_unknown(self) -> bool:
        """True while no OSD has reported the PG: its figures mean nothing then."""
        return self.reported_epoch <= 0 or not self.state or UNKNOWN in self.state


#: (pool id, OSD id, bytes allocated, bytes stored) of what an OSD has of a pool. Plain, since there
#: are as many as pools times OSDs.
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
    acting: Mapping[str, Sequence[int]] = {}   # pgid → acting set where it differs from the up set
    #: pool id → bytes per object that OSDs used beyond the prediction (execution/size_check)
    measured: Mapping[int, float] = {}
    respect_weights: bool = True           # lowered weights hold OSDs to a share of their size
    #: PGs with omap on smaller OSDs are immovable: there RocksDB's own files outweigh the gain
    min_omap_osd_bytes: int = 0
    drained: FrozenSet[int] = frozenset()   # OSDs that an operator wants emptied
    #: PGs that the last mgr sent within the hour before this one took over; empty an hour later
    sent: FrozenSet[str] = frozenset()
    changed_at: Optional[float] = None     # of the osdmap's epoch, seconds since the epoch
    pool_statfs: Sequence[PoolStatfs] = ()   # get('osd_stats')['pool_statfs']


#: The record of a PG that the mgr's statistics do not have.
NO_RECORD = PgRecord(0, 0, 0, "", 1.0, 0)


class PlacementRules(NamedTuple):
    """What the check of a PG's placement depends on beside its up set and items: where it differs
    all PGs are checked again. Such changes are few."""

    crush: CrushHierarchy   # the very object: another version is another one
    pools: Tuple[Tuple[int, int, int, bool], ...]
    in_osds: FrozenSet[int]   # of which CRUSH may choose


class Look(NamedTuple):
    """A reading, and what was derived from it."""

    reading: Reading
    pgids: Sequence[str]                  # of the PGs whose pool is known
    pools: Mapping[int, Pool]
    osds: Mapping[int, Osd]
    items: Mapping[str, UpmapItems]
    pinned: Mapping[str, Immovable]       # pgid → who else has placed it
    placement: PlacementRules
    with_statistics: FrozenSet[int]

    def acting_set(self, pgid: str) -> Sequence[int]:
        """The acting set of a PG."""
        return self.reading.acting.get(pgid) or tuple(self.reading.up[pgid])

    def record(self, pgid: str) -> PgRecord:
        """The statistics of a PG, NO_RECORD where there are none."""
        return self.reading.records.get(pgid, NO_RECORD)

    def is_out(self, osd: int) -> bool:
        """True where CRUSH may not choose an OSD."""
        return osd not in self.placement.in_osds

"""What one round reads from the mgr: dictionaries as Ceph returns them, not yet interpreted."""
from __future__ import annotations

from typing import Any, FrozenSet, Mapping, NamedTuple, Optional, Sequence, Tuple


class PgRecord(NamedTuple):
    """The statistics of one PG that placement depends on."""

    num_bytes: int     # logical bytes of its objects
    num_objects: int
    omap_bytes: int
    state: str         # as in `active+clean`; empty where unknown
    uncopied_ratio: float   # of its moving shards' bytes, still to be copied; 1.0 where unknown
    reported_epoch: int  # osdmap epoch of the report; 0 where unknown
    omap_objects: int = -1   # objects that have omap; -1 where unknown

    @property
    def is_unknown(self) -> bool:
        """True while no OSD has reported the PG: its figures mean nothing then."""
        return self.reported_epoch <= 0 or not self.state or "unknown" in self.state


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
    max_avail: Mapping[int, int]           # pool id → Ceph's MAX AVAIL in bytes
    stale_osds: FrozenSet[int] = frozenset()   # they have stopped reporting
    #: pgid → acting set where it differs from the up set; None: to be derived from pg_temp
    acting: Optional[Mapping[str, Sequence[int]]] = None
    #: pool id → bytes per object that OSDs used beyond the prediction (execution/size_check)
    measured: Mapping[int, float] = {}
    respect_weights: bool = True           # lowered weights hold OSDs to a share of their size
    #: PGs with omap on smaller OSDs are immovable: there RocksDB's own files outweigh the gain
    min_omap_osd_bytes: int = 0
    drained: FrozenSet[int] = frozenset()   # OSDs that an operator wants emptied
    sent: FrozenSet[str] = frozenset()     # PGs that the last mgr had moved and seen not arrive
    changed_at: Optional[float] = None     # of the osdmap's epoch, seconds since the epoch
    pool_statfs: Sequence[PoolStatfs] = ()   # get('osd_stats')['pool_statfs']

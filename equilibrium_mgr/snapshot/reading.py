"""What one round reads from the mgr: plain dictionaries in Ceph's shapes, not yet understood."""
from __future__ import annotations

from typing import Any, FrozenSet, Mapping, NamedTuple, Optional, Sequence


class PgRecord(NamedTuple):
    """The statistics of one PG that placement depends on."""

    num_bytes: int     # logical bytes of its objects
    num_objects: int
    omap_bytes: int
    state: str         # as in `active+clean`; empty where unknown
    uncopied_ratio: float     # ratio of its moving shards' bytes still to be copied; 1.0 where unknown
    reported_epoch: int  # osdmap epoch of the report; 0 where unknown
    omap_objects: int = -1   # objects that have omap; -1 where unknown

    @property
    def is_unknown(self) -> bool:
        """Has no OSD reported the PG yet? Then its figures tell nothing."""
        return self.reported_epoch <= 0 or not self.state or "unknown" in self.state


class Reading(NamedTuple):
    """One consistent reading: maps and up sets belong to the same osdmap epoch."""

    taken_at: float                        # seconds since the epoch
    osd_map: Mapping[str, Any]             # OSDMap.dump()
    crush: Mapping[str, Any]               # CRUSHMap.dump()
    up: Mapping[str, Sequence[int]]        # pgid → up set
    records: Mapping[str, PgRecord]        # pgid → statistics
    osd_stats: Sequence[Mapping[str, Any]]   # get('osd_stats')['osd_stats']
    pool_stats: Sequence[Mapping[str, Any]]  # get('pool_stats')['pool_stats']
    pg_status: Mapping[str, Any]           # get('pg_status')
    max_avail: Mapping[int, int]           # pool id → Ceph's MAX AVAIL in bytes
    stale_osds: FrozenSet[int] = frozenset()   # whose statistics have stopped coming
    #: pgid → acting set where it differs from the up set; None: to be told from pg_temp
    acting: Optional[Mapping[str, Sequence[int]]] = None
    #: pool id → bytes per object that OSDs took beyond what was predicted (execution/size_check/prediction.py)
    measured: Mapping[int, float] = {}
    respect_weights: bool = True           # lowered weights hold OSDs to a share of their size
    #: PGs with omap on smaller OSDs stay: RocksDB's own files come and go by more than that is worth
    min_omap_osd_bytes: int = 0
    changed_at: Optional[float] = None     # of the osdmap's epoch, seconds since the epoch

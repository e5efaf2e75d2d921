"""The simulated cluster: osdmap, CRUSH, PGs and the bytes on the OSDs."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Set, Tuple

from ..clock import VirtualClock
from ..crush.hashes import NONE
from ..frozen import ReadOnlyDict
from ..osdmap.crush_map import CrushMap
from ..osdmap.osd_map import OsdMap, up_from_mapping
from ..osdmap.upmap import Items, Mapping, apply_items, with_primary, with_primary_first
from .log_recovery import log_length
from .load import Counts, Load
from .pg import Pg
from .raw_mapping import RawMapping, Topology
from .usage import NOTHING, OsdUsage, PoolUsage, ShardBytes, ShardRatios


class Peering(NamedTuple):
    """A PG that peers from `since` until `due`, then asks for the pg_temp entry `temp`."""

    since: float
    due: float
    temp: Optional[Mapping]
    #: The state that it reported last.
    last_state: str


@dataclass
class PoolSums:
    """Sums over the PGs of a pool: figures of stat_sum, and PGs by state."""

    stat_sum: Dict[str, int] = field(default_factory=dict)
    states: Dict[str, int] = field(default_factory=dict)


@dataclass
class Cluster:
    """All state of the simulated cluster that is not the mgr's or the monitor's own."""

    release: int
    clock: VirtualClock
    crush: CrushMap
    map: OsdMap
    pgs: Dict[str, Pg]
    usage: Dict[int, OsdUsage]
    pool_usage: PoolUsage
    #: Keys of the state file that the simulation passes on unchanged (pg_dump totals...), and what
    #: the mgr's version says of its origin.
    extras: Dict[str, Any]
    #: True if PGs peer as Ceph's do: those with a whole log are recovered (log_recovery.py), not
    #: backfilled, and the lowest id leads if the first of `up` is new.
    log_recovery: bool = True
    #: Entries of a PG's log that a backfill copies at most (osd_max_pg_log_entries).
    max_log_entries: int = 10_000
    #: Before Ceph 18: OSD → pool id → bytes of omap that its RocksDB has written out.
    omap_written: Dict[int, Dict[int, int]] = field(default_factory=dict)
    #: (pool id, OSD) → bytes of omap that left the OSD and that its RocksDB still holds, and the
    #: seconds after which they are compacted.
    uncompacted: Dict[Tuple[int, int], int] = field(default_factory=dict)
    compaction_seconds: float = 600.0
    #: Pool id → ratio of its data that a copy takes in addition on the OSD where it arrives, and
    #: keeps: sparse or shared data is written out.
    copy_overhead: Dict[int, float] = field(default_factory=dict)
    #: The bytes that shards take if OSDs or positions differ.
    shard_ratios: ShardRatios = field(default_factory=ShardRatios)
    #: PGs that an OSD has when it begins to withhold others.
    pgs_withheld_from: float = math.inf
    #: Called with (pool id, OSD, bytes) of omap that leaves an OSD; None if it is free at once.
    on_omap_freed: Optional[Callable[[int, int, int], None]] = None
    #: (pool id, OSD) → bytes of shards that left the OSD and that it has still to delete.
    undeleted: Dict[Tuple[int, int], int] = field(default_factory=dict)
    #: Called with (pool id, OSD, shard, its position) when a shard leaves; None: deleted at once.
    on_shard_left: Optional[Callable[[int, int, ShardBytes, int], None]] = None
    #: Bytes of metadata that an object costs on each OSD that has a shard of it.
    metadata_per_object: float = 0.0
    #: Pool id → what its clients do all the time, and what has been counted in addition to the
    #: counters in the state file and to that (operations.py).
    loads: Dict[int, Load] = field(default_factory=dict)
    operations: Dict[int, Counts] = field(default_factory=dict)
    raw_mapping: RawMapping = field(default_factory=RawMapping)
    #: Sums of each pool as if all PGs were clean, kept until PGs or their bytes change; filled by
    #: simulation/statistics.py.
    clean_sums: Dict[int, PoolSums] = field(default_factory=dict)
    #: The sums of one moment (time, epoch, revision).
    current_sums: Tuple[Tuple[float, int, int], Dict[int, PoolSums]] = ((0.0, 0, 0), {})
    #: The records of get('pg_progress') in the order of the PGs, and pool id → PGs with omap; kept
    #: in the same way.
    progress_records: Dict[str, ReadOnlyDict] = field(default_factory=dict)
    pgs_with_omap: Dict[int, List[Pg]] = field(default_factory=dict)
    #: Incremented by what changes the reports of PGs, apart from time and the osdmap.
    revision: int = 0
    #: PGs that the simulation can move and that are not active+clean.
    unclean: Dict[str, Pg] = field(default_factory=dict)
    peering: Dict[str, Peering] = field(default_factory=dict)

    # -- the map ------------------------------------------------------------------------------

    def is_out(self, osd: int) -> bool:
        """Returns True if the OSD exists and has a reweight of 0."""
        return self.map.exists(osd) and self.map.reweight(osd) <= 0

    def pgs_of(self, pool_id: int) -> List[Pg]:
        """Returns the PGs of a pool in the order of their ids."""
        return [pg for pg in self.pgs.values() if pg.pool_id == pool_id]

    def withholds(self, osd: int) -> bool:
        """Returns True if the OSD has so many PGs that it takes no other."""
        return int(self.usage[osd].dump().get("num_pgs", 0)) >= self.pgs_withheld_from

    def size_of(self, pg: Pg) -> int:
        """Returns `size` of the PG's pool."""
        return int(self.map.pools[pg.pool_id]["size"])

    def min_size_of(self, pg: Pg) -> int:
        """Returns the number of shards without which a PG is inactive; at least k in an
        erasure-coded pool.
        """
        pool = self.map.pools[pg.pool_id]
        return max(int(pool.get("min_size", 1)), self.map.data_chunks(pg.pool_id))

    def topology(self) -> Topology:
        """Returns the present map, as far as raw mappings depend on it."""
        return Topology(self.crush, self.map.osds, self.map.pools)

    def upmap_base(self, pg: Pg) -> Mapping:
        """Returns the mapping that upmap items are applied to: a valid pg_upmap, else the raw
        mapping.
        """
        full = self.map.full_upmaps.get(pg.pgid)
        if full is None or any(map(self.is_out, full)):
            return pg.raw or ()
        return full

    def _apply_items(self, pg: Pg, items: Items) -> Mapping:
        return with_primary(apply_items(self.upmap_base(pg), items, self.is_out),
                            self.map.chosen_primaries.get(pg.pgid), self.is_out)

    def mapped_osds(self, pg: Pg) -> Mapping:
        """Returns the mapping of a PG with its upmap items applied, down OSDs included."""
        if pg.raw is None:
            return self.map.up.get(pg.pgid, ())
        return self._apply_items(pg, self.map.upmap_items.get(pg.pgid, ()))

    def up_with_items(self, pg: Pg, items: Items) -> Mapping:
        """Returns the up set of a PG under some upmap items; a PG without raw mapping keeps its
        own.
        """
        if pg.raw is None:
            return self.map.up.get(pg.pgid, ())
        mapped = self._apply_items(pg, items)
        up = up_from_mapping(mapped, pg.erasure, self.map)
        if pg.erasure or not self.map.has_affinities:
            return up
        return with_primary_first(up, self.map.osds, self.map.pools[pg.pool_id], pg.order[1])

    @property
    def moment(self) -> Tuple[float, int, int]:
        """Changes whenever the reports of PGs may change."""
        return self.clock.now, self.map.epoch, self.revision

    # -- PGs ----------------------------------------------------------------------------------

    def members(self, pg: Pg) -> Set[int]:
        """Returns the OSDs that have, or will get, a part of the PG."""
        if not pg.movable:
            return (set(self.map.up.get(pg.pgid, ())) | set(pg.held)) - {NONE}
        # an OSD counts strays, too, until it has removed them (OSD::get_num_pgs)
        return set(pg.holders()) | (pg.targets() - pg.withheld_by) | {osd for _, osd in pg.strays}

    def log_length(self) -> int:
        """Returns the number of writes that the log of a PG keeps, by the mean number of PG shards
        of an OSD.
        """
        shards = sum(map(len, self.map.up.values()))
        return min(self.max_log_entries, log_length(shards / max(1, len(self.map.osds))))

    def drop_pg(self, pg: Pg) -> None:
        """Removes a PG from all tables, those of the osdmap included."""
        self.remove_from_tables(pg)
        self.invalidate_sums()
        kept: Dict[str, Any] = {}
        for name in ("up", "pg_temp", "upmap_items"):
            table = dict(getattr(self.map, name))
            if table.pop(pg.pgid, None) is not None:
                kept[name] = table
        self.map = replace(self.map, **kept)

    def remove_from_tables(self, pg: Pg) -> None:
        """Removes a PG from the tables that are not the osdmap's."""
        for table in (self.pgs, self.unclean, self.peering):
            table.pop(pg.pgid, None)

    def invalidate_sums(self) -> None:
        """Discards sums that no longer hold after a change of the list of PGs or of their bytes."""
        self.revision += 1
        self.clean_sums.clear()
        self.progress_records.clear()
        self.pgs_with_omap.clear()

    # -- bytes --------------------------------------------------------------------------------

    def store(self, pool_id: int, osd: int, shard: ShardBytes, position: int = 0) -> None:
        """Adds bytes of a pool to an OSD; negative ones are removed. `position`: of the shard, in
        an erasure-coded pool."""
        if osd not in self.usage:
            return
        if self.shard_ratios.is_plain:
            self.usage[osd].add(shard)
            self.pool_usage.add(pool_id, osd, shard, shard.data)
            return
        stored = self.shard_ratios.stored(pool_id, position, shard)
        allocated = self.shard_ratios.allocated(pool_id, osd, stored)
        self.usage[osd].add(allocated, stored.data)
        self.pool_usage.add(pool_id, osd, allocated, stored.data)

    def release_shard(self, pool_id: int, osd: int, shard: ShardBytes, position: int) -> None:
        """Removes a moved shard from its old OSD; it may take space there for a while."""
        if self.on_omap_freed is not None and shard.omap > 0:
            self.on_omap_freed(pool_id, osd, shard.omap)
            shard = ShardBytes(shard.data, 0, shard.metadata)
        if self.on_shard_left is not None and osd in self.usage:
            self.on_shard_left(pool_id, osd, shard, position)
            return
        self.discard(pool_id, osd, shard, position)

    def discard(self, pool_id: int, osd: int, shard: ShardBytes, position: int) -> None:
        """Frees the bytes of a shard, or of a part of one, on an OSD."""
        self.store(pool_id, osd, NOTHING.minus(shard), position)

    def shard_bytes(self, pg: Pg) -> ShardBytes:
        """Returns the bytes of one shard of a PG of its present size."""
        data = max(0, pg.num_bytes) // self.map.data_chunks(pg.pool_id)
        metadata = max(0, int(round(self.metadata_per_object * pg.num_objects)))
        return ShardBytes(data, max(0, pg.omap_bytes), metadata)

    def utilizations(self) -> Dict[str, Dict[int, float]]:
        """Returns {device class: {osd: used / size}} of the OSDs with a size; classless ones under
        ''.
        """
        found: Dict[str, Dict[int, float]] = {}
        for osd in sorted(self.usage):
            if self.usage[osd].total and self.map.exists(osd):
                by_class = found.setdefault(self.crush.classes.get(osd, ""), {})
                by_class[osd] = self.usage[osd].utilization
        return found

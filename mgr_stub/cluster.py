"""The simulated cluster: osdmap, CRUSH, PGs and the bytes on the OSDs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, FrozenSet, Iterable, List, Optional, Set

from .clock import VirtualClock, format_time
from .crush_map import CrushMap
from .osd_map import OsdMap, up_from_mapping
from .pg import Pg, pg_order
from .upmap import Items, Mapping, apply_items
from .usage import OsdUsage, PoolUsage


@dataclass
class MapChange:
    """What the next osdmap epoch changes, as an incremental map does; None removes an entry."""

    upmap_items: Dict[str, Optional[Items]] = field(default_factory=dict)
    pg_temp: Dict[str, Optional[Mapping]] = field(default_factory=dict)
    removed_pools: Set[int] = field(default_factory=set)
    flags: Optional[FrozenSet[str]] = None
    min_compat_client: Optional[str] = None
    #: A command that changes nothing but makes an epoch all the same.
    bump: bool = False

    def __bool__(self) -> bool:
        return bool(self.upmap_items or self.pg_temp or self.removed_pools or self.bump
                    or self.flags is not None or self.min_compat_client is not None)


@dataclass
class PoolSums:
    """What the PGs of a pool add up to while none of them moves."""

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
    #: Keys of the state file that the simulation only hands on (versions, pg_dump totals, ...).
    extras: Dict[str, Any]
    #: Sums over the PGs of each pool, kept until PGs change; see statistics.py.
    sums: Dict[int, "PoolSums"] = field(default_factory=dict)

    def reweight_is_out(self, osd: int) -> bool:
        """Whether the osdmap has the OSD with a reweight of 0."""
        return self.map.exists(osd) and self.map.reweight(osd) <= 0

    def pgs_of(self, pool_id: int) -> List[Pg]:
        """PGs of a pool in the order of their ids."""
        return [pg for pg in self.pgs.values() if pg.pool_id == pool_id]

    def mapping_of(self, pg: Pg, items: Items) -> Mapping:
        """The up set of a PG under some items; PGs without a known raw mapping keep theirs."""
        if pg.raw is None:
            return self.map.up.get(pg.pgid, ())
        mapped = apply_items(pg.raw, items, self.reweight_is_out)
        return up_from_mapping(mapped, pg.erasure, self.map)

    def apply(self, change: MapChange) -> List[str]:
        """Makes the next epoch; returns the PGs whose up set is another now."""
        for pool_id in change.removed_pools:
            self._forget_pool(pool_id)
        updates: Dict[str, Any] = {"modified": format_time(self.clock())}
        if change.removed_pools:
            updates.update(self._without_pools(change.removed_pools))
        if change.flags is not None:
            updates["flags"] = change.flags
        if change.min_compat_client is not None:
            updates["min_compat_client"] = change.min_compat_client
        for name, entries in (("upmap_items", change.upmap_items), ("pg_temp", change.pg_temp)):
            alive = {pgid: value for pgid, value in entries.items() if pgid in self.pgs}
            if alive:
                updates[name] = _merged(updates.get(name, getattr(self.map, name)), alive)
        changed = self._remap(change.upmap_items, updates)
        self.map = self.map.next(**updates)
        return changed

    def _remap(self, pgids: Iterable[str], updates: Dict[str, Any]) -> List[str]:
        before: Dict[str, Mapping] = updates.get("up", self.map.up)
        moved: Dict[str, Mapping] = {}
        for pgid in pgids:
            if pgid in self.pgs:
                items = updates["upmap_items"].get(pgid, ())
                wanted = self.mapping_of(self.pgs[pgid], items)
                if wanted != before.get(pgid):
                    moved[pgid] = wanted
        if moved:
            updates["up"] = {**before, **moved}
        return sorted(moved, key=pg_order)

    def _without_pools(self, pool_ids: Set[int]) -> Dict[str, Any]:
        def kept(table: Dict[str, Any]) -> Dict[str, Any]:
            return {pgid: value for pgid, value in table.items()
                    if pg_order(pgid)[0] not in pool_ids}

        pools = {key: pool for key, pool in self.map.pools.items() if key not in pool_ids}
        return {"pools": pools, "up": kept(self.map.up), "pg_temp": kept(self.map.pg_temp),
                "upmap_items": kept(self.map.upmap_items)}

    def _forget_pool(self, pool_id: int) -> None:
        """Gives the bytes of a deleted pool free at once."""
        for pg in self.pgs_of(pool_id):
            for osd in pg.held:
                if osd in self.usage and pg.movable:
                    self.usage[osd].remove(pg.shard)
            for flow in pg.flows.values():
                self.usage[flow.target].remove(flow.landed)
            for osd in self.members(pg):
                if osd in self.usage:
                    self.usage[osd].count_pg(-1)
            del self.pgs[pg.pgid]
        self.pool_usage.forget_pool(pool_id)
        self.sums.clear()

    def members(self, pg: Pg) -> Set[int]:
        """OSDs that hold or shall hold a part of the PG."""
        return set(self.map.up.get(pg.pgid, ())) | set(pg.held)

    def state_of(self, pg: Pg) -> str:
        """The state that the PG reports; odd ones stay as the state file has them."""
        if not pg.movable:
            return pg.file_state
        if pg.pgid not in self.map.pg_temp:
            return "active+clean"
        if pg.backfilling:
            return "active+remapped+backfilling"
        if pg.toofull:
            return "active+remapped+backfill_toofull"
        return "active+remapped+backfill_wait"

    def misplaced_of(self, pg: Pg) -> int:
        """Misplaced object copies of a PG; none before it has peered with its new up set."""
        if not pg.movable:
            return pg.stat("num_objects_misplaced")
        return pg.misplaced_objects() if pg.pgid in self.map.pg_temp else 0

    def utilizations(self) -> Dict[str, Dict[int, float]]:
        """{device class: {osd: used / size}} of the OSDs with a size; classless ones under ''."""
        found: Dict[str, Dict[int, float]] = {}
        for osd in sorted(self.usage):
            if self.usage[osd].total and self.map.exists(osd):
                by_class = found.setdefault(self.crush.classes.get(osd, ""), {})
                by_class[osd] = self.usage[osd].utilization
        return found


def _merged(table: Dict[str, Any], changes: Dict[str, Any]) -> Dict[str, Any]:
    merged = {**table, **changes}
    return {key: value for key, value in merged.items() if value}

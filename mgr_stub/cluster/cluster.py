"""The simulated cluster: osdmap, CRUSH, PGs and the bytes on the OSDs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Set, Tuple

from ..clock import VirtualClock, format_time
from ..osdmap.crush_map import CrushMap
from ..osdmap.map_change import MapChange
from ..osdmap.osd_map import OsdMap, primary_of, up_from_mapping
from ..osdmap.primaries import as_kept, nonprimary_shards, with_leader_first, with_primary
from ..osdmap.upmap import NONE, Items, Mapping, apply_items
from .log_recovery import log_length
from .pg import Pg, pg_order
from .pg_state import Counts, acting_of, counts_of, state_of
from .raw_mapping import RawMapping, Topology
from .usage import NOTHING, OsdUsage, PoolUsage, ShardBytes

__all__ = ["Cluster", "MapChange", "Peering", "PoolSums"]

#: State of a PG that is neither moving nor in trouble.
AT_REST = "active+clean"

_NO_COUNTS = Counts(0, 0)


class Peering(NamedTuple):
    """A PG that peers from `since` until `due`, then asks for the pg_temp entry `temp`."""

    since: float
    due: float
    temp: Optional[Mapping]
    #: The state that it reported last.
    last_state: str


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
    #: Whether PGs peer as Ceph's do: those with a whole log are recovered (log_recovery.py), not
    #: backfilled, and the lowest id leads where the first of `up` is new.
    log_recovery: bool = True
    #: Entries of a PG's log that a backfill copies at most (osd_max_pg_log_entries).
    most_log_entries: int = 10_000
    #: Whether PGs tell their omap only after a deep scrub (omap.py).
    omap_by_scrub: bool = False
    #: Before Ceph 18: OSD → pool id → bytes of omap that its RocksDB has written out (omap.py).
    omap_written: Dict[int, Dict[int, int]] = field(default_factory=dict)
    #: (pool id, OSD) → bytes of omap that has left the OSD and that its RocksDB still holds (omap.py),
    #: and after how many seconds that is compacted.
    uncompacted: Dict[Tuple[int, int], int] = field(default_factory=dict)
    compaction_seconds: float = 600.0
    #: Pool → ratio of its data that a copy takes beyond that on the OSD where it arrives, for good:
    #: what was sparse or shared is written out.
    swelling: Dict[int, float] = field(default_factory=dict)
    #: Called with (pool, OSD, bytes) of omap that an OSD need not hold any more; None if it is
    #: free at once.
    on_omap_freed: Optional[Callable[[int, int, int], None]] = None
    #: Bytes of metadata that an object costs on each OSD that has a shard of it.
    metadata_per_object: float = 0.0
    raw_mapping: RawMapping = field(default_factory=RawMapping)
    #: Sums over the PGs of each pool as if all were at rest, kept until the PGs or their bytes
    #: change; see statistics.py.
    sums: Dict[int, PoolSums] = field(default_factory=dict)
    #: The sums of one moment (time, epoch, revision).
    sums_now: Tuple[Tuple[float, int, int], Dict[int, PoolSums]] = ((0.0, 0, 0), {})
    #: Counts what changes the reports of PGs, apart from time and the osdmap.
    revision: int = 0
    #: PGs that the simulation moves and that are not active+clean.
    restless: Dict[str, Pg] = field(default_factory=dict)
    peering: Dict[str, Peering] = field(default_factory=dict)

    # -- the map ------------------------------------------------------------------------------

    def reweight_is_out(self, osd: int) -> bool:
        """Whether the osdmap has the OSD with a reweight of 0."""
        return self.map.exists(osd) and self.map.reweight(osd) <= 0

    def pgs_of(self, pool_id: int) -> List[Pg]:
        """PGs of a pool in the order of their ids."""
        return [pg for pg in self.pgs.values() if pg.pool_id == pool_id]

    def size_of(self, pg: Pg) -> int:
        return int(self.map.pools[pg.pool_id]["size"])

    def min_size_of(self, pg: Pg) -> int:
        """Copies without which a PG is inactive; of erasure-coded ones at least k shards."""
        pool = self.map.pools[pg.pool_id]
        return max(int(pool.get("min_size", 1)), self.map.data_chunks(pg.pool_id))

    def mapped(self, pg: Pg) -> Mapping:
        """Raw mapping and upmap items of a PG, OSDs that are down among it."""
        if pg.raw is None:
            return self.map.up.get(pg.pgid, ())
        return self._with_items(pg, self.map.upmap_items.get(pg.pgid, ()))

    def base_of(self, pg: Pg) -> Mapping:
        """What upmap items are applied to: a full pg_upmap, or else what CRUSH gives."""
        full = self.map.full_upmaps.get(pg.pgid)
        if full is None or any(self.reweight_is_out(osd) for osd in full):
            return pg.raw or ()
        return full

    def _with_items(self, pg: Pg, items: Items) -> Mapping:
        return with_primary(apply_items(self.base_of(pg), items, self.reweight_is_out),
                            self.map.chosen_primaries.get(pg.pgid), self.reweight_is_out)

    def mapping_of(self, pg: Pg, items: Items) -> Mapping:
        """The up set of a PG under some items; PGs without a known raw mapping keep theirs."""
        if pg.raw is None:
            return self.map.up.get(pg.pgid, ())
        mapped = self._with_items(pg, items)
        up = up_from_mapping(mapped, pg.erasure, self.map)
        if pg.erasure or not self.map.has_affinities:
            return up
        return with_leader_first(up, self.map.osds, self.map.pools[pg.pool_id], pg.order[1])

    def wanted_temp(self, pg: Pg) -> Optional[Mapping]:
        """The pg_temp entry that the PG comes to when it peers; None where `up` will do."""
        acting, up = self.wanted_acting(pg), self.map.up.get(pg.pgid, ())
        if acting != up:
            return acting
        unable = nonprimary_shards(self.map.pools[pg.pool_id])
        leader = self.map.up_primary(pg.pgid) if unable else NONE
        return up if leader in up and up.index(leader) in unable else None

    def topology(self) -> Topology:
        """What raw mappings follow from, now."""
        return Topology(self.crush, self.map.osds, self.map.pools)

    def prepare(self, change: MapChange) -> Set[str]:
        """Takes OSDs, CRUSH and pools of a change into the map and lets raw mappings follow.

        Returns the PGs to look at. The epoch is made by `apply`, when the monitor has cleaned the
        upmap items. StubError, with nothing changed, where CRUSH cannot be computed.
        """
        if not change.moves_data:
            return set()
        before = self.topology()
        after = Topology(
            self.crush if change.crush is None else CrushMap(change.crush),
            {**before.osds, **change.osds}, {**before.pools, **change.pools})
        touched = self._heal(before, after)
        raws = self.raw_mapping.follow(list(self.pgs.values()), before, after)
        for pgid, raw in raws.items():
            self.pgs[pgid].raw = raw
        touched |= set(raws) | self._served_by(_flapped(before.osds, after.osds))
        touched |= self._served_by(_with_other_affinity(before.osds, after.osds))
        rest = self.map.rest
        if after.crush is not before.crush:
            rest = {**rest, "crush_version": int(rest.get("crush_version", 1)) + 1}
        if after.osds:
            rest = {**rest, "max_osd": max(after.osds) + 1}
        self.crush = after.crush
        self.map = replace(self.map, osds=after.osds, pools=after.pools, rest=rest)
        return touched

    def _heal(self, before: Topology, after: Topology) -> Set[str]:
        """Finds the raw mapping of PGs that an OSD was missing from when they were loaded.

        Only CRUSH can tell it, and it is believed where it explains the up set.
        """
        changed = {osd for osd, entry in after.osds.items() if entry != before.osds.get(osd)}
        healed: Set[str] = set()
        weights = before.reweights()
        for pg in self.pgs.values():
            if pg.raw is not None or not pg.state_is_healable():
                continue
            rule = int(before.pools[pg.pool_id]["crush_rule"])
            if changed.isdisjoint(before.crush.rule_weights(rule)):
                continue
            pg.raw = self.raw_mapping.compute(before, *pg.order, weights)
            items = self.map.upmap_items.get(pg.pgid, ())
            if self.mapping_of(pg, items) != self.map.up.get(pg.pgid):
                pg.raw = None
                continue
            pg.crush = pg.raw
            self._hold_as_mapped(pg)
            healed.add(pg.pgid)
        if healed:
            self.forget_sums()
        return healed

    def _hold_as_mapped(self, pg: Pg) -> None:
        """OSDs that are down still have what the PG had on them."""
        mapped = self.mapped(pg)
        if pg.erasure:
            pg.held = tuple(old if old != NONE or new == NONE or self.map.is_up(new) else new
                            for old, new in zip(pg.held, mapped))
        else:
            pg.held += tuple(osd for osd in mapped
                             if osd not in pg.held and not self.map.is_up(osd))

    def _served_by(self, osds: Set[int]) -> Set[str]:
        """PGs that some OSDs are mapped to or have something of."""
        if not osds:
            return set()
        found = set()
        for pg in self.pgs.values():
            if pg.raw is not None and not (
                    osds.isdisjoint(pg.held) and osds.isdisjoint(self.mapped(pg))
                    and all(osd not in osds for _, osd in pg.behind)
                    and osds.isdisjoint(pg.targets())):
                found.add(pg.pgid)
        return found

    def apply(self, change: MapChange, touched: Iterable[str] = ()) -> List[str]:
        """Makes the next epoch; returns the PGs that have to peer.

        Those are the ones whose up set is another now, and all that are `touched`.
        """
        for pool_id in change.removed_pools:
            self._forget_pool(pool_id)
        updates: Dict[str, Any] = {"modified": format_time(self.clock())}
        if change.removed_pools:
            updates.update(self._without_pools(change.removed_pools))
        if change.flags is not None:
            updates["flags"] = change.flags
        if change.min_compat_client is not None:
            updates["min_compat_client"] = change.min_compat_client
        if change.rest:   # up sets follow full pg_upmaps
            self.map = replace(self.map, rest={**self.map.rest, **change.rest})
        for name, entries in (("upmap_items", change.upmap_items), ("pg_temp", change.pg_temp)):
            alive = {pgid: value for pgid, value in entries.items() if pgid in self.pgs}
            if alive:
                updates[name] = _merged(updates.get(name, getattr(self.map, name)), alive)
        touched = set(touched)
        changed = self._remap(touched.union(change.upmap_items, change.remapped), updates)
        self.map = self.map.next(**updates)
        return sorted((pgid for pgid in touched.union(changed) if pgid in self.pgs), key=pg_order)

    def _remap(self, pgids: Iterable[str], updates: Dict[str, Any]) -> List[str]:
        before: Dict[str, Mapping] = updates.get("up", self.map.up)
        all_items: Dict[str, Items] = updates.get("upmap_items", self.map.upmap_items)
        moved: Dict[str, Mapping] = {}
        for pgid in sorted((p for p in pgids if p in self.pgs), key=pg_order):
            wanted = self.mapping_of(self.pgs[pgid], all_items.get(pgid, ()))
            if wanted != before.get(pgid):
                moved[pgid] = wanted
        if moved:
            updates["up"] = {**before, **moved}
        return list(moved)

    def _without_pools(self, pool_ids: Set[int]) -> Dict[str, Any]:
        def kept(table: Dict[str, Any]) -> Dict[str, Any]:
            return {pgid: value for pgid, value in table.items()
                    if pg_order(pgid)[0] not in pool_ids}

        pools = {key: pool for key, pool in self.map.pools.items() if key not in pool_ids}
        return {"pools": pools, "up": kept(self.map.up), "pg_temp": kept(self.map.pg_temp),
                "upmap_items": kept(self.map.upmap_items)}

    # -- bytes --------------------------------------------------------------------------------

    def store(self, pool_id: int, osd: int, shard: ShardBytes) -> None:
        """Puts bytes of a pool on an OSD; negative ones go."""
        if osd in self.usage:
            self.usage[osd].add(shard)
            self.pool_usage.add(pool_id, osd, shard)

    def release_shard(self, pool_id: int, osd: int, shard: ShardBytes) -> None:
        """An OSD gives a shard away; its omap may stay on the device for a while."""
        if self.on_omap_freed is not None and shard.omap > 0:
            self.on_omap_freed(pool_id, osd, shard.omap)
            shard = ShardBytes(shard.data, 0, shard.metadata)
        self.store(pool_id, osd, NOTHING.minus(shard))

    def forget_sums(self) -> None:
        """The list of PGs or their bytes have changed."""
        self.revision += 1
        self.sums.clear()

    def log_length(self) -> int:
        """How many writes the logs of PGs keep, by the PG shards of a mean OSD."""
        shards = sum(len(osds) for osds in self.map.up.values())
        return log_length(shards / max(1, len(self.map.osds)))

    def weigh(self, pg: Pg) -> ShardBytes:
        """The bytes of one shard of a PG of its present size."""
        return ShardBytes(max(0, pg.num_bytes) // self.map.data_chunks(pg.pool_id),
                          max(0, pg.omap_bytes),
                          max(0, int(round(self.metadata_per_object * pg.num_objects))))

    def _forget_pool(self, pool_id: int) -> None:
        """Gives the bytes of a deleted pool free at once."""
        for pg in self.pgs_of(pool_id):
            self._forget_pg(pg)
        self.pool_usage.forget_pool(pool_id)
        self.forget_sums()

    def _forget_pg(self, pg: Pg) -> None:
        """Takes a PG and its bytes away; the osdmap's tables are for the caller."""
        for osd in pg.holders() if pg.movable else ():
            self.store(pg.pool_id, osd, NOTHING.minus(pg.shard))
        for flow in pg.flows.values():
            self.store(pg.pool_id, flow.target, NOTHING.minus(flow.landed))
        for (_, osd), shard in pg.behind.items():
            self.store(pg.pool_id, osd, NOTHING.minus(shard))
        for osd in self.members(pg):
            if osd in self.usage:
                self.usage[osd].count_pg(-1)
        for table in (self.pgs, self.restless, self.peering):
            table.pop(pg.pgid, None)

    def drop_pg(self, pg: Pg) -> None:
        """Takes a PG out of all tables, the osdmap's too."""
        for table in (self.pgs, self.restless, self.peering):
            table.pop(pg.pgid, None)
        self.forget_sums()
        kept: Dict[str, Any] = {
            name: {pgid: value for pgid, value in getattr(self.map, name).items()
                   if pgid != pg.pgid}
            for name in ("up", "pg_temp", "upmap_items") if pg.pgid in getattr(self.map, name)}
        self.map = replace(self.map, **kept)

    def members(self, pg: Pg) -> Set[int]:
        """OSDs that hold or shall hold a part of the PG."""
        if not pg.movable:
            return (set(self.map.up.get(pg.pgid, ())) | set(pg.held)) - {NONE}
        return set(pg.holders()) | pg.targets()

    def utilizations(self) -> Dict[str, Dict[int, float]]:
        """{device class: {osd: used / size}} of the OSDs with a size; classless ones under ''."""
        found: Dict[str, Dict[int, float]] = {}
        for osd in sorted(self.usage):
            if self.usage[osd].total and self.map.exists(osd):
                by_class = found.setdefault(self.crush.classes.get(osd, ""), {})
                by_class[osd] = self.usage[osd].utilization
        return found

    # -- what PGs report ----------------------------------------------------------------------

    def leads_unmarked(self, pg: Pg, temp: Optional[Mapping]) -> bool:
        """Whether an OSD that is new to the PG comes to lead it by a pg_temp entry alone.

        Seen on 20.2.4: it begins without the mark of being remapped (PeeringState::init), which
        a change of the sets would set, and once it is clean it counts nothing as misplaced.
        """
        if not temp or pg.pgid not in self.map.pg_temp:
            return False
        leader = primary_of(as_kept(temp, self.map.pools[pg.pool_id]))
        return leader != self.map.acting_primary(pg.pgid) and any(
            flow.fresh for flow in pg.flows.values() if flow.target == leader)

    def note_interval(self, pg: Pg) -> None:
        """The PG has peered: who serves writes from now on, until it is clean, may be needed."""
        acting = self.map.acting(pg.pgid)
        present = sum(1 for osd in acting if osd != NONE)
        if self.blockers_of(pg):
            return
        if not pg.flows and present == self.size_of(pg):
            pg.intervals = ()
        elif acting not in pg.intervals and present >= self.min_size_of(pg):
            pg.intervals += (acting,)

    def blockers_of(self, pg: Pg) -> Set[int]:
        """OSDs that are down and without which the PG cannot know its last writes.

        Of every set that has served writes since the PG was clean as many have to be up as its
        data can be read from (PeeringState::build_prior, PastIntervals::PriorSet).
        """
        blockers: Set[int] = set()
        for members in pg.intervals:
            down = {osd for osd in members if osd != NONE and not self.map.is_up(osd)}
            alive = sum(1 for osd in members if osd != NONE) - len(down)
            if down and alive < self.map.data_chunks(pg.pool_id):
                blockers |= {osd for osd in down if self.map.exists(osd)}
        return blockers

    def wanted_acting(self, pg: Pg) -> Mapping:
        """The acting set that the PG comes to when it peers; one that is `down` asks for none."""
        if self.blockers_of(pg):
            return self.map.acting(pg.pgid)
        return acting_of(pg, self.map.up.get(pg.pgid, ()), self.size_of(pg), self.min_size_of(pg),
                         self.map.is_up,
                         self.map.acting(pg.pgid) if self.log_recovery else None)

    def look_at(self, pg: Pg) -> None:
        """Notes whether the PG is at rest; to be called after all that may change its reports."""
        self.revision += 1
        pg.forget_reports()
        up = self.map.up.get(pg.pgid, ())
        at_rest = not pg.movable or (
            not pg.flows and pg.held == up and pg.pgid not in self.peering
            and pg.pgid not in self.map.pg_temp and len(up) == self.size_of(pg)
            and NONE not in up and pg.scrub_until <= self.clock.now and not pg.inconsistent)
        if at_rest:
            self.restless.pop(pg.pgid, None)
        else:
            self.restless[pg.pgid] = pg

    def state_of(self, pg: Pg) -> str:
        """The state that the PG reports; odd ones stay as the state file has them."""
        return self.reported(pg)[0]

    def reported(self, pg: Pg) -> Tuple[str, Counts]:
        """The state and the object copies that the PG reports, between two changes of the map.

        Those of a PG that waits to copy are kept until something happens to it.
        """
        waiting = pg.waiting
        if waiting is not None and not pg.backfilling and waiting[0] == pg.toofull:
            report: Tuple[str, Counts] = waiting[1]
            return report
        report = self.report_of(pg)
        if not pg.backfilling and pg.pgid not in self.peering:
            pg.waiting = pg.toofull, report
        return report

    def report_of(self, pg: Pg) -> Tuple[str, Counts]:
        """What the PG reports, computed anew: also in the middle of a change of the map."""
        counts = self.counts_of(pg)
        if not pg.movable:
            return pg.file_state, counts
        if pg.pgid not in self.restless:
            return AT_REST, counts
        peering = self.peering.get(pg.pgid)
        if peering is not None:
            return self._peering_state(pg, peering), counts
        up, acting = self.map.up.get(pg.pgid, ()), self.map.acting(pg.pgid)
        if any(self.map.is_up(osd) for osd in acting) and self.blockers_of(pg):
            return "down" if acting == up else "down+remapped", counts
        state = state_of(pg, up, acting, self.size_of(pg), self.min_size_of(pg), self.map.is_up,
                         counts)
        state += "+inconsistent" if pg.inconsistent else ""
        return state + "+scrubbing" if pg.scrub_until > self.clock.now else state, counts

    def _peering_state(self, pg: Pg, peering: Peering) -> str:
        """At the moment of the change the mgr still has the last report."""
        if self.clock.now <= peering.since:
            return "unknown" if pg.created else peering.last_state
        if pg.created:
            return "creating+peering"
        return "remapped+peering" if pg.pgid in self.map.pg_temp else "peering"

    def counts_of(self, pg: Pg) -> Counts:
        """Misplaced and degraded object copies that a PG reports; none while it peers."""
        if not pg.movable:
            return Counts(pg.stat("num_objects_misplaced"), pg.stat("num_objects_degraded"))
        if pg.pgid not in self.restless:
            return _NO_COUNTS
        peering = self.peering.get(pg.pgid)
        if peering is not None and (self.clock.now > peering.since
                                    or pg.pgid not in self.map.pg_temp):
            return _NO_COUNTS
        up, acting = self.map.up.get(pg.pgid, ()), self.map.acting(pg.pgid)
        if acting == up and not pg.flows and not any(osd in pg.held for osd in up):
            return _NO_COUNTS  # nobody has the data, or nobody that has it is up
        if self.blockers_of(pg) or pg.unmarked and not pg.flows and NONE not in acting:
            return _NO_COUNTS
        return counts_of(pg, up, acting, self.size_of(pg))

    def misplaced_of(self, pg: Pg) -> int:
        """Misplaced object copies of a PG; none before it has peered with its new up set."""
        return self.reported(pg)[1].misplaced


def _merged(table: Dict[str, Any], changes: Dict[str, Any]) -> Dict[str, Any]:
    merged = {**table, **changes}
    return {key: value for key, value in merged.items() if value}


def _with_other_affinity(before: Dict[int, Dict[str, Any]],
                         after: Dict[int, Dict[str, Any]]) -> Set[int]:
    """OSDs whose primary affinity has changed."""
    return {osd for osd, entry in after.items() if osd in before
            and entry.get("primary_affinity", 1.0) != before[osd].get("primary_affinity", 1.0)}


def _flapped(before: Dict[int, Dict[str, Any]], after: Dict[int, Dict[str, Any]]) -> Set[int]:
    """OSDs that have come up or gone down."""
    return {osd for osd, entry in after.items()
            if bool(entry["up"]) != bool(before.get(osd, {}).get("up", 0))}

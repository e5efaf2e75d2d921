"""Applying the changes of one epoch to the cluster: first to raw mappings, then to the osdmap.

The up sets that the osdmap would have with other reweights, for modules that ask `what if`.
"""
from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, Iterable, List, Mapping as MappingType, Optional, Set

from ..clock import format_time
from ..crush.hashes import NONE, stable_mod
from ..osdmap.crush_map import CrushMap
from ..osdmap.osd_map import MapChange, OsdMap, up_from_mapping
from ..osdmap.upmap import (
    Items, Mapping, apply_items, with_holes, with_primary, with_primary_first)
from .cluster import Cluster
from .pg import Pg, pg_order
from .raw_mapping import Topology


Osds = Dict[int, Dict[str, Any]]


def prepare(cluster: Cluster, change: MapChange) -> Set[str]:
    """Takes OSDs, CRUSH and pools of a change into the map and updates raw mappings.

    Returns the ids of the affected PGs. The epoch is made by `apply`, when the monitor has cleaned
    the upmap items. StubError, with nothing changed, if CRUSH cannot be computed.
    """
    if not change.moves_data:
        return set()
    before = cluster.topology()
    crush = cluster.crush
    if change.crush is not None:
        crush = CrushMap(change.crush)
    after = Topology(crush, {**before.osds, **change.osds}, {**before.pools, **change.pools})
    touched = _heal(cluster, before, after)
    raws = cluster.raw_mapping.follow(list(cluster.pgs.values()), before, after)
    for pgid, raw in raws.items():
        cluster.pgs[pgid].raw = raw
    touched |= set(raws) | _pgs_on(cluster, _flapped(before.osds, after.osds))
    touched |= _pgs_on(cluster, _with_other_affinity(before.osds, after.osds))
    rest = cluster.map.rest
    if after.crush is not before.crush:
        rest = {**rest, "crush_version": int(rest.get("crush_version", 1)) + 1}
    if after.osds:
        rest = {**rest, "max_osd": max(after.osds) + 1}
    cluster.crush = after.crush
    cluster.map = replace(cluster.map, osds=after.osds, pools=after.pools, rest=rest)
    return touched


def apply(cluster: Cluster, change: MapChange, touched: Iterable[str] = ()) -> List[str]:
    """Makes the next epoch; returns the ids of the PGs that have to peer.

    Those are the PGs whose up set changes, and all `touched` ones.
    """
    for pool_id in change.removed_pools:
        _delete_pool(cluster, pool_id)
    updates: Dict[str, Any] = {"modified": format_time(cluster.clock())}
    if change.removed_pools:
        updates.update(_without_pools(cluster, change.removed_pools))
    if change.flags is not None:
        updates["flags"] = change.flags
    if change.min_compat_client is not None:
        updates["min_compat_client"] = change.min_compat_client
    if change.rest:   # up sets depend on pg_upmap, which is in it
        cluster.map = replace(cluster.map, rest={**cluster.map.rest, **change.rest})
    for name, entries in (("upmap_items", change.upmap_items), ("pg_temp", change.pg_temp)):
        alive = {pgid: value for pgid, value in entries.items() if pgid in cluster.pgs}
        if alive:
            updates[name] = _merged(updates.get(name, getattr(cluster.map, name)), alive)
    touched = set(touched)
    changed = _remap(cluster, touched.union(change.upmap_items, change.remapped), updates)
    cluster.map = cluster.map.next(**updates)
    return sorted((pgid for pgid in touched.union(changed) if pgid in cluster.pgs), key=pg_order)


# -- raw mappings ---------------------------------------------------------------------------------

def _heal(cluster: Cluster, before: Topology, after: Topology) -> Set[str]:
    """Finds the raw mapping of PGs that lacked an OSD when they were loaded; their ids.

    The raw mapping is computed by CRUSH and used if it explains the up set.
    """
    changed = {osd for osd, entry in after.osds.items() if entry != before.osds.get(osd)}
    healed: Set[str] = set()
    weights = before.reweights()
    for pg in cluster.pgs.values():
        if pg.raw is not None or not pg.state_is_healable():
            continue
        rule = int(before.pools[pg.pool_id]["crush_rule"])
        if changed.isdisjoint(before.crush.rule_weights(rule)):
            continue
        pg.raw = cluster.raw_mapping.compute(before, *pg.order, weights)
        items = cluster.map.upmap_items.get(pg.pgid, ())
        if cluster.up_with_items(pg, items) != cluster.map.up.get(pg.pgid):
            pg.raw = None
            continue
        pg.crush = pg.raw
        _hold_as_mapped(cluster, pg)
        healed.add(pg.pgid)
    if healed:
        cluster.invalidate_sums()
    return healed


def _hold_as_mapped(cluster: Cluster, pg: Pg) -> None:
    """Adds the down OSDs that the PG is mapped to: they still hold its shards."""
    mapped = cluster.mapped_osds(pg)
    serving = {osd for osd in mapped if osd != NONE and cluster.map.is_up(osd)}
    down = with_holes(mapped, serving)
    if pg.erasure:
        pg.held = tuple(new if old == NONE else old for old, new in zip(pg.held, down))
    else:
        pg.held += tuple(osd for osd in down if osd != NONE and osd not in pg.held)


def _pgs_on(cluster: Cluster, osds: Set[int]) -> Set[str]:
    """Returns the ids of the PGs that are mapped to some of the OSDs or have data on them."""
    if not osds:
        return set()
    return {pg.pgid for pg in cluster.pgs.values()
            if pg.raw is not None and _is_on(cluster, pg, osds)}


def _is_on(cluster: Cluster, pg: Pg, osds: Set[int]) -> bool:
    if not osds.isdisjoint(pg.held) or not osds.isdisjoint(cluster.mapped_osds(pg)):
        return True
    if any(osd in osds for _, osd in pg.strays):
        return True
    return not osds.isdisjoint(pg.targets())


def _with_other_affinity(before: Osds, after: Osds) -> Set[int]:
    """Returns the OSDs whose primary affinity has changed."""
    return {osd for osd, entry in after.items() if osd in before
            and entry.get("primary_affinity", 1.0) != before[osd].get("primary_affinity", 1.0)}


def _flapped(before: Osds, after: Osds) -> Set[int]:
    """Returns the OSDs that have come up or gone down."""
    return {osd for osd, entry in after.items()
            if bool(entry["up"]) != bool(before.get(osd, {}).get("up", 0))}


# -- the next epoch -------------------------------------------------------------------------------

def _remap(cluster: Cluster, pgids: Iterable[str], updates: Dict[str, Any]) -> List[str]:
    """Puts changed up sets into the updates; the ids of their PGs."""
    before: Dict[str, Mapping] = updates.get("up", cluster.map.up)
    all_items: Dict[str, Items] = updates.get("upmap_items", cluster.map.upmap_items)
    moved: Dict[str, Mapping] = {}
    for pgid in sorted((p for p in pgids if p in cluster.pgs), key=pg_order):
        wanted = cluster.up_with_items(cluster.pgs[pgid], all_items.get(pgid, ()))
        if wanted != before.get(pgid):
            moved[pgid] = wanted
    if moved:
        updates["up"] = {**before, **moved}
    return list(moved)


def _without_pools(cluster: Cluster, pool_ids: Set[int]) -> Dict[str, Any]:
    def kept(table: Dict[str, Any]) -> Dict[str, Any]:
        return {pgid: value for pgid, value in table.items()
                if pg_order(pgid)[0] not in pool_ids}

    osdmap = cluster.map
    pools = {key: pool for key, pool in osdmap.pools.items() if key not in pool_ids}
    return {"pools": pools, "up": kept(osdmap.up), "pg_temp": kept(osdmap.pg_temp),
            "upmap_items": kept(osdmap.upmap_items)}


def _merged(table: Dict[str, Any], changes: Dict[str, Any]) -> Dict[str, Any]:
    """Returns a table of the osdmap with changed entries; empty ones are removed."""
    merged = {**table, **changes}
    return {key: value for key, value in merged.items() if value}


def _delete_pool(cluster: Cluster, pool_id: int) -> None:
    """Frees the bytes of a deleted pool; OSDs may take their time."""
    for pg in cluster.pgs_of(pool_id):
        _delete_pg(cluster, pg)
    cluster.pool_usage.forget_pool(pool_id)
    cluster.invalidate_sums()


def _delete_pg(cluster: Cluster, pg: Pg) -> None:
    """Removes a PG and its bytes; the caller updates the osdmap's tables."""
    if pg.movable:
        for position, osd in pg.held_places():
            cluster.release_shard(pg.pool_id, osd, pg.shard, position)
    for (position, osd), transfer in pg.transfers.items():
        cluster.release_shard(pg.pool_id, osd, transfer.accounted, position)
    for (position, osd), shard in pg.strays.items():
        cluster.release_shard(pg.pool_id, osd, shard, position)
    for osd in cluster.members(pg):
        if osd in cluster.usage:
            cluster.usage[osd].count_pg(-1)
    cluster.remove_from_tables(pg)


class UpSets(Dict[str, Mapping]):
    """{pgid: up set} under a map with other reweights, each computed when it is first asked for.

    As in a mgr's copy of the map, all upmap items are applied: no monitor cleans them.
    """

    def __init__(self, cluster: Cluster, base: OsdMap, crush: CrushMap, after: OsdMap) -> None:
        super().__init__()
        self._cluster = cluster
        self._base = base
        self._after = after
        self._before_change = Topology(crush, base.osds, base.pools)
        self._after_change = Topology(crush, after.osds, after.pools)
        self._raw: Dict[str, Mapping] = {}

    def get(self, pgid: str, default: Any = ()) -> Any:
        if pgid not in self._base.up:
            return default
        if pgid not in self:
            self[pgid] = self._up(pgid)
        return self[pgid]

    def _up(self, pgid: str) -> Mapping:
        pg = self._cluster.pgs.get(pgid)
        if pg is not None:
            raw = self._raw_of(pg)
            if raw is not None:
                return _up(pg, raw, self._after)
        return self._base.up[pgid]

    def _raw_of(self, pg: Pg) -> Optional[Mapping]:
        pool = self._after.pools[pg.pool_id]
        parent = stable_mod(pg.order[1], int(pool.get("pg_placement_num") or pool["pg_num"]))
        if parent != pg.order[1]:
            folded = self._cluster.pgs.get(f"{pg.pool_id}.{parent:x}")
            if folded is None:
                return None
            return self._raw_of(folded)
        if pg.pgid not in self._raw:
            found = self._new_raw(pg)
            if found is None:
                return None
            self._raw[pg.pgid] = found
        return self._raw[pg.pgid]

    def _new_raw(self, pg: Pg) -> Optional[Mapping]:
        mapping = self._cluster.raw_mapping
        before = self._before_change
        after = self._after_change
        if pg.raw is not None:
            return mapping.foreseen(pg, before, after)
        # it lacks an OSD: CRUSH's result is its raw mapping if it explains its up set
        if _up(pg, mapping.compute(before, *pg.order, before.reweights()),
               self._base) != self._base.up[pg.pgid]:
            return None
        return mapping.compute(after, *pg.order, after.reweights())


def _up(pg: Pg, raw: Mapping, osdmap: OsdMap) -> Mapping:
    """Returns the up set of a PG with a raw mapping under a map."""
    def is_out(osd: int) -> bool:
        return osdmap.exists(osd) and osdmap.reweight(osd) <= 0
    full = osdmap.full_upmaps.get(pg.pgid)
    if full is not None and not any(map(is_out, full)):
        raw = full
    mapped = with_primary(apply_items(raw, osdmap.upmap_items.get(pg.pgid, ()), is_out),
                          osdmap.chosen_primaries.get(pg.pgid), is_out)
    up = up_from_mapping(mapped, pg.erasure, osdmap)
    if pg.erasure or not osdmap.has_affinities:
        return up
    return with_primary_first(up, osdmap.osds, osdmap.pools[pg.pool_id], pg.order[1])


def with_reweights(cluster: Cluster, base: OsdMap, crush: CrushMap, osdmap: OsdMap,
                   reweights: MappingType[int, float]) -> OsdMap:
    """Returns the epoch after `osdmap` with other reweights. `base` is the newest map of the
    cluster and determines its raw mappings; `osdmap` is that map, or was made of it here.
    """
    osds = dict(osdmap.osds)
    for osd, reweight in reweights.items():
        if osd in osds:   # Ceph's map has a weight for every id; only existing OSDs are mapped to
            osds[osd] = {**osds[osd], "weight": max(0.0, min(1.0, reweight)),
                         "in": int(reweight > 0)}
    after = replace(osdmap, osds=osds, epoch=osdmap.epoch + 1)
    return replace(after, up=UpSets(cluster, base, crush, after))

"""Applying the changes of one epoch to the cluster: first to raw mappings, then to the osdmap."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, Iterable, List, Set

from ..clock import format_time
from ..crush.constants import NONE
from ..osdmap.crush_map import CrushMap
from ..osdmap.map_change import MapChange
from ..osdmap.upmap import Items, Mapping
from .cluster import Cluster
from .pg import Pg, pg_order
from .raw_mapping import Topology
from .usage import NOTHING

Osds = Dict[int, Dict[str, Any]]


def prepare(cluster: Cluster, change: MapChange) -> Set[str]:
    """Takes OSDs, CRUSH and pools of a change into the map and updates raw mappings.

    Returns the ids of the affected PGs. The epoch is made by `apply`, when the monitor has cleaned
    the upmap items. StubError, with nothing changed, if CRUSH cannot be computed.
    """
    if not change.moves_data:
        return set()
    before = cluster.topology()
    after = Topology(cluster.crush if change.crush is None else CrushMap(change.crush),
                     {**before.osds, **change.osds}, {**before.pools, **change.pools})
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
    if pg.erasure:
        pg.held = tuple(old if old != NONE or new == NONE or cluster.map.is_up(new) else new
                        for old, new in zip(pg.held, mapped))
    else:
        pg.held += tuple(osd for osd in mapped
                         if osd not in pg.held and not cluster.map.is_up(osd))


def _pgs_on(cluster: Cluster, osds: Set[int]) -> Set[str]:
    """Ids of the PGs that are mapped to some of the OSDs or have data on them."""
    if not osds:
        return set()
    found = set()
    for pg in cluster.pgs.values():
        if pg.raw is not None and not (
                osds.isdisjoint(pg.held) and osds.isdisjoint(cluster.mapped_osds(pg))
                and all(osd not in osds for _, osd in pg.strays)
                and osds.isdisjoint(pg.targets())):
            found.add(pg.pgid)
    return found


def _with_other_affinity(before: Osds, after: Osds) -> Set[int]:
    """OSDs whose primary affinity has changed."""
    return {osd for osd, entry in after.items() if osd in before
            and entry.get("primary_affinity", 1.0) != before[osd].get("primary_affinity", 1.0)}


def _flapped(before: Osds, after: Osds) -> Set[int]:
    """OSDs that have come up or gone down."""
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
    """A table of the osdmap with changed entries; empty ones are removed."""
    merged = {**table, **changes}
    return {key: value for key, value in merged.items() if value}


def _delete_pool(cluster: Cluster, pool_id: int) -> None:
    """Frees the bytes of a deleted pool at once."""
    for pg in cluster.pgs_of(pool_id):
        _delete_pg(cluster, pg)
    cluster.pool_usage.forget_pool(pool_id)
    cluster.invalidate_sums()


def _delete_pg(cluster: Cluster, pg: Pg) -> None:
    """Removes a PG and its bytes; the caller updates the osdmap's tables."""
    for position, osd in pg.held_places() if pg.movable else ():
        cluster.store(pg.pool_id, osd, NOTHING.minus(pg.shard), position)
    for (position, osd), transfer in pg.transfers.items():
        cluster.store(pg.pool_id, osd, NOTHING.minus(transfer.accounted), position)
    for (position, osd), shard in pg.strays.items():
        cluster.store(pg.pool_id, osd, NOTHING.minus(shard), position)
    for osd in cluster.members(pg):
        if osd in cluster.usage:
            cluster.usage[osd].count_pg(-1)
    cluster.remove_from_tables(pg)

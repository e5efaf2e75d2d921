"""Entries of `pg_upmap` and `pg_upmap_primaries`: whole mappings and primaries set by operators.

A pg_upmap replaces the result of CRUSH, and upmap items are applied to it; the OSD of a
pg_upmap_primaries entry changes places with the first one (osdmap/upmap.py). Neither has an
effect while its OSDs are out.
"""

from __future__ import annotations

import errno
from typing import Any, Dict, List, Optional, Set

from ..cluster.cluster import Cluster
from ..cluster.pg import pg_order
from ..errors import StubError, invalid
from ..osdmap import upmap
from ..osdmap.osd_map import MapChange, is_merging

FULL, PRIMARIES = "pg_upmap", "pg_upmap_primaries"   # keys of the osdmap dump
Table = List[Dict[str, Any]]


def set_mapping(cluster: Cluster, pgid: str, osds: List[int], change: MapChange) -> str:
    """Acts like `ceph osd pg-upmap`."""
    pool = cluster.map.pools[pg_order(pgid)[0]]
    if not int(pool.get("min_size", 1)) <= len(osds) <= int(pool["size"]):
        raise invalid(f"{len(osds)} OSDs do not fit the pool's min_size and size")
    if len(set(osds)) < len(osds):
        raise invalid("an OSD is named twice")
    for osd in osds:
        _must_exist(cluster, osd)
    _put(cluster, change, FULL, pgid, {"pgid": pgid, "osds": osds})
    return f"set {pgid} pg_upmap mapping to {osds}"


def set_primary(cluster: Cluster, pgid: str, osd: int, change: MapChange) -> str:
    """Acts like `ceph osd pg-upmap-primary`, of Ceph 18 and later."""
    _must_exist(cluster, osd)
    if osd == cluster.map.acting_primary(pgid):
        raise invalid(f"osd.{osd} is already primary for pg {pgid}")
    if osd not in cluster.map.acting(pgid):
        raise invalid(f"osd.{osd} is not in acting set for pg {pgid}")
    _put(cluster, change, PRIMARIES, pgid, {"pgid": pgid, "primary_osd": osd})
    return f"change primary for pg {pgid} to osd.{osd}"


def remove_primary(cluster: Cluster, pgid: str, change: MapChange) -> str:
    """Acts like `ceph osd rm-pg-upmap-primary`; there need not be one."""
    _put(cluster, change, PRIMARIES, pgid, None)
    return f"clear {pgid} pg_upmap_primary mapping"


def remove_mapping(cluster: Cluster, pgid: str, change: MapChange) -> str:
    """Acts like `ceph osd rm-pg-upmap`."""
    _put(cluster, change, FULL, pgid, None)
    return f"clear {pgid} {FULL} mapping"


def clean(cluster: Cluster, change: MapChange) -> None:
    """Removes the entries that OSDMap::check_pg_upmaps removes, and those of removed PGs.

    These are pg_upmaps that are illegal, have OSDs that are out, or equal the raw mapping; on 20
    also primaries that CRUSH alone does not choose, or puts first (seen with osdmaptool 20.2.4). If
    a PG with a primary is about to be merged, 20 removes all primaries of its pool.
    """
    if cluster.release >= 20:
        entries = _table(cluster, change, PRIMARIES)
        merging = {pg_order(entry["pgid"])[0] for entry in entries
                   if _is_merging(cluster, change, entry["pgid"])}
        drop_primaries(cluster, change, {
            entry["pgid"] for entry in entries if pg_order(entry["pgid"])[0] in merging})
    for key in (FULL, PRIMARIES):
        entries = _table(cluster, change, key)
        kept = [entry for entry in entries if _is_kept(cluster, change, key, entry)]
        if len(kept) < len(entries):
            change.rest[key] = kept
            change.remapped.update(entry["pgid"] for entry in entries if entry not in kept)


def drop_primaries(cluster: Cluster, change: MapChange, pgids: Set[str]) -> None:
    """Removes the primaries of PGs, if they have any."""
    entries = _table(cluster, change, PRIMARIES)
    kept = [entry for entry in entries if entry["pgid"] not in pgids]
    if len(kept) < len(entries):
        change.rest[PRIMARIES] = kept
        change.remapped.update(pgids)


def _is_merging(cluster: Cluster, change: MapChange, pgid: str) -> bool:
    pool_id, position = pg_order(pgid)
    pool = change.pools.get(pool_id, cluster.map.pools.get(pool_id))
    return pool is not None and is_merging(pool, position)


def _is_kept(cluster: Cluster, change: MapChange, key: str, entry: Dict[str, Any]) -> bool:
    pg = cluster.pgs.get(entry["pgid"])
    if pg is None or pg.pool_id in change.removed_pools:
        return False
    if pg.raw is None:
        return True
    if key != FULL:
        return cluster.release < 20 or entry["primary_osd"] in pg.raw[1:]
    pool = cluster.map.pools[pg.pool_id]
    osds = tuple(entry["osds"])
    rule = int(pool["crush_rule"])
    if osds == pg.raw or upmap.verify(cluster.crush, rule, int(pool["size"]), osds) is not None:
        return False
    weights = cluster.crush.rule_weights(rule)
    return all(weights.get(osd, 0.0) * cluster.map.reweight(osd) > 0.0 for osd in osds)


def _must_exist(cluster: Cluster, osd: int) -> None:
    if not cluster.map.exists(osd):
        raise StubError(errno.ENOENT, f"osd.{osd} does not exist")


def _table(cluster: Cluster, change: MapChange, key: str) -> Table:
    entries: Table = change.rest.get(key, cluster.map.rest.get(key, []))
    return entries


def _put(cluster: Cluster, change: MapChange, key: str, pgid: str,
         entry: Optional[Dict[str, Any]]) -> None:
    entries = [other for other in _table(cluster, change, key) if other["pgid"] != pgid]
    if entry is not None:
        entries.append(entry)
    change.rest[key] = entries
    change.remapped.add(pgid)

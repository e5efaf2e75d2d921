"""Building a simulated Cluster from the content of a state file. No CRUSH is computed.

The raw mapping of a PG is its up set with the upmap items inverted, verified by applying them
again. If that fails (down or missing members, a pg_upmap, items that do not explain the up set) the
PG keeps its up set and its state. That is permanent, with one exception: if the PG only lacks an
OSD, CRUSH can explain its up set later, when an event makes the simulation compute it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, List, Set

from ..clock import VirtualClock, parse_timestamp
from ..cluster import peering
from ..cluster.cluster import Cluster
from ..cluster.log_recovery import writes_in_log
from ..cluster.pg import Pg, Transfer
from ..cluster.usage import OsdUsage, PoolUsage, metadata_per_object
from ..crush.hashes import WEIGHT_ONE
from ..errors import invalid
from ..osdmap.crush_map import CrushMap
from ..osdmap.osd_map import RELEASE_NAMES, OsdMap, is_erasure
from ..osdmap.upmap import (
    Items, Mapping, apply_items, in_shard_order, invert_items, nonprimary_shards)
from ..simulation.statistics import no_statistics

#: Keys of the osdmap dump that OsdMap holds as fields of its own.
_OWN_KEYS = {"epoch", "modified", "flags", "flags_set", "require_min_compat_client", "pools",
             "osds", "pg_upmap_items", "pg_temp"}

#: Default values of other keys, for state files without them.
_DEFAULTS: Dict[str, Any] = {
    "fsid": "00000000-0000-0000-0000-000000000000", "full_ratio": 0.95,
    "backfillfull_ratio": 0.9, "nearfull_ratio": 0.85, "crush_version": 1, "pool_max": 0,
    "min_compat_client": "luminous", "osd_xinfo": [],
    "pg_upmap": [], "primary_temp": [], "blocklist": {}, "range_blocklist": {},
    "erasure_code_profiles": {}, "removed_snaps_queue": [], "new_removed_snaps": [],
    "new_purged_snaps": [], "crush_node_flags": {}, "device_class_flags": {},
    "stretch_mode": {"stretch_mode_enabled": False, "stretch_bucket_count": 0,
                     "degraded_stretch_mode": 0, "recovering_stretch_mode": 0,
                     "stretch_mode_bucket": 0},
}

#: Required figures of an OSD's statfs.
_STATFS_NEEDED = ("total", "available")


def build_cluster(state: Dict[str, Any], release: int, name: str = "state file") -> Cluster:
    """Returns the Cluster of a checked state; StubError with one sentence if values are not valid.
    """
    try:
        return _build(state, release)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        what = f"{type(error).__name__} {error}".replace("\n", " ")
        raise invalid(f"{name}: the state file does not make sense: {what}") from None


def _build(state: Dict[str, Any], release: int) -> Cluster:
    pg_map = state["pg_dump"]["pg_map"]
    osdmap = read_osdmap(state["osd_dump"], pg_map["pg_stats"])
    osdmap.rest["require_osd_release"] = RELEASE_NAMES[release - 1]   # as after an upgrade
    pgs = _pgs(pg_map["pg_stats"], osdmap)
    usage = {int(r["osd"]): OsdUsage(_with_statfs(r)) for r in pg_map["osd_stats"]}
    for osd in osdmap.osds:
        usage.setdefault(osd, OsdUsage(no_statistics(osd)))
    extras = {"pg_map": {key: value for key, value in pg_map.items()
                         if key not in ("pg_stats", "osd_stats", "pool_statfs", "pool_stats")},
              "pool_stats": pg_map.get("pool_stats", []), "df_dump": state.get("df_dump")}
    cluster = Cluster(release, VirtualClock(parse_timestamp(state.get("timestamp"))),
                      CrushMap(state["crush_dump"]), osdmap, pgs, usage,
                      PoolUsage(pg_map.get("pool_statfs", [])), extras)
    _set_raw_mappings(cluster, state["osd_dump"].get("pg_upmap", []))
    _set_shard_bytes(cluster)
    _set_writes(cluster)
    _resume_backfill(cluster)
    return cluster


def read_osdmap(dump: Dict[str, Any], pg_stats: List[Dict[str, Any]]) -> OsdMap:
    """Returns the osdmap of `ceph osd dump`, with the up sets of the PGs' records."""
    rest = {**_DEFAULTS, **{key: value for key, value in dump.items() if key not in _OWN_KEYS}}
    flags = set(str(dump.get("flags", "")).split(",")) - {""}
    flags.update(dump.get("flags_set") or ())
    items: Dict[str, Items] = {}
    for entry in dump.get("pg_upmap_items", []):
        items[entry["pgid"]] = tuple((int(p["from"]), int(p["to"])) for p in entry["mappings"])
    pools = {int(pool["pool"]): {**pool, "type": int(pool["type"]), "size": int(pool["size"])}
             for pool in dump["pools"]}
    old_weights = {int(record["osd"]): int(record.get("old_weight", 0)) / WEIGHT_ONE
                   for record in rest["osd_xinfo"]}
    temps: Dict[str, Mapping] = {}
    for entry in dump.get("pg_temp", []):
        pool_id = int(entry["pgid"].partition(".")[0])
        temps[entry["pgid"]] = in_shard_order(entry["osds"], pools.get(pool_id, {}))
    rest["max_osd"] = max([int(osd["osd"]) + 1 for osd in dump["osds"]] or [0])
    return OsdMap(
        epoch=int(dump.get("epoch", 1)),
        pools=pools,
        osds={int(osd["osd"]): _osd(osd, old_weights) for osd in dump["osds"]},
        flags=frozenset(flags),
        upmap_items=items,
        pg_temp=temps,
        up={pg["pgid"]: _members(pg["up"]) for pg in pg_stats},
        min_compat_client=str(dump.get("require_min_compat_client") or "luminous"),
        modified=str(dump.get("modified", "")),
        rest=rest,
    )


def _osd(entry: Dict[str, Any], old_weights: Dict[int, float]) -> Dict[str, Any]:
    """Returns an osds[] entry with up, in and state filled in and consistent."""
    weight = float(entry["weight"])
    state = list(map(str, entry.get("state", ["exists", "up"])))
    up = int(entry.get("up", "up" in state))
    if up and "up" not in state:
        state.append("up")
    return {"primary_affinity": 1.0, **entry, "osd": int(entry["osd"]), "weight": weight,
            "up": up, "in": int(entry.get("in", weight > 0)), "state": state,
            "old_weight": old_weights.get(int(entry["osd"]), 0.0)}


def _members(osds: List[int]) -> Mapping:
    return tuple(map(int, osds))


def _with_statfs(record: Dict[str, Any]) -> Dict[str, Any]:
    for key in _STATFS_NEEDED:
        int(record["statfs"][key])
    return record


def _pgs(pg_stats: List[Dict[str, Any]], osdmap: OsdMap) -> Dict[str, Pg]:
    pgs: Dict[str, Pg] = {}
    for stats in pg_stats:
        pgid = str(stats["pgid"])
        pool_id = int(pgid.partition(".")[0])
        int(pgid.partition(".")[2], 16)
        pg = Pg(pgid, pool_id, is_erasure(osdmap.pools[pool_id]), stats)
        pg.held = _members(stats["acting"])
        pg.reported_epoch = min(pg.reported_epoch, osdmap.epoch)
        pg.num_copies = pg.num_copies or pg.num_objects * int(osdmap.pools[pool_id]["size"])
        pgs[pgid] = pg
    return pgs


def _set_raw_mappings(cluster: Cluster, full_upmaps: List[Dict[str, Any]]) -> None:
    with_full_upmap: Set[str] = {entry["pgid"] for entry in full_upmaps}
    for pg in cluster.pgs.values():
        size = int(cluster.map.pools[pg.pool_id]["size"])
        known = set(pg.held) <= cluster.map.osds.keys()
        pg.has_full_upmap = pg.pgid in with_full_upmap
        if pg.has_full_upmap or not known or not pg.state_is_movable(size):
            continue
        items: Items = cluster.map.upmap_items.get(pg.pgid, ())
        up = cluster.map.up[pg.pgid]
        raw = invert_items(up, items)
        if apply_items(raw, items, cluster.is_out) != up:
            continue
        if all(map(cluster.map.is_up, up)):
            pg.raw = raw


def _set_shard_bytes(cluster: Cluster) -> None:
    """Sets the bytes of one shard of every PG."""
    objects: Dict[int, int] = dict.fromkeys(cluster.usage, 0)
    for pg in cluster.pgs.values():
        for osd in set(pg.held) & set(objects):
            objects[osd] += pg.num_objects
    cost = metadata_per_object((objects[osd], usage.statfs()["internal_metadata"])
                               for osd, usage in cluster.usage.items())
    cluster.metadata_per_object = cost
    for pg in cluster.pgs.values():
        pg.shard = cluster.shard_bytes(pg)


def _set_writes(cluster: Cluster) -> None:
    """Sets the writes of PGs whose log has all of them."""
    length = cluster.log_length()
    for pg in cluster.pgs.values():
        pg.writes = writes_in_log(pg.stats, length)


def _resume_backfill(cluster: Cluster) -> None:
    """Continues the backfills of the file, as far as their misplaced objects indicate."""
    temps = dict(cluster.map.pg_temp)
    for pg in cluster.pgs.values():
        temps.pop(pg.pgid, None)
        up = cluster.map.up[pg.pgid]
        if not pg.movable:
            if pg.held != up:
                temps[pg.pgid] = pg.held
            continue
        wanted = pg.wanted_transfers(up)
        if not wanted:
            pg.held = up
            continue
        left = pg.stat("num_objects_misplaced") / max(1, pg.num_objects * len(wanted))
        done = 0.0
        if 0.0 < left < 1.0:
            done = 1.0 - left
        pg.transfers = {key: Transfer(source, key[1], pg.shard, done * pg.shard.total)
                    for key, source in wanted}
        pg.queued_at = cluster.clock.now
        temps[pg.pgid] = pg.held
    for pg in cluster.pgs.values():
        if pg.movable and not pg.transfers and nonprimary_shards(cluster.map.pools[pg.pool_id]):
            temps[pg.pgid] = peering.wanted_temp(cluster, pg) or ()
    # filling in pg_temp is part of loading, not an epoch of its own
    cluster.map = replace(cluster.map, pg_temp={k: v for k, v in temps.items() if v})

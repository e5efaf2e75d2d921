"""What an mgr's API tells of PGs, OSDs and pools at one moment, in plain values.

Copied into the probe module's folder and run in the mgr, hence self-contained; the simulated mgr is
asked by the same functions.
"""

from __future__ import annotations

from typing import Any, Dict, List

NAMES = ("osd_map", "osd_map_crush", "osd_map_tree", "pg_stats", "pg_progress", "pg_status",
         "pool_stats", "osd_stats", "df", "health")
"""Structures of `get()` whose types and keys are compared."""

UNTOLD: Dict[str, Any] = {
    "up": [], "acting": [], "state": "unknown",
    "stat_sum": {"num_objects": 0, "num_objects_misplaced": 0, "num_objects_degraded": 0}}
"""Of a PG that nobody has reported."""


def view_of(module: Any) -> Dict[str, Any]:
    """The placement and the counts of every PG."""
    osdmap = module.get_osdmap()
    dump = osdmap.dump()
    stats = {record["pgid"]: record for record in module.get("pg_stats")["pg_stats"]}
    pgs = {}
    for pool in dump["pools"]:
        for position in range(pool["pg_num"]):
            pgid = f"{pool['pool']}.{position:x}"
            pgs[pgid] = _pg(osdmap.pg_to_up_acting_osds(pool["pool"], position),
                            stats.get(pgid, UNTOLD))
    return {
        "epoch": dump["epoch"], "pgs": pgs,
        "pools": {pool["pool_name"]: _pool(pool) for pool in dump["pools"]},
        "osds": {str(osd["osd"]): _osd(osd) for osd in dump["osds"]},
        "pg_temp": {entry["pgid"]: list(entry["osds"]) for entry in dump["pg_temp"]},
        "upmap_items": {entry["pgid"]: _pairs(entry) for entry in dump["pg_upmap_items"]}}


def _pg(placed: Dict[str, Any], record: Dict[str, Any]) -> Dict[str, Any]:
    sums = record["stat_sum"]
    return {"up": list(placed["up"]), "acting": list(placed["acting"]),
            "up_primary": placed["up_primary"], "acting_primary": placed["acting_primary"],
            "told_up": list(record["up"]), "told_acting": list(record["acting"]),
            "objects": sums["num_objects"], "misplaced": sums["num_objects_misplaced"],
            "degraded": sums["num_objects_degraded"], "state": record["state"]}


def _pool(pool: Dict[str, Any]) -> Dict[str, Any]:
    return {key: pool[key] for key in ("pool", "size", "pg_num", "pg_placement_num",
                                       "pg_num_target", "pg_placement_num_target")}


def _osd(osd: Dict[str, Any]) -> Dict[str, Any]:
    return {"up": osd["up"], "in": osd["in"], "weight": round(osd["weight"], 4),
            "primary_affinity": round(osd["primary_affinity"], 4)}


def _pairs(entry: Dict[str, Any]) -> List[List[int]]:
    return [[pair["from"], pair["to"]] for pair in entry["mappings"]]

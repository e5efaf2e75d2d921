"""Turns a made cluster into a saved state in the gather layout, with bytes of our own invention.

Sizes and statistics are made up: osdmaptool knows placements, not data. The maps (osd dump, CRUSH
dump, up and acting of every PG) are what the real tools print.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any, Dict, List, NamedTuple

from ..ceph_tools import ITEM_NONE
from .cluster import MappedCluster

MEAN_FILL, HIGHEST_FILL = 0.62, 0.86  # of all OSDs, of the fullest one before balancing
FIXED_BYTES = 1 << 30  # what an empty OSD uses
BYTES_PER_OBJECT = 600  # metadata on each OSD that holds a shard of it
OBJECT_BYTES = 4 << 20


class PGContent(NamedTuple):
    """What a PG holds: bytes and objects as clients see them, and its omap."""

    num_bytes: int
    num_objects: int
    omap_bytes: int


def invent_content(cluster: MappedCluster, age: int) -> Dict[str, PGContent]:
    """Unequal PGs, a few of them empty, that fill the cluster to MEAN_FILL.

    Less than that where the fullest OSD would pass HIGHEST_FILL. Another `age`, other sizes.
    """
    rng = random.Random(f"{cluster.spec.name} at {age}")
    weight_of = {}
    for pgid in sorted(cluster.pgs):
        pool = cluster.pool_spec(pgid)
        chunks = pool.k or 1
        average = pool.share * chunks / (pool.pg_num * pool.size)
        empty = rng.random() < 0.04
        weight_of[pgid] = 0.0 if empty else average * rng.lognormvariate(0.0, 0.35)
    load: Dict[int, float] = {}
    for pgid, weight in weight_of.items():
        for osd in cluster.pgs[pgid].up:
            load[osd] = load.get(osd, 0.0) + weight / (cluster.pool_spec(pgid).k or 1)
    load.pop(ITEM_NONE, None)
    total = sum(cluster.spec.osd_size(osd) for osd in range(len(cluster.spec.topology.weights)))
    scale = min(MEAN_FILL * total / sum(load.values()),
                min(HIGHEST_FILL * cluster.spec.osd_size(osd) / share
                    for osd, share in load.items() if share))
    content = {}
    for pgid, weight in weight_of.items():
        num_bytes = int(weight * scale)
        objects = num_bytes // OBJECT_BYTES
        omap = int(num_bytes * 0.02) if cluster.pool_spec(pgid).omap else 0
        content[pgid] = PGContent(num_bytes, objects, omap)
    return content


def gathered_state(cluster: MappedCluster, age: int = 0) -> Dict[str, Any]:
    """The whole state, as `sim save` or a gather script would have written it."""
    content = invent_content(cluster, age)
    osd_dump = dict(cluster.osd_dump)
    # --createsimple leaves these unset; a real cluster never does
    osd_dump.update({
        "fsid": "00000000-0000-4000-8000-000000000001", "full_ratio": 0.95,
        "backfillfull_ratio": 0.9, "nearfull_ratio": 0.85,
        "flags": "sortbitwise,recovery_deletes,purged_snapdirs,pglog_hardlimit",
        "require_min_compat_client": "luminous", "require_osd_release": "pacific"})
    stats = osd_stats(cluster, content)
    return {
        "stateversion": 1, "timestamp": "2026-01-01T00:00:00", "versions": {},
        "health_detail": {"status": "HEALTH_OK", "checks": {}, "mutes": []},
        "osd_dump": osd_dump,
        "pg_dump": {"pg_ready": True, "pg_map": {
            "version": 1, "stamp": "2026-01-01T00:00:00.000000+0000",
            "pg_stats": _pg_stats(cluster, content), "osd_stats": stats,
            "pool_stats": _pool_stats(cluster, content)}},
        "osd_df_dump": {"nodes": _osd_df(cluster, stats), "stray": [], "summary": {}},
        "osd_df_tree_dump": {"nodes": _tree(cluster), "stray": [], "summary": {}},
        "df_dump": _df(cluster, stats, content),
        "pool_dump": [dict(pool, pool_id=pool["pool"]) for pool in osd_dump["pools"]],
        "crush_dump": cluster.crush_dump,
        "crush_class_osds": _class_osds(cluster)}


def write_state(cluster: MappedCluster, age: int = 0) -> Path:
    """Writes the state as plain JSON beside the cluster's map; the path."""
    path = cluster.path.with_name(f"state-{age}.json")
    path.write_text(json.dumps(gathered_state(cluster, age)))
    return path


def _pg_stats(cluster: MappedCluster, content: Dict[str, PGContent]) -> List[Dict[str, Any]]:
    records = []
    for pgid, pg in cluster.pgs.items():
        size = cluster.pool_spec(pgid).size
        held = content[pgid]
        members = [osd for osd in pg.acting if osd != ITEM_NONE]
        missing = size - len(members)
        records.append({
            "pgid": pgid, "up": list(pg.up), "acting": list(pg.acting),
            "state": "active+undersized+degraded" if missing else "active+clean",
            "up_primary": members[0] if members else -1,
            "acting_primary": members[0] if members else -1,
            "version": "10'100", "reported_seq": 100, "reported_epoch": 10,
            "stat_sum": dict(_stat_sum([held], size),
                             num_objects_degraded=missing * held.num_objects)})
    return records


def _stat_sum(contents: List[PGContent], size: int) -> Dict[str, int]:
    objects = sum(held.num_objects for held in contents)
    return {"num_bytes": sum(held.num_bytes for held in contents), "num_objects": objects,
            "num_object_copies": objects * size, "num_object_clones": 0,
            "num_objects_misplaced": 0, "num_objects_degraded": 0, "num_objects_missing": 0,
            "num_objects_unfound": 0,
            "num_omap_bytes": sum(held.omap_bytes for held in contents),
            "num_omap_keys": 0, "num_objects_omap": 0}


def _pool_stats(cluster: MappedCluster, content: Dict[str, PGContent]) -> List[Dict[str, Any]]:
    return [{"poolid": number, "num_pg": pool.pg_num, "stat_sum": _stat_sum(
        [content[pgid] for pgid in content if pgid.startswith(f"{number}.")], pool.size)}
        for number, pool in enumerate(cluster.spec.pools, start=1)]


def osd_stats(cluster: MappedCluster, content: Dict[str, PGContent]) -> List[Dict[str, Any]]:
    """What each device reports: its shards, metadata by object, a fixed part. Nothing if down."""
    count = len(cluster.spec.topology.weights)
    data, omap, meta, pgs = ([0] * count for _ in range(4))
    for pgid, pg in cluster.pgs.items():
        held, chunks = content[pgid], cluster.pool_spec(pgid).k or 1
        for osd in pg.acting:
            if osd != ITEM_NONE:
                data[osd] += held.num_bytes // chunks
                omap[osd] += held.omap_bytes
                meta[osd] += held.num_objects * BYTES_PER_OBJECT
                pgs[osd] += 1
    records = []
    for osd in range(count):
        if osd in cluster.spec.down | cluster.spec.missing:
            continue
        total, metadata = cluster.spec.osd_size(osd), meta[osd] + FIXED_BYTES
        used = data[osd] + omap[osd] + metadata
        records.append({
            "osd": osd, "num_pgs": pgs[osd], "kb": total >> 10, "kb_used": used >> 10,
            "kb_used_data": data[osd] >> 10, "kb_used_omap": omap[osd] >> 10,
            "kb_used_meta": metadata >> 10, "kb_avail": (total - used) >> 10,
            "statfs": {"total": total, "available": total - used, "internally_reserved": 0,
                       "allocated": data[osd], "data_stored": data[osd], "data_compressed": 0,
                       "data_compressed_allocated": 0, "data_compressed_original": 0,
                       "omap_allocated": omap[osd], "internal_metadata": metadata}})
    return records


def _osd_df(cluster: MappedCluster, reports: List[Dict[str, Any]]) -> List[Dict[str, Any]]:
    topology, nodes = cluster.spec.topology, []
    for stats in reports:
        osd = stats["osd"]
        nodes.append({
            "id": osd, "name": f"osd.{osd}", "type": "osd", "type_id": 0, "depth": 2,
            "device_class": topology.classes[osd] or "", "crush_weight": topology.weights[osd],
            "reweight": 0.0 if osd in cluster.spec.out else cluster.spec.reweights.get(osd, 1.0),
            "kb": stats["kb"], "kb_used": stats["kb_used"], "kb_used_data": stats["kb_used_data"],
            "kb_used_omap": stats["kb_used_omap"], "kb_used_meta": stats["kb_used_meta"],
            "kb_avail": stats["kb_avail"], "pool_weights": {}, "var": 1.0, "status": "up",
            "utilization": 100.0 * stats["kb_used"] / stats["kb"], "pgs": stats["num_pgs"]})
    return nodes


def _tree(cluster: MappedCluster) -> List[Dict[str, Any]]:
    return [{"id": bucket["id"], "name": bucket["name"], "type": bucket["type_name"],
             "type_id": bucket["type_id"], "children": [item["id"] for item in bucket["items"]]}
            for bucket in cluster.crush_dump["buckets"] if "~" not in bucket["name"]]


def _class_osds(cluster: MappedCluster) -> Dict[str, List[int]]:
    found: Dict[str, List[int]] = {}
    for osd, device_class in enumerate(cluster.spec.topology.classes):
        if device_class and osd not in cluster.spec.missing:
            found.setdefault(device_class, []).append(osd)
    return found


def _df(cluster: MappedCluster, reports: List[Dict[str, Any]],
        content: Dict[str, PGContent]) -> Dict[str, Any]:
    by_class = {name: _totals([stats for stats in reports if stats["osd"] in osds])
                for name, osds in _class_osds(cluster).items()}
    pools = []
    for number, pool in enumerate(cluster.spec.pools, start=1):
        held = [content[pgid] for pgid in content if pgid.startswith(f"{number}.")]
        stored = sum(one.num_bytes for one in held)
        used = stored * pool.size // (pool.k or 1)
        pools.append({"name": pool.name, "id": number, "stats": {
            "stored": stored, "stored_data": stored, "stored_omap": 0,
            "objects": sum(one.num_objects for one in held), "kb_used": used >> 10,
            "bytes_used": used, "percent_used": 0.5, "max_avail": 1 << 40, "quota_objects": 0,
            "quota_bytes": 0}})
    return {"stats": _totals(reports), "stats_by_class": by_class, "pools": pools}


def _totals(reports: List[Dict[str, Any]]) -> Dict[str, Any]:
    total = sum(stats["statfs"]["total"] for stats in reports)
    avail = sum(stats["statfs"]["available"] for stats in reports)
    return {"total_bytes": total, "total_avail_bytes": avail, "total_used_bytes": total - avail,
            "total_used_raw_bytes": total - avail,
            "total_used_raw_ratio": (total - avail) / total if total else 0.0}

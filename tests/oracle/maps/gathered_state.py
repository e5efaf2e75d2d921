"""Turns a made cluster into a saved state in the gather layout, with bytes of our own invention.

Sizes and statistics are made up: osdmaptool knows placements, not data. The maps (osd dump, CRUSH
dump, up and acting of every PG) are what the real tools print.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any, Dict, List, NamedTuple

from tests.support.clusters.state_records import osd_record, pg_record

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
    shard_of: Dict[str, float] = {}
    load = dict.fromkeys(range(len(cluster.spec.topology.weights)), 0.0)
    sizes = {osd: cluster.spec.osd_size(osd) for osd in load}
    for pgid in sorted(cluster.pgs):
        pool = cluster.pool_spec(pgid)
        shard_of[pgid] = 0.0
        if rng.random() >= 0.04:
            shard_of[pgid] = pool.share / (pool.pg_num * pool.size) * rng.lognormvariate(0.0, 0.35)
        for osd in cluster.pgs[pgid].up:
            if osd != ITEM_NONE:
                load[osd] += shard_of[pgid]
    scale = MEAN_FILL * sum(sizes.values()) / sum(load.values())
    highest = max(share / sizes[osd] for osd, share in load.items() if share)
    scale = min(scale, HIGHEST_FILL / highest)
    content = {}
    for pgid, weight in shard_of.items():
        pool = cluster.pool_spec(pgid)
        num_bytes = int(weight * scale * (pool.k or 1))
        omap = int(num_bytes * 0.02) if pool.omap else 0
        content[pgid] = PGContent(num_bytes, num_bytes // OBJECT_BYTES, omap)
    return content


def gathered_state(cluster: MappedCluster, age: int = 0) -> Dict[str, Any]:
    """The whole state, as `sim save` or a gather script would have written it."""
    content = invent_content(cluster, age)
    # --createsimple leaves these unset; a real cluster never does
    osd_dump = {
        **cluster.osd_dump,
        "fsid": "00000000-0000-4000-8000-000000000001",
        "full_ratio": 0.95,
        "backfillfull_ratio": 0.9,
        "nearfull_ratio": 0.85,
        "flags": "sortbitwise,recovery_deletes,purged_snapdirs,pglog_hardlimit",
        "require_min_compat_client": "luminous",
        "require_osd_release": "pacific"}
    pg_map = {"pg_stats": _pg_stats(cluster, content), "osd_stats": _osd_stats(cluster, content)}
    return {"stateversion": 1, "timestamp": "2026-01-01T00:00:00", "osd_dump": osd_dump,
            "crush_dump": cluster.crush_dump, "pg_dump": {"pg_map": pg_map}}


def write_state(cluster: MappedCluster, age: int = 0) -> Path:
    """Writes the state as plain JSON beside the cluster's map; the path."""
    path = cluster.path.with_name(f"state-{age}.json")
    path.write_text(json.dumps(gathered_state(cluster, age)))
    return path


def _pg_stats(cluster: MappedCluster, content: Dict[str, PGContent]) -> List[Dict[str, Any]]:
    records = []
    for pgid, pg in cluster.pgs.items():
        size, held = cluster.pool_spec(pgid).size, content[pgid]
        missing = size - len([osd for osd in pg.acting if osd != ITEM_NONE])
        state = "active+clean"
        if missing:
            state = "active+undersized+degraded"
        records.append(dict(pg_record(
            pgid, pg.up, pg.acting, state, *held, size,
            num_objects_degraded=missing * held.num_objects), reported_epoch=10))
    return records


def _osd_stats(cluster: MappedCluster, content: Dict[str, PGContent]) -> List[Dict[str, Any]]:
    """What each device reports: its shards, metadata by object, a fixed part. Nothing if down."""
    data, omap, objects, pgs = [Counter[int]() for _ in range(4)]
    for pgid, pg in cluster.pgs.items():
        held, chunks = content[pgid], cluster.pool_spec(pgid).k or 1
        pgs.update(pg.acting)
        for osd in pg.acting:
            data[osd] += held.num_bytes // chunks
            omap[osd] += held.omap_bytes
            objects[osd] += held.num_objects
    records = []
    for osd in range(len(cluster.spec.topology.weights)):
        if osd not in cluster.spec.down | cluster.spec.missing:
            metadata = FIXED_BYTES + objects[osd] * BYTES_PER_OBJECT
            records.append(osd_record(
                osd, cluster.spec.osd_size(osd), data[osd], omap[osd], metadata, pgs[osd]))
    return records

"""Made clusters as state files."""
from __future__ import annotations

from typing import Any, Dict

from tests.support.clusters.state_records import pg_record
from tests.support.clusters.unit_cluster import Cluster

from .made.shapes import BYTES_PER_OBJECT, FIXED_BYTES


def state_of(cluster: Cluster) -> Dict[str, Any]:
    """A made cluster in the layout of a state file."""
    osd_map = cluster.osd_map()
    metadata = dict.fromkeys(cluster.osds, FIXED_BYTES)
    data = dict.fromkeys(cluster.osds, 0)
    omap = dict.fromkeys(cluster.osds, 0)
    pg_stats = []
    for pgid, up in cluster.up.items():
        record = cluster.records[pgid]
        for osd in up:
            metadata[osd] += record.num_objects * BYTES_PER_OBJECT
            omap[osd] += record.omap_bytes
            data[osd] += cluster.shard_bytes(pgid) - record.omap_bytes
        stat = pg_record(pgid, up, up, record.state, record.num_bytes, record.num_objects,
                         record.omap_bytes)
        stat.update(up_primary=up[0], acting_primary=up[0], reported_epoch=record.reported_epoch)
        pg_stats.append(stat)
    osd_stats = []
    for stats in cluster.osd_stats():
        osd = stats["osd"]
        stats["num_pgs"] = sum(osd in up for up in cluster.up.values())
        stats["statfs"].update(
            allocated=data[osd], data_stored=data[osd], omap_allocated=omap[osd],
            internal_metadata=metadata[osd])
        osd_stats.append(stats)
    return {"stateversion": 1, "timestamp": "2026-01-01T00:00:00", "osd_dump": osd_map,
            "pg_dump": {"pg_map": {"version": 1, "pg_stats": pg_stats, "osd_stats": osd_stats}},
            "crush_dump": cluster.crush}

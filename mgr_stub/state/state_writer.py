"""Writing the simulated cluster to a state file, in the layout of jj-balancer's `gather`."""

from __future__ import annotations

import errno
import json
import lzma
from collections import Counter
from datetime import datetime, timezone
from typing import Any, Dict, List

from ..cluster.cluster import Cluster
from ..errors import StubError
from ..simulation import statistics


def save_state(cluster: Cluster, path: str) -> None:
    """Writes the state, xz-compressed if the name ends in .xz; StubError if that fails."""
    text = json.dumps(state_of(cluster), separators=(",", ":")).encode()
    try:
        with open(path, "wb") as file:
            file.write(lzma.compress(text, preset=2) if path.endswith(".xz") else text)
    except OSError as error:
        raise StubError(error.errno or errno.EIO,
                        f"{path}: cannot be written: {error.strerror}") from None


def state_of(cluster: Cluster) -> Dict[str, Any]:
    """All keys of the layout, with the present answers of the `ceph` commands behind them."""
    osd_dump = cluster.map.dump(cluster.release)
    moment = datetime.fromtimestamp(cluster.clock(), timezone.utc).replace(tzinfo=None)
    return {
        "stateversion": 1,
        "timestamp": moment.isoformat(),
        "versions": cluster.extras.get("versions") or {},
        "health_detail": cluster.extras.get("health_detail") or {
            "status": "HEALTH_OK", "checks": {}, "mutes": []},
        "osd_dump": osd_dump,
        "pg_dump": {"pg_ready": True, "pg_map": statistics.pg_dump(cluster)},
        "osd_df_dump": {"nodes": osd_df_nodes(cluster), "stray": [], "summary": {}},
        "osd_df_tree_dump": {"nodes": _tree_nodes(cluster), "stray": [], "summary": {}},
        "df_dump": statistics.df(cluster),
        "pool_dump": [{**pool, "pool_id": pool["pool"]} for pool in osd_dump["pools"]],
        "crush_dump": cluster.crush.dump(cluster.release),
        "crush_class_osds": _class_osds(cluster),
    }


def osd_df_nodes(cluster: Cluster) -> List[Dict[str, Any]]:
    """The nodes of `ceph osd df`; PGs are counted by acting sets (PGMap::stat_pg_add in Ceph)."""
    pgs = Counter(osd for pgid in cluster.pgs for osd in cluster.map.acting(pgid))
    from_file = cluster.extras.get("osd_df_dump") or {}
    known = {node["id"]: node for node in from_file.get("nodes", [])}
    space = statistics.df(cluster)["stats"]
    mean = space["total_used_raw_ratio"]
    nodes = []
    for osd, entry in sorted(cluster.map.osds.items()):
        record = cluster.usage[osd].dump()
        used = cluster.usage[osd].utilization
        node = {"id": osd, "device_class": cluster.crush.classes.get(osd, ""),
                "name": f"osd.{osd}", "type": "osd", "type_id": 0, "depth": 2, "pool_weights": {},
                **known.get(osd, {}),
                "crush_weight": cluster.crush.osd_weight(osd), "reweight": entry["weight"],
                "utilization": used * 100, "var": used / mean if mean else 0.0,
                "pgs": pgs[osd], "status": "up" if entry["up"] else "down"}
        for key in ("kb", "kb_used", "kb_used_data", "kb_used_omap", "kb_used_meta", "kb_avail"):
            node[key] = record.get(key, 0)
        nodes.append(node)
    return nodes


def _tree_nodes(cluster: Cluster) -> List[Dict[str, Any]]:
    """The buckets (shadow trees aside) and OSDs of `ceph osd df tree`."""
    nodes: List[Dict[str, Any]] = []
    for bucket in cluster.crush.buckets.values():
        if "~" not in bucket["name"]:
            nodes.append({"id": bucket["id"], "name": bucket["name"],
                          "type": bucket["type_name"], "type_id": bucket.get("type_id", 1),
                          "children": [item["id"] for item in bucket["items"]]})
    return nodes + osd_df_nodes(cluster)


def _class_osds(cluster: Cluster) -> Dict[str, List[int]]:
    found: Dict[str, List[int]] = {}
    for osd, name in sorted(cluster.crush.classes.items()):
        if cluster.map.exists(osd):
            found.setdefault(name, []).append(osd)
    return found

"""get('osd_map_tree'): the CRUSH tree with the state of every OSD, as in `ceph osd tree`."""

from __future__ import annotations

from typing import Any, Dict, List, Set

from ..osdmap.crush_map import CrushMap
from ..osdmap.osd_map import OsdMap


def osd_tree(osdmap: OsdMap, crush: CrushMap) -> Dict[str, Any]:
    """Buckets (without shadow trees) and OSDs; OSDs of no bucket are strays. New objects."""
    nodes: List[Dict[str, Any]] = []
    placed: Set[int] = set()
    for bucket in crush.buckets.values():
        if "~" in str(bucket["name"]):
            continue
        children = [int(item["id"]) for item in bucket["items"]]
        nodes.append({"id": bucket["id"], "name": bucket["name"], "type": bucket["type_name"],
                      "type_id": bucket.get("type_id", 1), "children": children})
        for osd in children:
            if osd >= 0:
                placed.add(osd)
                nodes.append(_osd(osdmap, crush, osd))
    stray = [_osd(osdmap, crush, osd) for osd in sorted(osdmap.osds) if osd not in placed]
    return {"nodes": nodes, "stray": stray}


def _osd(osdmap: OsdMap, crush: CrushMap, osd: int) -> Dict[str, Any]:
    entry = osdmap.osds.get(osd, {})
    state = entry.get("state", ())
    status = "up" if entry.get("up") else "destroyed" if "destroyed" in state else "down"
    kind = {"device_class": crush.classes[osd]} if osd in crush.classes else {}
    return {"id": osd, **kind, "type": "osd", "type_id": 0,
            "crush_weight": crush.osd_weight(osd), "depth": 2, "pool_weights": {},
            "exists": int(osdmap.exists(osd)), "status": status,
            "reweight": osdmap.reweight(osd),
            "primary_affinity": float(entry.get("primary_affinity", 1.0)), "name": f"osd.{osd}"}

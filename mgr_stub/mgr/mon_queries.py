"""Read-only monitor commands: answered at once, without an epoch or a log entry.

get('osd_map_tree'): the CRUSH tree with the state of every OSD, as in `ceph osd tree`.

`osd ok-to-stop`: would PGs be inactive without some OSDs? As DaemonServer of the mgr answers.

get('health') in the shape of real daemons, and Ceph's own checks of too full OSDs.
"""
from __future__ import annotations

import errno
import json
from typing import Any, Callable, Dict, List, Mapping, Optional, Set, Tuple

from ..cluster import pg_reports
from ..cluster.cluster import Cluster
from ..cluster.usage import OsdUsage
from ..crush.hashes import NONE
from ..osdmap.crush_map import CrushMap
from ..osdmap.osd_map import OsdMap


def answer_to(command: Dict[str, Any], osdmap: OsdMap, release: int) -> Optional[str]:
    """Returns the output of a known query; None for any other command."""
    prefix = command.get("prefix", "")
    if prefix == "osd dump" and command.get("format") == "json":
        return json.dumps(osdmap.dump(release))
    query = _QUERIES.get(prefix)
    if query is None:
        return None
    return query(osdmap)


def _osd_stat(osdmap: OsdMap) -> str:
    """Returns the answer of `ceph osd stat`; the line of flags is present only if one is set."""
    up = sum(1 for osd in osdmap.osds.values() if osd["up"])
    inside = sum(1 for osd in osdmap.osds.values() if osd["in"])
    text = f"{len(osdmap.osds)} osds: {up} up, {inside} in; epoch: e{osdmap.epoch}\n"
    flags = sorted(osdmap.flags - _HIDDEN_FLAGS)
    if flags:
        text += f"flags {','.join(flags)}\n"
    return text


#: Flags of every map, which `osd stat` leaves out.
_HIDDEN_FLAGS = frozenset(("sortbitwise", "recovery_deletes", "purged_snapdirs", "pglog_hardlimit"))

_QUERIES: Dict[str, Callable[[OsdMap], str]] = {
    "osd stat": _osd_stat,
    "osd get-require-min-compat-client": lambda osdmap: osdmap.min_compat_client + "\n",
}


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
    status = "down"
    if entry.get("up"):
        status = "up"
    elif "destroyed" in entry.get("state", ()):
        status = "destroyed"
    kind: Dict[str, str] = {}
    if osd in crush.classes:
        kind["device_class"] = crush.classes[osd]
    return {"id": osd, **kind, "type": "osd", "type_id": 0,
            "crush_weight": crush.osd_weight(osd), "depth": 2, "pool_weights": {},
            "exists": int(osdmap.exists(osd)), "status": status,
            "reweight": osdmap.reweight(osd),
            "primary_affinity": float(entry.get("primary_affinity", 1.0)), "name": f"osd.{osd}"}


def ok_to_stop(cluster: Cluster, osds: Set[int]) -> Tuple[int, str, str]:
    """Returns (0 or -EBUSY, JSON, a sentence). PGs that nobody has reported yet count as not ok."""
    refused = unknown = 0
    for pg in cluster.pgs.values():
        state = pg_reports.state_of(cluster, pg).split("+")
        if "unknown" in state:
            unknown += 1
            continue
        acting = {osd for osd in cluster.map.acting(pg.pgid) if osd != NONE}
        if acting & osds and ("active" not in state
                              or len(acting - osds) < cluster.min_size_of(pg)):
            refused += 1
    answer = json.dumps({"ok_to_stop": not (refused or unknown), "osds": sorted(osds)})
    if unknown:
        return -errno.EBUSY, answer, (
            f"{unknown} pgs have unknown state; cannot draw any conclusions")
    if refused:
        return -errno.EBUSY, answer, (
            f"unsafe to stop osd(s) at this time ({refused} PGs are or would become offline)")
    return 0, answer, ""


def health_status(checks: Mapping[str, Mapping[str, Any]]) -> str:
    """Returns HEALTH_OK, HEALTH_WARN or HEALTH_ERR, by the most severe check."""
    severe = any(check.get("severity") == "error" for check in checks.values())
    if severe:
        return "HEALTH_ERR"
    if checks:
        return "HEALTH_WARN"
    return "HEALTH_OK"


#: Of Ceph's own checks of OSDs that are too full, by the ratio that is passed; highest first.
_SEVERITIES = {"full": "error", "backfillfull": "warning", "nearfull": "warning"}


def fullness(osdmap: OsdMap, usage: Mapping[int, OsdUsage]) -> Dict[str, Dict[str, Any]]:
    """Returns Ceph's own checks of OSDs that are too full, each in the highest that it has passed.
    """
    found: Dict[str, Dict[str, Any]] = {}
    levels = [(osdmap.ratio(f"{name}_ratio"), name) for name in _SEVERITIES]
    for osd, used in sorted(usage.items()):
        record = osdmap.osds.get(osd)
        name = next((name for ratio, name in levels if used.utilization >= ratio), None)
        if record is not None and record["up"] and name is not None:
            check = found.setdefault(f"OSD_{name.upper()}", {
                "severity": _SEVERITIES[name], "count": 0, "detail": []})
            check["count"] += 1
            check["detail"].append(f"osd.{osd} is {name}")
            check["summary"] = f"{check['count']} {name} osd(s)"
    return found


def _shown_check(check: Mapping[str, Any]) -> Dict[str, Any]:
    severity = "HEALTH_WARN"
    if check.get("severity") == "error":
        severity = "HEALTH_ERR"
    return {
        "severity": severity,
        "summary": {"message": check.get("summary", ""), "count": check.get("count", 0)},
        "detail": [{"message": line} for line in check.get("detail", [])],
        "muted": False}


def health(checks: Mapping[str, Mapping[str, Any]]) -> Dict[str, str]:
    """Returns get('health'): contains JSON as of `ceph health detail --format json`."""
    shown = {code: _shown_check(check) for code, check in checks.items()}
    return {"json": json.dumps({"status": health_status(checks), "checks": shown, "mutes": []})}

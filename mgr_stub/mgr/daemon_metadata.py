"""get('health') in the shape of real daemons, and Ceph's own checks of too full OSDs."""

from __future__ import annotations

import json
from typing import Any, Dict, Mapping

from ..cluster.usage import OsdUsage
from ..osdmap.osd_map import OsdMap


def health_status(checks: Mapping[str, Mapping[str, Any]]) -> str:
    """HEALTH_OK, HEALTH_WARN or HEALTH_ERR, by the most severe check."""
    severe = any(check.get("severity") == "error" for check in checks.values())
    return "HEALTH_ERR" if severe else "HEALTH_WARN" if checks else "HEALTH_OK"


def fullness(osdmap: OsdMap, usage: Mapping[int, OsdUsage]) -> Dict[str, Dict[str, Any]]:
    """Ceph's own checks of OSDs that are too full, each in the highest that it has passed."""
    found: Dict[str, Dict[str, Any]] = {}
    levels = [(osdmap.ratio(f"{name}_ratio"), name) for name in
              ("full", "backfillfull", "nearfull")]
    for osd, used in sorted(usage.items()):
        record = osdmap.osds.get(osd)
        name = next((name for ratio, name in levels if used.utilization >= ratio), None)
        if record is not None and record["up"] and name is not None:
            check = found.setdefault(f"OSD_{name.upper()}", {
                "severity": "error" if name == "full" else "warning", "count": 0, "detail": []})
            check["count"] += 1
            check["detail"].append(f"osd.{osd} is {name}")
            check["summary"] = f"{check['count']} {name} osd(s)"
    return found


def health(checks: Mapping[str, Mapping[str, Any]]) -> Dict[str, str]:
    """get('health'): contains JSON as of `ceph health detail --format json`."""
    shown = {code: {"severity": f"HEALTH_{'ERR' if check.get('severity') == 'error' else 'WARN'}",
                    "summary": {"message": check.get("summary", ""),
                                "count": check.get("count", 0)},
                    "detail": [{"message": line} for line in check.get("detail", [])],
                    "muted": False} for code, check in checks.items()}
    return {"json": json.dumps({"status": health_status(checks), "checks": shown, "mutes": []})}

"""get('osd_metadata'), get('mgr_map') and get('health') in the shapes of real daemons.

Keys that modules use have real values; all others are present, with empty values.
"""

from __future__ import annotations

import json
from typing import Any, Dict, Mapping, Sequence

from ..cluster.usage import OsdUsage
from ..osdmap.osd_map import RELEASE_NAMES, OsdMap

#: Keys of every OSD's metadata.
_OSD_KEYS = (
    "arch", "back_addr", "back_iface", "bluefs", "bluefs_dedicated_db", "bluefs_dedicated_wal",
    "bluefs_single_shared_device", "bluestore_bdev_access_mode", "bluestore_bdev_block_size",
    "bluestore_bdev_devices", "bluestore_bdev_driver", "bluestore_bdev_path",
    "bluestore_bdev_rotational", "bluestore_bdev_size", "bluestore_bdev_support_discard",
    "bluestore_bdev_type", "ceph_version_when_created", "container_name", "cpu", "created_at",
    "default_device_class", "device_ids", "device_paths", "devices", "distro",
    "distro_description", "distro_version", "front_addr", "front_iface", "hb_back_addr",
    "hb_front_addr", "journal_rotational", "kernel_description", "kernel_version", "mem_swap_kb",
    "mem_total_kb", "network_numa_unknown_ifaces", "objectstore_numa_unknown_devices", "os",
    "osd_data", "osdspec_affinity")

#: Additional keys in Ceph 20.
_OSD_KEYS_20 = ("bluestore_allocation_from_file", "bluestore_allocator",
                 "bluestore_bdev_optimal_io_size", "bluestore_onode_segmentation",
                 "bluestore_write_mode")

_ADDRESSES = {"addrvec": [{"type": "v2", "nonce": 1, "addr": "127.0.0.1:6800"}]}


def osd_metadata(host: str, rotational: bool, release: int, version: str,
                 release_name: str) -> Dict[str, str]:
    """Metadata of one OSD."""
    keys = _OSD_KEYS + (_OSD_KEYS_20 if release >= 20 else ())
    return {**dict.fromkeys(keys, ""), "hostname": host,
            "osd_objectstore": "bluestore", "bluestore_min_alloc_size": "4096",
            "ceph_version_short": version, "ceph_release": release_name,
            "ceph_version": f"ceph version {version} (simulated) {release_name} (stable)",
            "rotational": "1" if rotational else "0"}


def _first_release(release: int) -> int:
    """The oldest release whose always-on modules are in the mgr map of a release."""
    return 14 if release <= 16 else 15


def mgr_map(name: str, release: int, modules: Sequence[str],
            always_on: Sequence[str]) -> Dict[str, Any]:
    """The mgr map with one active mgr and no standby."""
    shown: Dict[str, Any] = {
        "epoch": 1, "active_gid": 4100, "active_name": name, "active_addrs": _ADDRESSES,
        "active_mgr_features": 0, "available": True, "standbys": [], "modules": list(modules),
        "available_modules": [], "services": {}, "last_failure_osd_epoch": 0,
        "always_on_modules": {
            known: list(always_on) for known in RELEASE_NAMES[_first_release(release) - 1:release]},
        "active_clients": [{"name": "devicehealth", **_ADDRESSES}],
        "active_addr": "127.0.0.1:6800", "active_change": "2026-01-01T00:00:00.000000+0000"}
    if release >= 20:
        shown["flags"] = 0
    return shown


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

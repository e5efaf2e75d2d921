"""`dump-state`: the last reading as JSON, in a layout that tools of Ceph operators use already.

It has one key for the output of each of several `ceph … --format json` commands.
"""
from __future__ import annotations

import errno
import json
import time
from typing import Any, Dict, List, Mapping, Optional, Tuple

from ..runtime.time_slice import grouped
from ..snapshot.model import Reading, pool_of
from .answer import CommandAnswer, CommandError

STATE_VERSION = 1
#: Parts of the osdmap with names or addresses as keys; placement does not depend on them.
_NAMED_IN_KEYS = ("blocklist", "range_blocklist", "crush_node_flags", "device_class_flags")
_ADDRESS_KEYS = ("addr", "addrs", "uuid")
#: Names that every cluster has.
_CLASSES = ("hdd", "ssd", "nvme")
_TYPES = ("osd", "host", "chassis", "rack", "row", "pdu", "pod", "room", "datacenter", "zone",
          "region", "root")


def dump_state(reading: Optional[Reading], anonymous: bool) -> CommandAnswer:
    """The reading as a state file. Raises CommandError before the first reading."""
    if reading is None:
        raise CommandError(errno.EAGAIN, "the cluster has not been looked at yet; a look has been"
                           " started, try again")
    osd_map, crush = _without_names(reading.osd_map, reading.crush) if anonymous else (
        reading.osd_map, reading.crush)
    buckets, devices = crush.get("buckets", []), crush.get("devices", [])
    classes = grouped((device["class"], device["id"]) for device in devices if device.get("class"))
    no_sums = dict.fromkeys((
        "num_bytes", "num_objects", "num_object_copies", "num_objects_degraded",
        "num_objects_misplaced", "num_omap_bytes", "num_omap_keys"), 0)
    statfs = [{"poolid": pool, "osd": osd, "allocated": allocated, "data_stored": stored}
              for pool, osd, allocated, stored in reading.pool_statfs]   # where OSDs tell it
    tree: List[Dict[str, Any]] = [
        {"id": b["id"], "name": b["name"], "type": b["type_name"], "type_id": b.get("type_id", 0),
         "children": [item["id"] for item in b.get("items", [])]}
        for b in buckets if "~" not in b.get("name", "")] + [
            {"id": d["id"], "name": d["name"], "type": "osd", "type_id": 0} for d in devices]
    sizes = {p["pool"]: p["size"] for p in osd_map["pools"]}
    pgs: List[Dict[str, Any]] = []
    for pgid, record in reading.records.items():
        if pgid not in reading.up:
            continue
        up = list(reading.up[pgid])
        acting = list(reading.acting.get(pgid, up))
        objects, size = record.num_objects, sizes.get(pool_of(pgid), 0)
        moving = sum(1 for osd in up if osd not in acting)
        omap = {"num_objects_omap": record.omap_objects} if record.omap_objects >= 0 else {}
        pgs.append({
            "pgid": pgid, "state": record.state, "up": up, "acting": acting,
            "up_primary": up[0] if up else -1, "acting_primary": acting[0] if acting else -1,
            "reported_epoch": record.reported_epoch, "stat_sum": {
                "num_bytes": record.num_bytes, "num_objects": objects, **omap,
                "num_object_copies": objects * size,
                "num_objects_misplaced": int(objects * moving * record.uncopied_ratio),
                "num_objects_degraded": objects * max(0, size - len(acting)),
                "num_omap_bytes": record.omap_bytes, "num_omap_keys": 0}})
    weights = {item["id"]: item["weight"] / 65536.0 for bucket in buckets
               for item in bucket.get("items", []) if item["id"] >= 0}
    states = {o["osd"]: o for o in osd_map["osds"]}
    class_of = {d["id"]: d.get("class", "") for d in devices}
    nodes: List[Dict[str, Any]] = []
    sums: Dict[str, List[int]] = {}   # device class → [bytes, used bytes]
    for stats in reading.osd_stats:
        osd, kb, kb_used = stats["osd"], stats.get("kb", 0), stats.get("kb_used", 0)
        nodes.append({
            "id": osd, "name": f"osd.{osd}", "type": "osd", "type_id": 0,
            "crush_weight": weights.get(osd, 0.0),
            "reweight": float(states.get(osd, {}).get("weight", 1.0)),
            "kb": kb, "kb_used": kb_used, "kb_avail": stats.get("kb_avail", 0),
            "utilization": 100.0 * kb_used / kb if kb else 0.0,
            "pgs": stats.get("num_pgs", 0),
            "status": "up" if states.get(osd, {}).get("up", 1) else "down"})
        of_class = sums.setdefault(class_of.get(osd, ""), [0, 0])
        of_class[0] += 1024 * kb
        of_class[1] += 1024 * kb_used
    total, used = (sum(column) for column in zip(*sums.values(), (0, 0)))
    names = {p["pool"]: p["pool_name"] for p in osd_map["pools"]}
    pools = [{"id": p["poolid"], "name": names[p["poolid"]], "stats": {
        "stored": p["stat_sum"].get("num_bytes", 0), "objects": p["stat_sum"].get("num_objects", 0),
        "bytes_used": p.get("store_stats", {}).get("allocated", 0),
        "max_avail": 0, "percent_used": 0.0,   # not asked for in each look
        "quota_bytes": 0, "quota_objects": 0}}
        for p in reading.pool_stats if p["poolid"] in names]
    state = {
        "stateversion": STATE_VERSION,
        "timestamp": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(reading.taken_at)),
        "versions": {}, "health_detail": {"status": "", "checks": {}, "mutes": []},
        "osd_dump": osd_map, "crush_dump": crush, "crush_class_osds": classes,
        "pg_dump": {"pg_ready": True, "pg_map": {
            "pg_stats": pgs, "osd_stats": list(reading.osd_stats),
            "pool_stats": [dict(pool, stat_sum={**no_sums, **pool.get("stat_sum", {})})
                           for pool in reading.pool_stats],
            **({"pool_statfs": statfs} if statfs else {})}},
        "osd_df_dump": {"nodes": nodes, "stray": [], "summary": {}},
        "osd_df_tree_dump": {"nodes": tree, "stray": [], "summary": {}},
        "df_dump": {
            "stats": {"total_bytes": total, "total_avail_bytes": total - used,
                      "total_used_bytes": used, "total_used_raw_bytes": used},
            "stats_by_class": {name: {
                "total_bytes": size, "total_avail_bytes": size - taken, "total_used_bytes": taken,
                "total_used_raw_bytes": taken, "total_used_raw_ratio": taken / max(1, size)}
                for name, (size, taken) in sums.items() if name}, "pools": pools},
        "pool_dump": [dict(pool, pool_id=pool["pool"]) for pool in osd_map["pools"]]}
    return CommandAnswer(state, json.dumps(state, separators=(",", ":")))


def _without_names(osd_map: Mapping[str, Any],
                   crush: Mapping[str, Any]) -> Tuple[Dict[str, Any], Dict[str, Any]]:
    """Both maps with numbers for the names of pools, CRUSH buckets, types, rules, device classes
    and profiles, without snapshots' names, and without addresses."""
    types = {one["name"]: f"type{one['type_id']}" for one in crush.get("types", [])
             if one["name"] not in _TYPES}
    buckets = crush.get("buckets", [])
    known = {bucket["name"].partition("~")[2] for bucket in buckets}.union(
        device.get("class", "") for device in crush.get("devices", []))
    classes = {   # which sort as the others do: plans depend on the order
        name: f"{max((one for one in _CLASSES if one < name), default='')}class{number:02}"
        for number, name in enumerate(sorted(known.difference(_CLASSES, ("",))))}
    names = {bucket["name"]: f"{types.get(bucket['type_name'], bucket['type_name'])}"
             f"{-bucket['id']}" for bucket in buckets}
    for name in names:   # a shadow of a bucket for a device class
        base, tilde, device_class = name.partition("~")
        if tilde:
            names[name] = f"{names.get(base, base)}~{classes.get(device_class, device_class)}"
    found = osd_map.get("erasure_code_profiles", {})
    profiles = {name: f"profile{number}" for number, name in enumerate(sorted({*found, *(
        pool.get("erasure_code_profile", "") for pool in osd_map["pools"])}.difference(("",))))}
    renamed = _rename(osd_map, {
        "pool_name": {pool["pool_name"]: f"pool{pool['pool']}" for pool in osd_map["pools"]},
        "erasure_code_profile": profiles})
    for pool in renamed["pools"]:
        pool.update(application_metadata={}, pool_snaps=[])
    renamed.update(
        {key: {} for key in _NAMED_IN_KEYS if key in osd_map}, fsid="", cluster_snapshot="",
        erasure_code_profiles={
            profiles[name]: {key: profile[key] for key in ("k", "m", "plugin") if key in profile}
            for name, profile in found.items()})
    return renamed, _rename(crush, {
        "name": {**types, **names}, "item_name": names, "type_name": types, "type": types,
        "class": classes, "rule_name": {rule.get("rule_name", ""): f"rule{rule['rule_id']}"
                                        for rule in crush.get("rules", [])}})


def _rename(value: Any, names: Mapping[str, Mapping[str, str]]) -> Any:
    """A copy without addresses; `names`: key → the new names of what it may hold."""
    if isinstance(value, dict):
        return {key: names[key].get(inner, inner) if key in names else _rename(inner, names)
                for key, inner in value.items() if not key.endswith(_ADDRESS_KEYS)}
    if isinstance(value, (list, tuple)):
        return [_rename(inner, names) for inner in value]
    return value

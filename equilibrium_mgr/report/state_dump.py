"""`dump-state`: the last reading as a state file, in the layout of placementoptimizer's `gather`.

Each key stands for the JSON of one `ceph` command. Operators have tools that read this layout, so
it has sections that this module does not read.
"""
from __future__ import annotations

import errno
import json
import time
from typing import Any, Dict, List, Mapping, Optional, Sequence, Set, Tuple

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
_PROFILE_KEYS = ("k", "m", "plugin")
_NO_SUMS = dict.fromkeys((
    "num_bytes", "num_objects", "num_object_copies", "num_objects_degraded",
    "num_objects_misplaced", "num_omap_bytes", "num_omap_keys"), 0)
_FULL_WEIGHT = 65536.0   # a CRUSH weight of 1

Json = Dict[str, Any]


def dump_state(reading: Optional[Reading], anonymous: bool) -> CommandAnswer:
    """Returns the reading as a state file. Raises CommandError before the first reading."""
    if reading is None:
        raise CommandError(errno.EAGAIN, "the cluster has not been looked at yet; a look has been"
                           " started, try again")
    osd_map = reading.osd_map
    crush = reading.crush
    if anonymous:
        osd_map, crush = _without_names(osd_map, crush)
    state = {
        "stateversion": STATE_VERSION,
        "timestamp": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(reading.taken_at)),
        "versions": {},
        "health_detail": {"status": "", "checks": {}, "mutes": []},
        "osd_dump": osd_map,
        "crush_dump": crush,
        "crush_class_osds": _osds_by_class(crush),
        "pg_dump": {"pg_ready": True, "pg_map": _pg_map(reading)},
        "osd_df_dump": {"nodes": _osd_df(reading, crush), "stray": [], "summary": {}},
        "osd_df_tree_dump": {"nodes": _tree(crush), "stray": [], "summary": {}},
        "df_dump": _df(reading, osd_map, crush),
        "pool_dump": [dict(pool, pool_id=pool["pool"]) for pool in osd_map["pools"]]}
    return CommandAnswer(state, json.dumps(state, separators=(",", ":")))


def _pg_map(reading: Reading) -> Json:
    sizes = {pool["pool"]: pool["size"] for pool in reading.osd_map["pools"]}
    pg_map: Json = {
        "pg_stats": [_pg(reading, pgid, sizes.get(pool_of(pgid), 0)) for pgid in reading.records
                     if pgid in reading.up],
        "osd_stats": list(reading.osd_stats),
        "pool_stats": [dict(pool, stat_sum={**_NO_SUMS, **pool.get("stat_sum", {})})
                       for pool in reading.pool_stats]}
    if reading.pool_statfs:   # if OSDs report it
        pg_map["pool_statfs"] = [
            {"poolid": pool, "osd": osd, "allocated": allocated, "data_stored": stored}
            for pool, osd, allocated, stored in reading.pool_statfs]
    return pg_map


def _pg(reading: Reading, pgid: str, size: int) -> Json:
    """Returns a PG of `ceph pg dump`. `size`: of its pool."""
    record = reading.records[pgid]
    up = list(reading.up[pgid])
    acting = list(reading.acting.get(pgid, up))
    objects = record.num_objects
    moving = sum(1 for osd in up if osd not in acting)
    sums = {
        "num_bytes": record.num_bytes,
        "num_objects": objects,
        "num_object_copies": objects * size,
        "num_objects_misplaced": int(objects * moving * record.uncopied_ratio),
        "num_objects_degraded": objects * max(0, size - len(acting)),
        "num_omap_bytes": record.omap_bytes,
        "num_omap_keys": 0}
    if record.omap_objects >= 0:   # if the mgr knows it
        sums["num_objects_omap"] = record.omap_objects
    return {
        "pgid": pgid,
        "state": record.state,
        "up": up,
        "acting": acting,
        "up_primary": up[0] if up else -1,
        "acting_primary": acting[0] if acting else -1,
        "reported_epoch": record.reported_epoch,
        "stat_sum": sums}


def _osds_by_class(crush: Mapping[str, Any]) -> Dict[str, List[int]]:
    devices = crush["devices"]
    return grouped((device["class"], device["id"]) for device in devices if device.get("class"))


def _osd_df(reading: Reading, crush: Mapping[str, Any]) -> List[Json]:
    """Returns the OSDs of `ceph osd df`."""
    weights = {item["id"]: item["weight"] for bucket in crush["buckets"]
               for item in bucket["items"]}
    entries = {entry["osd"]: entry for entry in reading.osd_map["osds"]}
    return [_osd(stats, entries.get(stats["osd"], {}), weights.get(stats["osd"], 0))
            for stats in reading.osd_stats]


def _osd(stats: Mapping[str, Any], entry: Mapping[str, Any], weight: int) -> Json:
    """Returns an OSD of `ceph osd df`. `entry`: of the osdmap. `weight`: of CRUSH, as it has it."""
    osd = stats["osd"]
    kb = stats.get("kb", 0)
    kb_used = stats.get("kb_used", 0)
    return {
        "id": osd,
        "name": f"osd.{osd}",
        "type": "osd",
        "type_id": 0,
        "crush_weight": weight / _FULL_WEIGHT,
        "reweight": float(entry.get("weight", 1.0)),
        "kb": kb,
        "kb_used": kb_used,
        "kb_avail": stats.get("kb_avail", 0),
        "utilization": 100.0 * kb_used / kb if kb else 0.0,
        "pgs": stats.get("num_pgs", 0),
        "status": "up" if entry.get("up", 1) else "down"}


def _tree(crush: Mapping[str, Any]) -> List[Json]:
    """Returns buckets and OSDs of `ceph osd df tree`, without the shadows of device classes."""
    nodes: List[Json] = []
    for bucket in crush["buckets"]:
        if "~" in bucket["name"]:
            continue
        node = {
            "id": bucket["id"],
            "name": bucket["name"],
            "type": bucket["type_name"],
            "type_id": bucket["type_id"],
            "children": [item["id"] for item in bucket["items"]]}
        nodes.append(node)
    for device in crush["devices"]:
        nodes.append({"id": device["id"], "name": device["name"], "type": "osd", "type_id": 0})
    return nodes


def _df(reading: Reading, osd_map: Mapping[str, Any], crush: Mapping[str, Any]) -> Json:
    """Returns `ceph df`: space of the cluster, of device classes and of pools."""
    stats_of = {stats["osd"]: stats for stats in reading.osd_stats}
    by_class = {}
    for name, osds in _osds_by_class(crush).items():
        by_class[name] = _space([stats_of[osd] for osd in osds if osd in stats_of])
    names = {pool["pool"]: pool["pool_name"] for pool in osd_map["pools"]}
    pools = [_pool_df(pool, names[pool["poolid"]]) for pool in reading.pool_stats
             if pool["poolid"] in names]
    return {"stats": _space(reading.osd_stats), "stats_by_class": by_class, "pools": pools}


def _space(osds: Sequence[Mapping[str, Any]]) -> Json:
    """Returns the space of some OSDs, of which these are the statistics."""
    size = 1024 * sum(stats.get("kb", 0) for stats in osds)
    used = 1024 * sum(stats.get("kb_used", 0) for stats in osds)
    return {
        "total_bytes": size,
        "total_avail_bytes": size - used,
        "total_used_bytes": used,
        "total_used_raw_bytes": used,
        "total_used_raw_ratio": used / max(1, size)}


def _pool_df(pool: Mapping[str, Any], name: str) -> Json:
    """Returns a pool of `ceph df`. A reading has neither MAX AVAIL nor quotas: they are 0."""
    sums = pool["stat_sum"]
    return {"id": pool["poolid"], "name": name, "stats": {
        "stored": sums.get("num_bytes", 0),
        "objects": sums.get("num_objects", 0),
        "bytes_used": pool.get("store_stats", {}).get("allocated", 0),
        "max_avail": 0,
        "percent_used": 0.0,
        "quota_bytes": 0,
        "quota_objects": 0}}


def _without_names(osd_map: Mapping[str, Any], crush: Mapping[str, Any]) -> Tuple[Json, Json]:
    """Returns both maps with numbers for the names of pools, CRUSH buckets, types, rules, device
    classes and profiles, except types and classes that every cluster has. Addresses, uuids and the
    names of pool snapshots are removed."""
    pools = osd_map["pools"]
    found = osd_map["erasure_code_profiles"]
    profiles = _numbered("profile", {*found, *[
        pool["erasure_code_profile"] for pool in pools]})
    renamed = _rename(osd_map, {
        "pool_name": {pool["pool_name"]: f"pool{pool['pool']}" for pool in pools},
        "erasure_code_profile": profiles})
    for pool in renamed["pools"]:
        pool.update(application_metadata={}, pool_snaps=[])
    for key in _NAMED_IN_KEYS:
        if key in osd_map:
            renamed[key] = {}
    kept = {}
    for name, profile in found.items():
        kept[profiles[name]] = {key: profile[key] for key in _PROFILE_KEYS if key in profile}
    renamed.update(fsid="", cluster_snapshot="", erasure_code_profiles=kept)
    types = {one["name"]: f"type{one['type_id']}" for one in crush["types"]
             if one["name"] not in _TYPES}
    classes = _class_names(crush)
    rules = crush["rules"]
    names = _bucket_names(crush, types, classes)
    new_names = {
        "name": {**types, **names},
        "item_name": names,
        "type_name": types,
        "type": types,
        "class": classes,
        "rule_name": {rule["rule_name"]: f"rule{rule['rule_id']}" for rule in rules}}
    return renamed, _rename(crush, new_names)


def _numbered(what: str, names: Set[str]) -> Dict[str, str]:
    """Returns name → its new name, by their order."""
    return {name: f"{what}{number}" for number, name in enumerate(sorted(names - {""}))}


def _class_names(crush: Mapping[str, Any]) -> Dict[str, str]:
    """Returns device class → its new name. The new names sort as the old ones do, because plans
    depend on the order."""
    known = {bucket["name"].partition("~")[2] for bucket in crush["buckets"]}
    known.update(device.get("class", "") for device in crush["devices"])
    names = {}
    for number, name in enumerate(sorted(known.difference(_CLASSES, ("",)))):
        before = max((one for one in _CLASSES if one < name), default="")
        names[name] = f"{before}class{number:02}"
    return names


def _bucket_names(crush: Mapping[str, Any], types: Mapping[str, str],
                  classes: Mapping[str, str]) -> Dict[str, str]:
    """Returns CRUSH bucket → its new name. A bucket has a shadow, BUCKET~CLASS, for each class."""
    names = {}
    for bucket in crush["buckets"]:
        type_name = bucket["type_name"]
        names[bucket["name"]] = f"{types.get(type_name, type_name)}{-bucket['id']}"
    for name in names:
        base, tilde, device_class = name.partition("~")
        if tilde:
            names[name] = f"{names.get(base, base)}~{classes.get(device_class, device_class)}"
    return names


def _rename(value: Any, names: Mapping[str, Mapping[str, str]]) -> Any:
    """Returns a copy without addresses; `names`: key → its values → their new names."""
    if isinstance(value, (list, tuple)):
        return [_rename(inner, names) for inner in value]
    if not isinstance(value, dict):
        return value
    copy = {}
    for key, inner in value.items():
        if key in names:
            copy[key] = names[key].get(inner, inner)
        elif not key.endswith(_ADDRESS_KEYS):
            copy[key] = _rename(inner, names)
    return copy

"""`dump-state`: the last reading as a state file, for bug reports and the simulation.

Its keys stand for `ceph osd dump`, `ceph osd crush dump` and `ceph pg dump`, each as JSON.
"""
from __future__ import annotations

import errno
import json
import time
from typing import Any, Dict, Mapping, Optional, Set, Tuple

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
        "osd_dump": osd_map,
        "crush_dump": crush,
        "pg_dump": {"pg_ready": True, "pg_map": _pg_map(reading)}}
    return CommandAnswer(state, json.dumps(state, separators=(",", ":")))


def _pg_map(reading: Reading) -> Json:
    sizes = {pool["pool"]: pool["size"] for pool in reading.osd_map["pools"]}
    pg_map: Json = {
        "pg_stats": [_pg(reading, pgid, sizes.get(pool_of(pgid), 0)) for pgid in reading.records
                     if pgid in reading.up],
        "osd_stats": list(reading.osd_stats),
        "pool_stats": list(reading.pool_stats)}
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
        "num_omap_bytes": record.omap_bytes}
    if record.omap_objects >= 0:   # if the mgr knows it
        sums["num_objects_omap"] = record.omap_objects
    return {
        "pgid": pgid,
        "state": record.state,
        "up": up,
        "acting": acting,
        "reported_epoch": record.reported_epoch,
        "stat_sum": sums}


def _without_names(osd_map: Mapping[str, Any], crush: Mapping[str, Any]) -> Tuple[Json, Json]:
    """Returns both maps with numbers for the names of pools, CRUSH buckets, types, rules, device
    classes and profiles. Addresses and the names of pool snapshots are removed."""
    pools = osd_map["pools"]
    found = osd_map.get("erasure_code_profiles", {})
    profiles = _numbered("profile", {*found, *[
        pool.get("erasure_code_profile", "") for pool in pools]})
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
    types = {one["name"]: f"type{one['type_id']}" for one in crush.get("types", [])
             if one["name"] not in _TYPES}
    classes = _class_names(crush)
    rules = crush.get("rules", [])
    names = _bucket_names(crush, types, classes)
    new_names = {
        "name": {**types, **names},
        "item_name": names,
        "type_name": types,
        "type": types,
        "class": classes,
        "rule_name": {rule.get("rule_name", ""): f"rule{rule['rule_id']}" for rule in rules}}
    return renamed, _rename(crush, new_names)


def _numbered(what: str, names: Set[str]) -> Dict[str, str]:
    """Returns name → its new name, by their order."""
    return {name: f"{what}{number}" for number, name in enumerate(sorted(names - {""}))}


def _class_names(crush: Mapping[str, Any]) -> Dict[str, str]:
    """Returns device class → its new name. The new names sort as the old ones do, because plans
    depend on the order."""
    known = {bucket["name"].partition("~")[2] for bucket in crush.get("buckets", [])}
    known.update(device.get("class", "") for device in crush.get("devices", []))
    names = {}
    for number, name in enumerate(sorted(known.difference(_CLASSES, ("",)))):
        before = max((one for one in _CLASSES if one < name), default="")
        names[name] = f"{before}class{number:02}"
    return names


def _bucket_names(crush: Mapping[str, Any], types: Mapping[str, str],
                  classes: Mapping[str, str]) -> Dict[str, str]:
    """Returns CRUSH bucket → its new name. A bucket has a shadow, BUCKET~CLASS, for each class."""
    names = {}
    for bucket in crush.get("buckets", []):
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

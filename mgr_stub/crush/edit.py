"""Changes of a CRUSH dump like the monitor's commands; each returns a new dump.

Weights are CRUSH weights like those of the commands (TiB, by custom); the sums up the tree, the
shadow trees of the device classes and the weight-sets in choose_args are updated.
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from .dump_editor import DumpEditor, to_fixed_point
from .tree import rebuild_shadow_trees
from .mapper import type_ids_of

_HOST = "host"


def with_host(dump: Mapping[str, Any], host_name: str,
              osds: Mapping[int, Tuple[Optional[str], float]],
              under: Union[int, str, None] = None) -> Dict[str, Any]:
    """Adds OSDs, {id: (device class or None, weight)}, to a new or an existing host.

    Without a class an OSD keeps the one that the map has for it, if any. A new host goes `under` a
    bucket (name or id), at its end; an existing one stays where it is. It acts like `ceph osd crush
    create-or-move` for one OSD after the other.
    """
    editor = DumpEditor(dump)
    host = editor.find(host_name)
    if host is None:
        host = _new_host(editor, host_name, type_ids_of(dump), under)
    elif editor.buckets[host]["type_name"] != _HOST:
        raise ValueError(f"{host_name} is a {editor.buckets[host]['type_name']}, not a host")
    for osd, (device_class, weight) in osds.items():
        if any(True for _ in editor.parents(osd)):
            raise ValueError(f"osd.{osd} is in the CRUSH map already")
        known = editor.devices.get(osd, {}).get("class")
        editor.devices[osd] = {"id": osd, "name": f"osd.{osd}"}
        if device_class or known:
            editor.devices[osd]["class"] = device_class or known
        editor.add_item(host, osd)
        editor.set_weight(host, osd, to_fixed_point(weight))
    rebuild_shadow_trees(editor)
    return editor.dump()


def _new_host(editor: DumpEditor, name: str, type_ids: Mapping[str, int],
              under: Union[int, str, None]) -> int:
    parent = None
    if under is not None:
        parent = editor.find(under)
    if parent is None:
        raise ValueError(f"host {name} is to go under {under}, which is no CRUSH bucket")
    if _HOST not in type_ids:
        raise ValueError("the CRUSH map has no type host")
    host = editor.add_bucket(name, _HOST, type_ids[_HOST])
    editor.add_item(parent, host)
    return host


def with_osd_weight(dump: Mapping[str, Any], osd: int, weight: float) -> Dict[str, Any]:
    """Sets the CRUSH weight of an OSD, as `ceph osd crush reweight`; in weight-sets as well."""
    editor = DumpEditor(dump)
    for bucket in _parents(editor, osd):
        editor.set_weight(bucket, osd, to_fixed_point(weight))
    return editor.dump()


def with_bucket_moved(dump: Mapping[str, Any], name: str, under: str) -> Dict[str, Any]:
    """Puts a bucket with all that is below it under another, as `ceph osd crush move`."""
    editor = DumpEditor(dump)
    bucket = _found(editor, name)
    parent = _found(editor, under)
    for above in tuple(editor.parents(bucket)):
        editor.remove_item(above, bucket)
    editor.add_item(parent, bucket)
    for item in editor.buckets[bucket]["items"]:
        editor.set_weight(bucket, item["id"], item["weight"])
    rebuild_shadow_trees(editor)
    return editor.dump()


def _found(editor: DumpEditor, name: str) -> int:
    bucket = editor.find(name)
    if bucket is None:
        raise ValueError(f"{name} is no CRUSH bucket")
    return bucket


#: Ceph's own ids of types that a map may lack; it has them all.
_TYPE_IDS = {"host": 1, "chassis": 2, "rack": 3, "row": 4, "room": 7, "datacenter": 8}


def with_bucket(dump: Mapping[str, Any], name: str, type_name: str) -> Dict[str, Any]:
    """Makes an empty bucket below nothing, as `ceph osd crush add-bucket`."""
    editor = DumpEditor(dump)
    type_ids = type_ids_of(dump)
    if editor.find(name) is not None or type_name not in {**_TYPE_IDS, **type_ids}:
        raise ValueError(f"no {type_name} can be named {name}")
    type_id = type_ids.get(type_name, _TYPE_IDS.get(type_name, 0))
    editor.add_bucket(name, type_name, type_id)
    found = editor.dump()
    if type_name not in type_ids:
        found["types"] = [*found["types"], {"type_id": type_id, "name": type_name}]
    return found


def with_rule(dump: Mapping[str, Any], name: str, kind: int,
              steps: Sequence[Dict[str, Any]]) -> Dict[str, Any]:
    """Adds a rule of a type (1: replicated, 3: erasure), as a map that is compiled with it."""
    rule_id = max([rule["rule_id"] for rule in dump["rules"]], default=-1) + 1
    if any(rule["rule_name"] == name for rule in dump["rules"]):
        raise ValueError(f"there is a rule {name}")
    old: Dict[str, int] = {}
    if any("ruleset" in rule for rule in dump["rules"]):
        old = {"ruleset": rule_id, "min_size": 1, "max_size": 99}
    return {**dump, "rules": [*dump["rules"], {
        "rule_id": rule_id, "rule_name": name, "type": kind, **old, "steps": list(steps)}]}


def replicated_steps(dump: Mapping[str, Any], root: str, type_name: str,
                     device_class: str = "") -> List[Dict[str, Any]]:
    """Returns the steps of `ceph osd crush rule create-replicated`."""
    take = root
    if device_class:
        take = f"{root}~{device_class}"
    found = DumpEditor(dump).find(take)
    if found is None or type_name not in type_ids_of(dump):
        raise ValueError(f"there is no {take}, or no type {type_name}")
    return [{"op": "take", "item": found, "item_name": take},
            {"op": "chooseleaf_firstn", "num": 0, "type": type_name}, {"op": "emit"}]


def _parents(editor: DumpEditor, osd: int) -> Tuple[int, ...]:
    parents = tuple(editor.parents(osd))
    if not parents:
        raise ValueError(f"osd.{osd} is not in the CRUSH map")
    return parents

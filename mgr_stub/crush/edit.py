"""Changes of a CRUSH dump as the monitor's commands make them; each gives a new dump.

Weights are CRUSH weights as the commands take them (TiB, by custom); the sums up the tree, the
shadow trees of the device classes and the weight-sets in choose_args follow.
"""

from __future__ import annotations

from typing import Any, Dict, Mapping, Optional, Tuple, Union

from .draft import Draft, fixed
from .shadow_trees import rebuild_shadow_trees
from .steps import type_ids_of

_HOST = "host"


def with_host(dump: Mapping[str, Any], host_name: str,
              osds: Mapping[int, Tuple[Optional[str], float]],
              under: Union[int, str, None] = None) -> Dict[str, Any]:
    """New OSDs, {id: (device class or None, weight)}, on a new or an existing host.

    Without a class an OSD keeps the one that the map has for it, if it has one.
    A new host goes `under` a bucket (name or id), at its end; an existing one stays where it is.
    Like `ceph osd crush create-or-move` for one OSD after the other.
    """
    draft = Draft(dump)
    host = draft.find(host_name)
    if host is None:
        host = _new_host(draft, host_name, type_ids_of(dump), under)
    elif draft.buckets[host]["type_name"] != _HOST:
        raise ValueError(f"{host_name} is a {draft.buckets[host]['type_name']}, not a host")
    for osd, (device_class, weight) in osds.items():
        if any(True for _ in draft.holders(osd)):
            raise ValueError(f"osd.{osd} is in the CRUSH map already")
        known = draft.devices.get(osd, {}).get("class")
        draft.devices[osd] = {"id": osd, "name": f"osd.{osd}"}
        if device_class or known:
            draft.devices[osd]["class"] = device_class or known
        draft.add_item(host, osd)
        draft.set_weight(host, osd, fixed(weight))
    rebuild_shadow_trees(draft)
    return draft.dump()


def _new_host(draft: Draft, name: str, type_ids: Mapping[str, int],
              under: Union[int, str, None]) -> int:
    parent = draft.find(under) if under is not None else None
    if parent is None:
        raise ValueError(f"host {name} is to go under {under}, which is no CRUSH bucket")
    if _HOST not in type_ids:
        raise ValueError("the CRUSH map has no type host")
    host = draft.add_bucket(name, _HOST, type_ids[_HOST])
    draft.add_item(parent, host)
    return host


def with_osd_weight(dump: Mapping[str, Any], osd: int, weight: float) -> Dict[str, Any]:
    """Another CRUSH weight for an OSD, as `ceph osd crush reweight`; weight-sets get it too."""
    draft = Draft(dump)
    for bucket in _holders(draft, osd):
        draft.set_weight(bucket, osd, fixed(weight))
    return draft.dump()


def without_osd(dump: Mapping[str, Any], osd: int) -> Dict[str, Any]:
    """The map without an OSD, as `ceph osd crush rm`; its host stays, even if it is empty then."""
    draft = Draft(dump)
    for bucket in _holders(draft, osd):
        draft.remove_item(bucket, osd)
    # a free id keeps its place in the list of devices
    draft.devices[osd] = {"id": osd, "name": f"device{osd}"}
    rebuild_shadow_trees(draft)
    return draft.dump()


def _holders(draft: Draft, osd: int) -> Tuple[int, ...]:
    holders = tuple(draft.holders(osd))
    if not holders:
        raise ValueError(f"osd.{osd} is not in the CRUSH map")
    return holders

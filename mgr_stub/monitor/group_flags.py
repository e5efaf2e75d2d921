"""`osd set-group` and `unset-group`: flags of single OSDs, CRUSH buckets and device classes.

Answers and the shape of the map as seen on 16.2.15 and 20.2.4.
"""
from __future__ import annotations

from typing import Any, Dict, List, Set

from ..cluster.cluster import Cluster
from ..errors import invalid
from ..osdmap.osd_map import CLASS_FLAGS, GROUP_FLAGS, NODE_FLAGS, MapChange


def change_groups(cluster: Cluster, command: Dict[str, Any], change: MapChange,
                  is_set: bool) -> str:
    """Sets or clears flags for each name; the answer lists the unknown names."""
    flags = _flags(str(command.get("flags", "")))
    unknown: List[str] = []
    wanted: List[str] = list(command.get("who", []))
    for who in wanted:
        if not _change_one(cluster, who, flags, change, is_set):
            unknown.append(
                f'unable to parse osd id or crush node or device class: "{who}". ')
    if len(unknown) == len(wanted):
        raise invalid("\n".join(unknown) or "saw 0 of who(<string>)..., expected at least 1")
    return "\n".join(unknown)


def _flags(text: str) -> Set[str]:
    flags = text.split(",")
    for flag in flags:
        if flag not in GROUP_FLAGS:
            raise invalid(f"unrecognized flag '{flag}', must be one of {{{','.join(GROUP_FLAGS)}}}")
    return set(flags)


def _change_one(cluster: Cluster, who: str, flags: Set[str], change: MapChange,
                is_set: bool) -> bool:
    """Returns False if there is no such OSD, bucket or class."""
    number = who[len("osd."):] if who.startswith("osd.") else who
    if number.isascii() and number.isdigit():
        osd = int(number)
        entry = change.osds.get(osd, cluster.map.osds.get(osd))
        if entry is not None:
            change.osds[osd] = {**entry, "state": _changed(entry["state"], flags, is_set)}
        return entry is not None
    names = {bucket["name"] for bucket in cluster.crush.buckets.values()}
    is_class = who in cluster.crush.classes.values()
    if who not in names and not is_class:
        return False
    key = NODE_FLAGS if who in names else CLASS_FLAGS
    table = dict(change.rest.get(key, cluster.map.rest.get(key, {})))
    table[who] = _changed(table.get(who, []), flags, is_set)
    change.rest[key] = {name: kept for name, kept in table.items() if kept}
    return True


def _changed(present: List[str], flags: Set[str], is_set: bool) -> List[str]:
    return sorted(flags.union(present) if is_set else set(present) - flags)

"""`osd set-group` and `unset-group`: flags of single OSDs, CRUSH buckets and device classes.

Answers and the shape of the map as seen on 16.2.15 and 20.2.4.
"""
from __future__ import annotations

from typing import Any, Dict, List, Optional, Set

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


def osd_number(word: str) -> Optional[int]:
    """Returns the number of `3` or `osd.3`; None of any other word."""
    if word.startswith("osd."):
        word = word[len("osd."):]
    if word.isascii() and word.isdigit():
        return int(word)
    return None


def _change_one(cluster: Cluster, who: str, flags: Set[str], change: MapChange,
                is_set: bool) -> bool:
    """Returns False if there is no such OSD, bucket or class."""
    osd = osd_number(who)
    if osd is not None:
        entry = change.osds.get(osd, cluster.map.osds.get(osd))
        if entry is not None:
            change.osds[osd] = {**entry, "state": _changed(entry["state"], flags, is_set)}
        return entry is not None
    if who in {bucket["name"] for bucket in cluster.crush.buckets.values()}:
        key = NODE_FLAGS
    elif who in cluster.crush.classes.values():
        key = CLASS_FLAGS
    else:
        return False
    table = dict(change.rest.get(key, cluster.map.rest.get(key, {})))
    table[who] = _changed(table.get(who, []), flags, is_set)
    change.rest[key] = {name: kept for name, kept in table.items() if kept}
    return True


def _changed(present: List[str], flags: Set[str], is_set: bool) -> List[str]:
    changed = set(present) - flags
    if is_set:
        changed |= flags
    return sorted(changed)

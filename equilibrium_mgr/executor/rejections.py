"""PGs whose upmap items the monitor did not keep: why, and until when they are left alone."""
from __future__ import annotations

import json
import zlib
from typing import Any, Dict, List, Mapping, Tuple

from ..snapshot.model import Snapshot

#: What makes the monitor's judgement worth asking for again.
LIFTED_BY = "a change of the CRUSH map, or of which OSDs are in"
MOST_ITEMS = 2000
_LONGEST_REASON = 200
_MOST_BYTES = 50000   # as JSON; a stored value of more than 65,536 bytes would be lost

Items = Dict[str, Tuple[str, int]]   # pgid → (reason, mark of the map that it holds for)


def map_mark(snapshot: Snapshot) -> int:
    """A number that is another one when the monitor may judge otherwise."""
    osds = [(o.id, o.is_in, o.reweight, o.destroyed) for o in snapshot.osds.values()]
    return zlib.crc32(repr((snapshot.crush_version, sorted(osds))).encode())


def with_rejected(items: Items, pgid: str, reason: str, mark: int) -> Items:
    """The items with one more; of too many the oldest are forgotten."""
    grown = {known: item for known, item in items.items() if known != pgid}
    grown[pgid] = (reason[:_LONGEST_REASON], mark)
    for oldest in list(grown)[:max(0, len(grown) - MOST_ITEMS)]:
        del grown[oldest]
    return grown


def still_rejected(items: Items, mark: int) -> Items:
    """Those that hold for this map."""
    return {pgid: item for pgid, item in items.items() if item[1] == mark}


def to_dict(items: Items) -> Dict[str, Any]:
    """For the key-value store: the newest items that fit, by reason and mark."""
    groups: Dict[Tuple[str, int], List[str]] = {}
    size = 0
    for pgid, item in reversed(list(items.items())):
        size += len(json.dumps(pgid)) + 1
        if item not in groups:
            size += len(json.dumps(item)) + 50
        if size > _MOST_BYTES:
            break
        groups.setdefault(item, []).append(pgid)
    return {"groups": [{"reason": reason, "mark": mark, "pgids": sorted(pgids)}
                       for (reason, mark), pgids in sorted(groups.items())]}


def from_dict(dump: Mapping[str, Any]) -> Items:
    """What another mgr has kept, as far as it can be understood."""
    items: Items = {}
    groups = dump.get("groups")
    for group in groups if isinstance(groups, list) else ():
        try:
            for pgid in group["pgids"]:
                items[str(pgid)] = (str(group["reason"])[:_LONGEST_REASON], int(group["mark"]))
        except (KeyError, TypeError, ValueError):
            continue
    return dict(list(items.items())[:MOST_ITEMS])

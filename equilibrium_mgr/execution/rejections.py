"""PGs whose upmap items the monitor did not keep: why, and until when they stay where they are."""
from __future__ import annotations

import json
import zlib
from typing import Any, Container, Dict, Iterable, List, Mapping, NamedTuple

from ..runtime.kv_store import MAX_LIST_BYTES
from ..snapshot.model import Snapshot
from .change_outcomes import DroppedChange

#: Ends a rejection: the monitor may judge otherwise then.
LIFTED_BY = "a change of the CRUSH map, or of which OSDs are in"
MOST_ITEMS = 2000
#: A rejection older than this is no longer reported; it holds all the same.
RECENT_SECONDS = 3600.0
_LONGEST_REASON = 200


class Rejection(NamedTuple):
    """Why the monitor did not keep a PG's upmap items."""

    reason: str
    mark: int        # of the map that it holds for
    at: float = 0.0  # seconds since the epoch; 0 where an older release has not kept it


Items = Dict[str, Rejection]   # by pgid


def map_mark(snapshot: Snapshot) -> int:
    """A checksum of what the monitor's judgment rests on: the CRUSH version, and the weights of all
    OSDs."""
    osds = [(o.id, o.is_in, o.reweight, o.destroyed) for o in snapshot.osds.values()]
    return zlib.crc32(repr((snapshot.crush_version, sorted(osds))).encode())


def with_rejected(items: Items, rejected: Iterable[DroppedChange], mark: int,
                  now: float) -> Items:
    """The items with some more; of too many the oldest are forgotten."""
    grown = dict(items)
    for dropped in rejected:
        grown.pop(dropped.change.pgid, None)  # the order tells which is the newest
        grown[dropped.change.pgid] = Rejection(dropped.reason[:_LONGEST_REASON], mark,
                                               float(int(now)))
    return dict(list(grown.items())[-MOST_ITEMS:])


def still_rejected(items: Items, mark: int, pgids: Container[str]) -> Items:
    """Returns the rejections that hold for this map, of PGs that still exist."""
    return {pgid: item for pgid, item in items.items() if item.mark == mark and pgid in pgids}


def recent(items: Items, now: float) -> Items:
    """Returns the rejections that are reported to an operator."""
    return {pgid: item for pgid, item in items.items() if now - item.at < RECENT_SECONDS}


def to_dict(items: Items) -> Dict[str, Any]:
    """Returns the newest items that fit into a stored value, by reason and mark."""
    groups: Dict[Rejection, List[str]] = {}
    size = 0
    for pgid, item in reversed(list(items.items())):
        size += len(json.dumps(pgid)) + 1
        if item not in groups:
            size += len(json.dumps(item)) + 50
        if size > MAX_LIST_BYTES:
            break
        groups.setdefault(item, []).append(pgid)
    return {"groups": [dict(item._asdict(), pgids=sorted(pgids))
                       for item, pgids in sorted(groups.items())]}


def from_dict(dump: Mapping[str, Any]) -> Items:
    """The items that another mgr has stored, as far as they can be understood."""
    items: Items = {}
    groups = dump.get("groups")
    for group in groups if isinstance(groups, list) else ():
        try:
            item = Rejection(str(group["reason"])[:_LONGEST_REASON], int(group["mark"]),
                             float(group.get("at", 0.0)))
            items.update((str(pgid), item) for pgid in group["pgids"])
        except (AttributeError, KeyError, TypeError, ValueError, OverflowError):
            continue
    return dict(list(items.items())[:MOST_ITEMS])

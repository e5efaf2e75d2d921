"""PGs whose upmap items the monitor did not keep: why, and until when they stay where they are.

What the monitor dropped after it had said yes breaks a rule by its own judgment: that stands until
the map changes. What it refused by an error may be taken later (a quorum, capabilities, a pool in
the making), and is tried again, after a longer wait each time.
"""
from __future__ import annotations

import json
import math
import zlib
from typing import Any, Container, Dict, Iterable, List, Mapping, NamedTuple

from ..runtime.kv_store import MAX_LIST_BYTES
from ..snapshot.model import Snapshot
from .change_outcomes import DroppedChange

#: Ends a rejection for good: the monitor may judge otherwise then.
LIFTED_BY = "a change of the CRUSH map, or of which OSDs are in"
MOST_ITEMS = 2000
#: A rejection older than this is no longer reported; it holds all the same.
RECENT_SECONDS = 3600.0
#: Waits before a refused change is tried again. The longest is below RECENT_SECONDS: what is
#: refused again and again is reported without a gap.
_FIRST_RETRY_SECONDS, _LONGEST_RETRY_SECONDS = 600.0, 3000.0
_MOST_DOUBLINGS = 10
_LONGEST_REASON = 200


class Rejection(NamedTuple):
    """Why the monitor did not keep a PG's upmap items."""

    reason: str
    mark: int        # of the map that it holds for
    at: float        # seconds since the epoch
    refusals: int = 0   # how often it was refused by an error; 0: it was dropped

    def seconds_left(self, now: float) -> float:
        """Seconds until it is tried again while the map stays the same; infinite for never."""
        if not self.refusals:
            return math.inf
        wait = min(_LONGEST_RETRY_SECONDS, _FIRST_RETRY_SECONDS
                   * 2.0 ** min(_MOST_DOUBLINGS, self.refusals - 1))
        return max(0.0, wait - max(0.0, now - self.at))


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
        before = grown.pop(dropped.change.pgid, None)  # the order tells which is the newest
        refusals = 1 + (before.refusals if before is not None else 0) if dropped.is_refused else 0
        grown[dropped.change.pgid] = Rejection(dropped.reason[:_LONGEST_REASON], mark,
                                               float(int(now)), refusals)
    return dict(list(grown.items())[-MOST_ITEMS:])


def still_rejected(items: Items, mark: int, pgids: Container[str], now: float = 0.0) -> Items:
    """Returns the rejections that hold for this map, of PGs that still exist; without those that
    could long have been tried again: no plan wants them."""
    return {pgid: item for pgid, item in items.items() if item.mark == mark and pgid in pgids
            and not (item.refusals and now - item.at >= RECENT_SECONDS)}


def held(items: Items, now: float) -> Items:
    """Returns the rejections for which a PG is left alone now."""
    return {pgid: item for pgid, item in items.items() if item.seconds_left(now) > 0.0}


def retry_seconds(items: Items, now: float) -> float:
    """Seconds until the first of them may be tried again; 0 where none may."""
    left = min((item.seconds_left(now) for item in items.values()), default=math.inf)
    return 0.0 if math.isinf(left) else left


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
                             float(group["at"]), int(group["refusals"]))
            items.update((str(pgid), item) for pgid in group["pgids"])
        except (AttributeError, KeyError, TypeError, ValueError, OverflowError):
            continue
    return dict(list(items.items())[:MOST_ITEMS])

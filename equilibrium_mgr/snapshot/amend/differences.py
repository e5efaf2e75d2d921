"""Compares an amended snapshot with one of the same reading that was built in full."""
from __future__ import annotations

from itertools import islice
from typing import Any, Iterator, List, Mapping, NamedTuple, Tuple

from ...runtime.amended_map import AmendedMap
from ...runtime.time_slice import give_way
from ..model import Snapshot

#: Fields that are compared entry by entry.
_MAPS = ("osds", "pools", "pgs", "upmap_items", "pool_states", "skipped")
#: The CRUSH map is the mgr's own; no part of it is amended.
_NOT_COMPARED = ("crush",)
_A_PIECE = 1000   # entries before it gives way again: about a millisecond


class Difference(NamedTuple):
    """One value of the amended snapshot that is not that of the full one."""

    field: str      # as in `pgs.up`
    key: str        # pgid, or id of an OSD or pool; empty for a field of the whole cluster
    amended: Any    # None where it is missing
    full: Any

    def __str__(self) -> str:
        of = f" of {self.key}" if self.key else ""
        return f"{self.field}{of} is {self.amended!r}, should be {self.full!r}"


def differences(amended: Snapshot, full: Snapshot) -> List[Difference]:
    """All differences; empty where there are none."""
    found: List[Difference] = []
    for field in Snapshot._fields:
        one, other = getattr(amended, field), getattr(full, field)
        if field in _MAPS:
            found += [difference for key, before, after in _unequal(one, other)
                      for difference in _of_entry(field, key, before, after)]
        elif field not in _NOT_COMPARED and one != other:
            found.append(Difference(field, "", one, other))
    return found


def _unequal(one: Mapping[Any, Any], other: Mapping[Any, Any]) -> Iterator[Tuple[Any, Any, Any]]:
    """(key, value in `one`, value in `other`) where these differ, None for a missing one."""
    mine, theirs = _entries(one), _entries(other)
    while True:
        give_way()
        piece, expected = list(islice(mine, _A_PIECE)), list(islice(theirs, _A_PIECE))
        if piece != expected:   # or in another order, which no field promises
            for key in dict.fromkeys([key for key, _ in piece + expected]):
                if one.get(key) != other.get(key):
                    yield key, one.get(key), other.get(key)
        if not piece and not expected:
            return


def _entries(mapping: Mapping[Any, Any]) -> Iterator[Tuple[Any, Any]]:
    """Keys and values, of PGs as they are stored: without a named tuple for each, which the garbage
    collector would look at."""
    if isinstance(mapping, AmendedMap):
        return zip(mapping, mapping.stored())
    return iter(mapping.items())


def _of_entry(field: str, key: Any, before: Any, after: Any) -> List[Difference]:
    """One difference for each field of an entry that is a NamedTuple, else one."""
    names = getattr(after, "_fields", ())
    if before is None or not names:
        return [Difference(field, str(key), before, after)]
    return [Difference(f"{field}.{name}", str(key), one, other)
            for name, one, other in zip(names, before, after) if one != other]

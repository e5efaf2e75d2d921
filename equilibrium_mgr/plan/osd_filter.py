"""Which OSDs may give shards, and which may get some, by names in the CRUSH hierarchy."""
from __future__ import annotations

import re
from typing import Dict, FrozenSet, List, NamedTuple, Optional, Set, Tuple

from ..crush.hierarchy import CrushHierarchy

#: Most digits of an OSD's id; Python refuses to read thousands of digits.
_OSD_NAME = re.compile(r"(?:osd\.)?([0-9]{1,9})", re.ASCII)

Names = Optional[FrozenSet[str]]   # None: no such filter


class OsdScope(NamedTuple):
    """OSD ids that may give and get shards; None: all of them. `unknown`: names of no OSD and no
    bucket, by the field that has them."""

    sources: Optional[FrozenSet[int]] = None
    targets: Optional[FrozenSet[int]] = None
    unknown: Tuple[Tuple[str, str], ...] = ()


class OsdFilter(NamedTuple):
    """Names of OSDs (`osd.3` or `3`), hosts and other buckets that shards may leave, that they may
    go to, and that are spared: shards neither leave these nor come."""

    sources: Names = None
    targets: Names = None
    spared: Names = None

    def scope(self, crush: CrushHierarchy) -> OsdScope:
        """The OSDs that the names stand for now.

        A name that is unknown never allows more movement: of sources and targets the others count,
        and where it is not known what is to be spared everything is.
        """
        unknown: List[Tuple[str, str]] = []
        found: Dict[str, Optional[Set[int]]] = {}
        for field, names in zip(self._fields, self):
            osds: Set[int] = set()
            for name in sorted(names or ()):
                members = osds_named(name, crush)
                if members is None:
                    unknown.append((field, name))
                osds |= members or frozenset()
            found[field] = None if names is None else osds
        spared = found["spared"]
        if any(field == "spared" for field, _ in unknown):
            spared = set(crush.device_class)
        return OsdScope(_without(found["sources"], spared, crush),
                        _without(found["targets"], spared, crush), tuple(unknown))


def osds_named(name: str, crush: CrushHierarchy) -> Optional[FrozenSet[int]]:
    """The OSDs of a name: one, or those under a bucket; None where nothing has that name."""
    for bucket in crush.buckets.values():
        if bucket.name == name:
            return frozenset(crush.subtree(bucket.id).weights)
    match = _OSD_NAME.fullmatch(name)
    if match is not None and int(match.group(1)) in crush.device_class:
        return frozenset((int(match.group(1)),))
    return None


def _without(chosen: Optional[Set[int]], spared: Optional[Set[int]],
             crush: CrushHierarchy) -> Optional[FrozenSet[int]]:
    if spared is None:
        return None if chosen is None else frozenset(chosen)
    return frozenset((set(crush.device_class) if chosen is None else chosen) - spared)

"""Demands that share OSDs, and which of these OSDs no demand can tell apart."""
from __future__ import annotations

from typing import Dict, Iterable, List, Mapping, NamedTuple, Optional, Set, Tuple

from ...runtime.time_slice import piecewise
from .demand import OSDS_AT_ONCE, Demand

#: A demand with a smaller ratio of all bytes may exceed its limit per OSD: that does not show in
#: utilizations, and OSDs need no sinks of their own for it.
_NEGLIGIBLE = 1e-7


class Component(NamedTuple):
    """Demands that share OSDs, and these OSDs."""

    demands: List[Demand]
    osds: Set[int]

    def all_bytes(self) -> int:
        """Bytes that its demands have to place."""
        return sum(demand.all_bytes for demand in self.demands)


def components(demands: Iterable[Demand]) -> List[Component]:
    """The demands, those together that share OSDs, however indirectly."""
    found: List[Component] = []
    for demand in piecewise(demands, 1):
        joined = Component([demand], set(demand.osds))
        others: List[Component] = []
        for component in found:
            if component.osds.isdisjoint(joined.osds):
                others.append(component)
            else:
                joined = Component(component.demands + joined.demands,
                                   component.osds | joined.osds)
        found = [*others, joined]
    return found


#: For each demand the buckets from its take to the OSD, None if it cannot use it; and the OSD
#: where it needs a sink alone.
OsdKind = Tuple[Tuple[Optional[Tuple[int, ...]], ...], Optional[int]]


def alike_osds(component: Component, most: Mapping[int, float]) -> Dict[OsdKind, List[int]]:
    """OSDs grouped by what demands can tell apart. `most`: OSD → bytes that it can take at most."""
    negligible = component.all_bytes() * _NEGLIGIBLE
    tight = [demand for demand in component.demands
             if demand.osd_limit_counts() and demand.all_bytes > negligible]
    groups: Dict[OsdKind, List[int]] = {}
    at_once = OSDS_AT_ONCE // len(component.demands) + 1
    for osd in piecewise(sorted(component.osds), at_once):
        paths = tuple([demand.paths.get(osd) for demand in component.demands])
        alone = any(demand.single_bytes < most[osd] for demand in tight if osd in demand.osds)
        groups.setdefault((paths, osd if alone else None), []).append(osd)
    return groups

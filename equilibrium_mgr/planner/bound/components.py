"""Demands that share OSDs, and the flow network of which of their bytes can be on which OSDs: from
a demand through the buckets that its rule keeps apart, each with its limit, to the OSDs.

OSDs that no demand can tell apart share a sink, and pools of the same rule and size a demand, so
that the network has a node per bucket instead of one per OSD or PG.
"""
from __future__ import annotations

from typing import Dict, Iterable, List, Mapping, NamedTuple, Optional, Set, Tuple

from ...runtime.time_slice import piecewise
from .demand import OSDS_AT_ONCE, Demand
from .max_min_levels import CapacityNetwork, Sink, SinkPart

#: A demand with a smaller ratio of all bytes may exceed its limit per OSD: that does not show in
#: utilizations, and OSDs need no sinks of their own for it.
_NEGLIGIBLE = 1e-7
_SINKS_AT_ONCE = 100   # before it gives way again


class Component(NamedTuple):
    """Demands that share OSDs, and these OSDs."""

    demands: List[Demand]
    osds: Set[int]


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
    negligible = _NEGLIGIBLE * sum(demand.all_bytes for demand in component.demands)
    tight = [demand for demand in component.demands
             if demand.osd_limit_counts() and demand.all_bytes > negligible]
    groups: Dict[OsdKind, List[int]] = {}
    at_once = OSDS_AT_ONCE // len(component.demands) + 1
    for osd in piecewise(sorted(component.osds), at_once):
        paths = tuple([demand.paths.get(osd) for demand in component.demands])
        alone = any(demand.single_bytes < most[osd] for demand in tight if osd in demand.osds)
        groups.setdefault((paths, osd if alone else None), []).append(osd)
    return groups


class ComponentNetwork:
    """The network of a component, and what its nodes stand for."""

    def __init__(self) -> None:
        self.network = CapacityNetwork()
        self.demand_of: Dict[int, Demand] = {}          # node of a demand or of its buckets
        self.item_of: Dict[int, int] = {}               # node → bucket, or OSD with a sink alone
        self.osds_of: Dict[int, Tuple[int, ...]] = {}   # node of a sink
        self._bucket_nodes: Dict[Tuple[int, Tuple[int, ...]], int] = {}

    def bucket(self, root: int, path: Tuple[int, ...]) -> int:
        """The node for the last bucket of a path from a demand's node; made where needed."""
        if not path:
            return root
        if (root, path) not in self._bucket_nodes:
            demand = self.demand_of[root]
            shards = demand.domains[len(path) - 1].shards_per_bucket
            above = self.bucket(root, path[:-1])
            node = self._bucket_nodes[root, path] = self.network.add_node()
            self.demand_of[node], self.item_of[node] = demand, path[-1]
            self.network.add_edge(above, node, min(demand.all_bytes, shards * demand.single_bytes))
        return self._bucket_nodes[root, path]


def build_network(component: Component, parts: Mapping[int, SinkPart],
                   ceiling: float) -> ComponentNetwork:
    """The component's network; no OSD can end above the ceiling (a ratio of capacity)."""
    built = ComponentNetwork()
    roots = [(built.network.add_node(demand.all_bytes), demand) for demand in component.demands]
    built.demand_of.update(roots)
    most = {osd: ceiling * parts[osd].size_bytes - parts[osd].fixed_bytes for osd in component.osds}
    alike = alike_osds(component, most)
    for (paths, single), osds in piecewise(alike.items(), _SINKS_AT_ONCE):
        sink = built.network.add_node()
        built.network.sinks[sink] = Sink([parts[osd] for osd in osds])
        built.osds_of[sink] = tuple(osds)
        if single is not None:
            built.item_of[sink] = single
        for (root, demand), path in zip(roots, paths):
            if path is not None:
                limited = single is not None and demand.osd_limit_counts()
                built.network.add_edge(built.bucket(root, path), sink, min(
                    demand.all_bytes, demand.single_bytes) if limited else demand.all_bytes)
    return built

"""How equally full the OSDs could be at best, whatever is moved, and what stands in the way.

A lower bound: shards are taken as if they could be split at will (see `demand`), and no placement
of whole ones can beat that. Which bytes can stand on which OSDs is a network of pipes: from a
demand through the buckets that its rule keeps apart, each with its limit, to the OSDs. OSDs that
are alike for every rule share a basin and pools of the same rule and size a demand, so that the
network has a node per bucket and not per OSD or PG.
"""
from __future__ import annotations

from typing import Dict, FrozenSet, Iterable, List, Mapping, NamedTuple, Optional
from typing import Sequence, Set, Tuple

from ...plan.weight_shares import share_utilizations
from ...runtime.checkpoints import Checkpoint, no_checkpoint, with_checkpoints
from ...snapshot.model import Osd, Snapshot
from .demand import OSDS_AT_ONCE, Demand, movable_bytes
from .max_min_levels import Sink, SinkPart, CapacityNetwork, UtilizationTier, max_min_levels

CAPACITY = "capacity"
FAILURE_DOMAIN = "failure domain"
FIXED = "fixed bytes"

#: Levels that differ by a smaller share are the same.
_SAME = 1e-9
#: A demand with less than this share of all bytes may exceed its limit per OSD: that cannot be
#: seen in the levels, and OSDs need not be looked at one by one.
_NEGLIGIBLE = 1e-7
_BASINS_AT_ONCE = 100   # between two checkpoints


class BindingConstraint(NamedTuple):
    """What keeps the fullest OSDs of a set from being emptier.

    CAPACITY: bytes simply fill them. FAILURE_DOMAIN: buckets that could take more bytes may not
    take more shards. FIXED: what lies on these OSDs and can be on no other.
    """

    kind: str
    osds: Tuple[int, ...]     # all OSDs that stand at the bound
    buckets: Tuple[str, ...]  # buckets (or OSDs) that can take no more shards of these pools
    pools: Tuple[int, ...]    # pools whose rules hold their bytes here; none if all OSDs are full


class OsdSet(NamedTuple):
    """OSDs connected by pools that may use them: what leaves one can end on another."""

    device_class: str         # where mixed, names joined with ","
    takes: Tuple[str, ...]    # names of what the rules take, with "~class"
    osds: Tuple[int, ...]
    bound: float              # lowest possible highest utilization, a ratio
    binding: BindingConstraint


class UtilizationBounds(NamedTuple):
    """Utilizations are ratios of a device's size; that of an OSD which an operator's weights hold
    to a share of it is that share of its likes'.

    Where a set has several classes, only the set's bound is one: a class could be emptier than
    `classes` says if others were fuller.
    """

    sets: Tuple[OsdSet, ...]
    utilizations: Dict[int, float]    # OSD → utilization in the fairest placement of split shards
    classes: Dict[str, float]   # device class → highest of these levels; OSDs that are in


class _Component:
    """Demands that share OSDs, and these OSDs."""

    def __init__(self, demands: List[Demand], osds: Set[int]) -> None:
        self.demands = demands
        self.osds = osds

    def all_bytes(self) -> int:
        return sum(demand.all_bytes for demand in self.demands)


class _ComponentNetwork:
    """The network of a component, and what its nodes stand for."""

    def __init__(self) -> None:
        self.network = CapacityNetwork()
        self.demand_of: Dict[int, Demand] = {}          # node of a demand or of its buckets
        self.item_of: Dict[int, int] = {}               # node → bucket, or OSD that has its own
        self.osds_of: Dict[int, Tuple[int, ...]] = {}   # node of a basin
        self._bucket_nodes: Dict[Tuple[int, Tuple[int, ...]], int] = {}

    def add_demand(self, demand: Demand) -> int:
        node = self.network.add_node(demand.all_bytes)
        self.demand_of[node] = demand
        return node

    def add_basin(self, osds: Tuple[int, ...], parts: Iterable[SinkPart]) -> int:
        node = self.network.add_node()
        self.network.sinks[node] = Sink(parts)
        self.osds_of[node] = osds
        return node

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

    def full_pipes(self, tier: UtilizationTier) -> List[Tuple[Demand, int]]:
        """(demand, bucket or OSD) where pipes lead out of the tier: these carry all they can."""
        inside = set(tier.nodes)
        return [(self.demand_of[tail], self.item_of[head]) for tail in tier.nodes
                for head, _ in self.network.edges[tail] if head not in inside]


def utilization_bounds(snapshot: Snapshot, fixed_pools: FrozenSet[int] = frozenset(), *,
              checkpoint: Checkpoint = no_checkpoint) -> UtilizationBounds:
    """The bounds for every set of OSDs; pools in `fixed_pools` stay where they are.

    `checkpoint` is called every few milliseconds, for others to get their turn.
    """
    demands, on_osd = movable_bytes(snapshot, fixed_pools, checkpoint)
    parts = {osd: _part(snapshot.osds[osd], moved)
             for osd, moved in with_checkpoints(on_osd.items(), OSDS_AT_ONCE, checkpoint)}
    levels = {number: osd.target_utilization or 0.0
              for number, osd in with_checkpoints(sorted(snapshot.osds.items()), OSDS_AT_ONCE, checkpoint)
              if osd.has_statistics and osd.size_bytes > 0}
    most = share_utilizations(snapshot)
    sets: List[OsdSet] = []
    for component in _components(demands, checkpoint):
        pipes, tiers = _solved(snapshot, component, parts, checkpoint)
        fair = _fair(pipes, tiers, parts, checkpoint)
        above = {osd: most[osd] / fair[osd] for osd in component.osds
                 if osd in most and fair[osd] > most[osd] > parts[osd].fixed_utilization}
        if above:   # their buckets would have them hold more of their size than others of theirs
            for osd, factor in above.items():
                parts[osd] = parts[osd]._replace(size_bytes=max(1, int(parts[osd].size_bytes * factor)))
            pipes, tiers = _solved(snapshot, component, parts, checkpoint)
            fair = _fair(pipes, tiers, parts, checkpoint)
        for osd, level in fair.items():
            levels[osd] = _utilization(snapshot.osds[osd], parts[osd], level)
        sets.append(_osd_set(snapshot, component, pipes, tiers, levels))
    checkpoint()
    return UtilizationBounds(tuple(sorted(sets, key=lambda s: s.osds)), levels,
                     _highest_by_class(snapshot, levels))


def _part(osd: Osd, moved: int) -> SinkPart:
    """What an OSD could take; one that is held to a share rises with others by its capacity."""
    return SinkPart(osd.target_bytes - moved - osd.spared_bytes, osd.capacity_bytes)


def _solved(snapshot: Snapshot, component: _Component, parts: Mapping[int, SinkPart],
            checkpoint: Checkpoint) -> Tuple[_ComponentNetwork, List[UtilizationTier]]:
    osds = [snapshot.osds[osd] for osd in component.osds]
    ceiling = max((osd.target_bytes - osd.spared_bytes) / parts[osd.id].size_bytes for osd in osds)
    pipes = _build(component, parts, ceiling, checkpoint)
    return pipes, max_min_levels(pipes.network, checkpoint)


def _fair(pipes: _ComponentNetwork, tiers: Sequence[UtilizationTier], parts: Mapping[int, SinkPart],
          checkpoint: Checkpoint) -> Dict[int, float]:
    """OSD → its level in the fairest placement, a ratio of its capacity."""
    fair: Dict[int, float] = {}
    for tier in with_checkpoints(tiers, 1, checkpoint):
        for node in tier.nodes:
            for osd in pipes.osds_of.get(node, ()):
                fair[osd] = max(tier.utilization, parts[osd].fixed_utilization)
    return fair


def _utilization(osd: Osd, part: SinkPart, level: float) -> float:
    """A level as a ratio of the OSD's size."""
    if osd.share >= 1.0:
        return level
    return (level * part.size_bytes + osd.spared_bytes) / osd.size_bytes


def _highest_by_class(snapshot: Snapshot, levels: Mapping[int, float]) -> Dict[str, float]:
    highest: Dict[str, float] = {}
    for osd, level in levels.items():
        if snapshot.osds[osd].is_in:
            name = snapshot.osds[osd].device_class
            highest[name] = max(level, highest.get(name, level))
    return {name: highest[name] for name in sorted(highest)}


def _components(demands: Iterable[Demand],
                checkpoint: Checkpoint) -> List[_Component]:
    components: List[_Component] = []
    for demand in with_checkpoints(demands, 1, checkpoint):
        joined = _Component([demand], set(demand.osds))
        others = []
        for component in components:
            if component.osds.isdisjoint(joined.osds):
                others.append(component)
            else:
                joined = _Component(component.demands + joined.demands,
                                    component.osds | joined.osds)
        components = others + [joined]
    return components


def _build(component: _Component, parts: Mapping[int, SinkPart], ceiling: float,
           checkpoint: Checkpoint) -> _ComponentNetwork:
    """The component's network; no OSD can end above the ceiling."""
    pipes = _ComponentNetwork()
    roots = [(pipes.add_demand(demand), demand) for demand in component.demands]
    alike = _alike(component, parts, ceiling, checkpoint)
    for (paths, single), osds in with_checkpoints(alike.items(), _BASINS_AT_ONCE, checkpoint):
        basin = pipes.add_basin(tuple(osds), [parts[osd] for osd in osds])
        if single is not None:
            pipes.item_of[basin] = single
        for (root, demand), path in zip(roots, paths):
            if path is not None:
                limited = single is not None and demand.osd_limit_counts()
                pipes.network.add_edge(pipes.bucket(root, path), basin, min(
                    demand.all_bytes, demand.single_bytes) if limited else demand.all_bytes)
    return pipes


#: For each demand the buckets from its take to the OSD, None if it cannot use it; and the OSD
#: where it has to be looked at by itself.
_Kind = Tuple[Tuple[Optional[Tuple[int, ...]], ...], Optional[int]]


def _alike(component: _Component, parts: Mapping[int, SinkPart], ceiling: float,
           checkpoint: Checkpoint) -> Dict[_Kind, List[int]]:
    """OSDs grouped by what demands can tell apart."""
    negligible = component.all_bytes() * _NEGLIGIBLE
    tight = [demand for demand in component.demands
             if demand.osd_limit_counts() and demand.all_bytes > negligible]
    groups: Dict[_Kind, List[int]] = {}
    at_once = OSDS_AT_ONCE // len(component.demands) + 1
    for osd in with_checkpoints(sorted(component.osds), at_once, checkpoint):
        paths = tuple([demand.path(osd) if osd in demand.osds else None
                       for demand in component.demands])
        room = ceiling * parts[osd].size_bytes - parts[osd].fixed_bytes
        alone = any(demand.single_bytes < room for demand in tight if osd in demand.osds)
        groups.setdefault((paths, osd if alone else None), []).append(osd)
    return groups


def _osd_set(snapshot: Snapshot, component: _Component, pipes: _ComponentNetwork, tiers: Sequence[UtilizationTier],
             levels: Mapping[int, float]) -> OsdSet:
    bound = max(levels[osd] for osd in component.osds)
    at_bound = {osd for osd in component.osds if levels[osd] >= bound * (1.0 - _SAME)}
    top = _tier_of(pipes, tiers, at_bound)
    return OsdSet(
        device_class=",".join(sorted({snapshot.osds[o].device_class for o in component.osds})),
        takes=tuple(sorted({_name(snapshot, demand.take) for demand in component.demands})),
        osds=tuple(sorted(component.osds)), bound=bound,
        binding=_binding(snapshot, component, pipes, top, at_bound, bound))


def _tier_of(pipes: _ComponentNetwork, tiers: Sequence[UtilizationTier], osds: Set[int]) -> UtilizationTier:
    """The highest tier with one of the OSDs; those that are held to a share may stand above it."""
    for tier in tiers:
        if any(not osds.isdisjoint(pipes.osds_of.get(node, ())) for node in tier.nodes):
            return tier
    return tiers[0]


def _binding(snapshot: Snapshot, component: _Component, pipes: _ComponentNetwork, top: UtilizationTier,
             at_bound: Set[int], bound: float) -> BindingConstraint:
    osds = tuple(sorted(at_bound))
    if bound * (1.0 - _SAME) > top.utilization:
        return BindingConstraint(FIXED, osds, (), ())
    full = pipes.full_pipes(top)
    if full:
        return BindingConstraint(
            FAILURE_DOMAIN, osds,
            tuple(sorted({_name(snapshot, item).split("~")[0] for _, item in full})),
            tuple(sorted({pool for demand, _ in full for pool in demand.pools})))
    if all(osd in at_bound or snapshot.osds[osd].share < 1.0 for osd in component.osds):
        return BindingConstraint(CAPACITY, osds, (), ())
    confined = [pipes.demand_of[node] for node in top.nodes if node in pipes.demand_of]
    return BindingConstraint(CAPACITY, osds, (), tuple(sorted({p for d in confined for p in d.pools})))


def _name(snapshot: Snapshot, item: int) -> str:
    """Of a bucket or OSD."""
    return f"osd.{item}" if item >= 0 else snapshot.crush.buckets[item].name

"""A lower bound of the highest utilization of OSDs, and the constraint that sets it.

Shards are treated as if they could be split at will (see `demand`), which no placement of whole
shards can beat. Which bytes can be on which OSDs is a flow network: from a demand through the
buckets that its rule keeps apart, each with its limit, to the OSDs. OSDs that are alike for every
rule share a sink, and pools of the same rule and size share a demand, so that the network has a
node per bucket instead of one per OSD or PG.
"""
from __future__ import annotations

from typing import (
    Dict, FrozenSet, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple)

from ...plan.weight_shares import share_utilizations
from ...runtime.time_slice import give_way, piecewise
from ...snapshot.model import Osd, Snapshot, without_shares
from .certificate import Cut, cuts_of
from .components import Component, alike_osds, components
from .demand import OSDS_AT_ONCE, Demand, MovableBytes, movable_bytes
from .max_min_levels import CapacityNetwork, Sink, SinkPart, UtilizationTier, max_min_levels
from .pool_space import PoolSpaceBound, pool_space_bounds

# Values of BindingConstraint.kind.
CAPACITY = "capacity"
FAILURE_DOMAIN = "failure domain"
FIXED = "fixed bytes"

#: Utilizations that differ by a smaller ratio are equal.
_SAME = 1e-9
#: Factor of the size of OSDs that are to take anything.
_WITHOUT_LIMIT = 1 << 40
_SINKS_AT_ONCE = 100   # before it gives way again


class BindingConstraint(NamedTuple):
    """The constraint that keeps the fullest OSDs of a set from being emptier.

    CAPACITY: bytes simply fill them. FAILURE_DOMAIN: buckets with free space may not take more
    shards. FIXED: what is on these OSDs cannot be on any other.
    """

    kind: str
    osds: Tuple[int, ...]     # all OSDs that are at the bound
    buckets: Tuple[str, ...]  # buckets (or OSDs) that can take no more shards of these pools
    pools: Tuple[int, ...]    # pools whose rules keep their bytes here; none if all OSDs are full


class OsdSet(NamedTuple):
    """OSDs connected by pools that may use them: what leaves one can end on another."""

    device_class: str         # where mixed, names joined with ","
    takes: Tuple[str, ...]    # names of what the rules take, with "~class"
    osds: Tuple[int, ...]
    bound: float              # lowest possible highest utilization, a ratio
    binding: BindingConstraint


class UtilizationBounds(NamedTuple):
    """Utilizations are ratios of a device's size. That of an OSD which an operator's weights hold
    to a share is this share of what OSDs of the same takes have.

    Those of a set with several classes are no bounds of a class, which could be emptier if others
    were fuller. `classes` has the bound of each class by itself, whatever the others hold then.
    """

    sets: Tuple[OsdSet, ...]
    utilizations: Dict[int, float]   # OSD → utilization in the fairest placement of split shards
    classes: Dict[str, float]        # device class → its bound; of OSDs that are up and in
    class_cuts: Mapping[str, FrozenSet[int]] = {}   # device class → its OSDs at that bound
    # by cluster_bounds alone
    epoch: int = 0                                  # of the osdmap
    pool_space: Mapping[int, PoolSpaceBound] = {}   # pool id → its bound
    cuts: Mapping[FrozenSet[int], Cut] = {}         # what proves the bounds of classes and pools


class _ComponentNetwork:
    """The network of a component, and what its nodes stand for."""

    def __init__(self) -> None:
        self.network = CapacityNetwork()
        self.demand_of: Dict[int, Demand] = {}          # node of a demand or of its buckets
        self.item_of: Dict[int, int] = {}               # node → bucket, or OSD with a sink alone
        self.osds_of: Dict[int, Tuple[int, ...]] = {}   # node of a sink
        self._bucket_nodes: Dict[Tuple[int, Tuple[int, ...]], int] = {}

    def add_demand(self, demand: Demand) -> int:
        node = self.network.add_node(demand.all_bytes)
        self.demand_of[node] = demand
        return node

    def add_sink(self, osds: Tuple[int, ...], parts: Iterable[SinkPart]) -> int:
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

    def saturated_edges(self, tiers: Sequence[UtilizationTier],
                        number: int) -> List[Tuple[Demand, int]]:
        """(demand, bucket or OSD) where edges lead from a tier to lower ones: these carry all they
        can. Those to higher tiers carry nothing."""
        lower = {node for tier in tiers[number + 1:] for node in tier.nodes}
        return [(self.demand_of[tail], self.item_of[head]) for tail in tiers[number].nodes
                for head, _ in self.network.edges[tail] if head in lower]


def utilization_bounds(snapshot: Snapshot,
                       fixed_pools: FrozenSet[int] = frozenset()) -> UtilizationBounds:
    """The bounds for every set of OSDs; pools in `fixed_pools` stay where they are."""
    movable = movable_bytes(snapshot, fixed_pools)
    return _utilization_bounds(snapshot, movable)


def cluster_bounds(snapshot: Snapshot,
                   fixed_pools: FrozenSet[int] = frozenset()) -> UtilizationBounds:
    """As utilization_bounds, with those of the pools' free space, and what proves them all.

    That OSDs are held to a share is an operator's wish, which proves nothing: the class cuts are
    those of the sizes alone.
    """
    movable = movable_bytes(snapshot, fixed_pools)
    bounds = _utilization_bounds(snapshot, movable)
    give_way()
    by_size = without_shares(snapshot)
    class_cuts = bounds.class_cuts if by_size is snapshot else _utilization_bounds(
        by_size, movable).class_cuts
    pool_space = pool_space_bounds(snapshot, movable)
    proofs = [*class_cuts.values(), *[bound.osds for bound in pool_space.values()]]
    return bounds._replace(epoch=snapshot.epoch, class_cuts=class_cuts, pool_space=pool_space,
                           cuts=cuts_of(snapshot, movable, proofs))


def _utilization_bounds(snapshot: Snapshot, movable: MovableBytes) -> UtilizationBounds:
    demands, on_osd = movable.demands, movable.on_osd
    parts = {osd: _part(snapshot.osds[osd], moved)
             for osd, moved in piecewise(on_osd.items(), OSDS_AT_ONCE)}
    utilizations = {
        number: osd.target_utilization or 0.0 for number, osd in piecewise(
            sorted(snapshot.osds.items()), OSDS_AT_ONCE)
        if osd.has_statistics and osd.size_bytes > 0}
    give_way()
    shares = share_utilizations(snapshot)
    sets: List[OsdSet] = []
    of_class = dict(utilizations)   # OSD → what cannot be less while its own class is to be even
    for component in components(demands):
        network, tiers = _solved(snapshot, component, parts)
        fair = _fair_utilizations(network, tiers, parts)
        above = {osd: shares[osd] / fair[osd] for osd in component.osds
                 if osd in shares and fair[osd] > shares[osd] > parts[osd].fixed_utilization}
        if above:   # their buckets would have them hold more of their capacity than others
            for osd, factor in above.items():
                parts[osd] = parts[osd]._replace(
                    size_bytes=max(1, int(parts[osd].size_bytes * factor)))
            network, tiers = _solved(snapshot, component, parts)
            fair = _fair_utilizations(network, tiers, parts)
        for osd, utilization in piecewise(fair.items(), OSDS_AT_ONCE):
            utilizations[osd] = _of_size(snapshot.osds[osd], parts[osd], utilization)
        of_class.update(_levels_by_class(snapshot, component, parts, fair))
        give_way()
        sets.append(_osd_set(snapshot, component, network, tiers, utilizations))
    give_way()
    classes = _highest_by_class(snapshot, of_class)
    return UtilizationBounds(tuple(sorted(sets, key=lambda s: s.osds)), utilizations, classes,
                             _class_cuts(snapshot, of_class, classes))


def _part(osd: Osd, moved: int) -> SinkPart:
    """The part of a sink for an OSD, by its capacity; `moved` bytes on it are of demands."""
    return SinkPart(osd.target_bytes - moved - osd.spared_bytes, osd.capacity_bytes)


def _solved(snapshot: Snapshot, component: Component, parts: Mapping[int, SinkPart],
            limited: Optional[Iterable[int]] = None
            ) -> Tuple[_ComponentNetwork, List[UtilizationTier]]:
    """`limited`: the OSDs whose utilization counts; None for all."""
    osds = [snapshot.osds[osd] for osd in (component.osds if limited is None else limited)]
    ceiling = max((osd.target_bytes - osd.spared_bytes) / parts[osd.id].size_bytes for osd in osds)
    drained_bytes = sum(osd.target_bytes for osd in snapshot.osds.values() if osd.drained)
    if drained_bytes:   # all of it may have to go to one OSD
        ceiling += drained_bytes / min(parts[osd.id].size_bytes for osd in osds)
    give_way()
    network = _build_network(component, parts, ceiling)
    return network, max_min_levels(network.network)


def _fair_utilizations(network: _ComponentNetwork, tiers: Sequence[UtilizationTier],
                       parts: Mapping[int, SinkPart]) -> Dict[int, float]:
    """OSD → its utilization in the fairest placement, a ratio of its capacity."""
    fair: Dict[int, float] = {}
    for tier in piecewise(tiers, 1):
        for node in tier.nodes:
            for osd in network.osds_of.get(node, ()):
                fair[osd] = max(tier.utilization, parts[osd].fixed_utilization)
    return fair


def _levels_by_class(snapshot: Snapshot, component: Component, parts: Mapping[int, SinkPart],
                     fair: Mapping[int, float]) -> Dict[int, float]:
    """OSD → utilization, a ratio of its size, the highest of each class being its bound.

    In a component of several classes each is made even by itself, while OSDs of the others take
    whatever their rules let them.
    """
    members: Dict[str, List[int]] = {}
    for osd in sorted(component.osds):
        members.setdefault(snapshot.osds[osd].device_class, []).append(osd)
    levels = dict(fair)
    for osds in members.values() if len(members) > 1 else ():
        own = frozenset(osds)
        sinks = {osd: parts[osd] if osd in own else SinkPart(
            0, parts[osd].size_bytes * _WITHOUT_LIMIT) for osd in component.osds}
        network, tiers = _solved(snapshot, component, sinks, osds)
        even = _fair_utilizations(network, tiers, sinks)
        levels.update({osd: even[osd] for osd in osds})
    return {osd: _of_size(snapshot.osds[osd], parts[osd], level)
            for osd, level in piecewise(levels.items(), OSDS_AT_ONCE)}


def _of_size(osd: Osd, part: SinkPart, utilization: float) -> float:
    """A utilization of the part as a ratio of the OSD's size."""
    if osd.share >= 1.0:
        return utilization
    return (utilization * part.size_bytes + osd.spared_bytes) / osd.size_bytes


def _highest_by_class(snapshot: Snapshot, utilizations: Mapping[int, float]) -> Dict[str, float]:
    highest: Dict[str, float] = {}
    for osd, utilization in utilizations.items():
        if snapshot.osds[osd].is_for_data and snapshot.osds[osd].up:
            name = snapshot.osds[osd].device_class
            highest[name] = max(utilization, highest.get(name, utilization))
    return {name: highest[name] for name in sorted(highest)}


def _class_cuts(snapshot: Snapshot, utilizations: Mapping[int, float],
                classes: Mapping[str, float]) -> Dict[str, FrozenSet[int]]:
    """Device class → its OSDs that are at the class's bound."""
    found: Dict[str, List[int]] = {name: [] for name in classes}
    for osd, utilization in piecewise(utilizations.items(), OSDS_AT_ONCE):
        entry = snapshot.osds[osd]
        if entry.is_for_data and entry.up and (
                utilization >= classes[entry.device_class] * (1.0 - _SAME)):
            found[entry.device_class].append(osd)
    return {name: frozenset(osds) for name, osds in found.items()}


def _build_network(component: Component, parts: Mapping[int, SinkPart],
                   ceiling: float) -> _ComponentNetwork:
    """The component's network; no OSD can end above the ceiling (a ratio of capacity)."""
    built = _ComponentNetwork()
    roots = [(built.add_demand(demand), demand) for demand in component.demands]
    most = {osd: ceiling * parts[osd].size_bytes - parts[osd].fixed_bytes for osd in component.osds}
    alike = alike_osds(component, most)
    for (paths, single), osds in piecewise(alike.items(), _SINKS_AT_ONCE):
        sink = built.add_sink(tuple(osds), [parts[osd] for osd in osds])
        if single is not None:
            built.item_of[sink] = single
        for (root, demand), path in zip(roots, paths):
            if path is not None:
                limited = single is not None and demand.osd_limit_counts()
                built.network.add_edge(built.bucket(root, path), sink, min(
                    demand.all_bytes, demand.single_bytes) if limited else demand.all_bytes)
    return built


def _osd_set(snapshot: Snapshot, component: Component, network: _ComponentNetwork,
             tiers: Sequence[UtilizationTier], utilizations: Mapping[int, float]) -> OsdSet:
    bound = max(utilizations[osd] for osd in component.osds)
    at_bound = {osd for osd in component.osds if utilizations[osd] >= bound * (1.0 - _SAME)}
    return OsdSet(
        device_class=",".join(sorted({snapshot.osds[o].device_class for o in component.osds})),
        takes=tuple(sorted({_name(snapshot, demand.take) for demand in component.demands})),
        osds=tuple(sorted(component.osds)), bound=bound,
        binding=_binding(snapshot, component, network, tiers, at_bound, bound))


def _tier_of(network: _ComponentNetwork, tiers: Sequence[UtilizationTier], osds: Set[int]) -> int:
    """Number of the highest tier with one of the OSDs; OSDs that are held to a share may be above
    it."""
    return next((number for number, tier in enumerate(tiers) if any(
        not osds.isdisjoint(network.osds_of.get(node, ())) for node in tier.nodes)), 0)


def _binding(snapshot: Snapshot, component: Component, network: _ComponentNetwork,
             tiers: Sequence[UtilizationTier], at_bound: Set[int],
             bound: float) -> BindingConstraint:
    """The constraint that keeps the highest tier at the bound."""
    osds, number = tuple(sorted(at_bound)), _tier_of(network, tiers, at_bound)
    tier = tiers[number]
    if bound * (1.0 - _SAME) > tier.utilization:
        return BindingConstraint(FIXED, osds, (), ())
    saturated = network.saturated_edges(tiers, number)
    if saturated:
        return BindingConstraint(
            FAILURE_DOMAIN, osds,
            tuple(sorted({_name(snapshot, item).split("~")[0] for _, item in saturated})),
            tuple(sorted({pool for demand, _ in saturated for pool in demand.pools})))
    if all(osd in at_bound or snapshot.osds[osd].share < 1.0 for osd in component.osds):
        return BindingConstraint(CAPACITY, osds, (), ())
    confined = [network.demand_of[node] for node in tier.nodes if node in network.demand_of]
    pools = tuple(sorted({pool for demand in confined for pool in demand.pools}))
    return BindingConstraint(CAPACITY, osds, (), pools)


def _name(snapshot: Snapshot, item: int) -> str:
    """The name of a bucket or OSD."""
    return f"osd.{item}" if item >= 0 else snapshot.crush.buckets[item].name

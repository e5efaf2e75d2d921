"""The lower bound of the highest utilization of OSDs, and the constraint that sets it.

The bound treats shards as if they could be split at will (see `demand`); no placement of whole
shards can be better. A flow network says which bytes can be on which OSDs (`build_network` of
`max_min_levels.py`).
"""
from __future__ import annotations

from collections import defaultdict
from typing import (
    Dict, FrozenSet, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple)

from ...plan.fixed_bytes import without_fixed_bytes
from ...plan.usage import share_utilizations
from ...runtime.time_slice import give_way, grouped, piecewise
from ...snapshot.model import Osd, Snapshot, without_shares
from .demand import OSDS_AT_ONCE, Cut, MovableBytes, cuts_of, movable_bytes
from .max_min_levels import (
    CapacityNetwork, Component, SinkPart, UtilizationTier, build_network, max_min_levels)
from .pool_space import PoolSpaceBound, pool_space_bounds


# Values of BindingConstraint.kind.
CAPACITY = "capacity"
FAILURE_DOMAIN = "failure domain"
FIXED = "fixed bytes"

#: Utilizations that differ by a smaller ratio are equal.
_SAME = 1e-9


class BindingConstraint(NamedTuple):
    """The constraint that keeps the fullest OSDs of a set from being emptier.

    CAPACITY: the bytes fill the OSDs. FAILURE_DOMAIN: buckets with free space may not take more
    shards. FIXED: the bytes on these OSDs cannot be on others.
    """

    kind: str
    osds: Tuple[int, ...]     # all OSDs at the bound
    buckets: Tuple[str, ...]  # buckets (or OSDs) that can take no more shards of these pools
    pools: Tuple[int, ...]    # pools whose rules keep their bytes here; empty if all OSDs are full


class OsdSet(NamedTuple):
    """OSDs connected by pools that may use them: data can go from one to another."""

    name: str                 # unique
    takes: Tuple[str, ...]    # names of the buckets that rules take, with "~class"
    osds: Tuple[int, ...]
    bound: float              # lowest possible highest utilization, a ratio
    binding: BindingConstraint


class UtilizationBounds(NamedTuple):
    """Utilizations are ratios of a device's size.

    An OSD with a lowered weight has its share of the utilization of other OSDs under the same
    takes. `highest` and `at_bound` also have sets without data of any pool.
    """

    sets: Tuple[OsdSet, ...]
    #: OSD → utilization in the fairest placement of split shards; the present one if no pool with
    #: data may use the OSD
    utilizations: Dict[int, float]
    highest: Dict[str, float]        # OSD set → its bound, of OSDs that are up and in
    at_bound: Mapping[str, FrozenSet[int]]        # OSD set → its OSDs at that bound
    members: Mapping[str, Sequence[int]]          # OSD set → its OSDs that are up and in
    # only `cluster_bounds` fills these
    epoch: int = 0                                  # of the osdmap
    pool_space: Mapping[int, PoolSpaceBound] = {}   # pool id → its bound
    cuts: Mapping[FrozenSet[int], Cut] = {}         # prove the bounds of sets and pools


def utilization_bounds(snapshot: Snapshot, fixed_pools: FrozenSet[int] = frozenset(),
                       movable: Optional[MovableBytes] = None) -> UtilizationBounds:
    """Returns the bounds of every set of OSDs.

    Pools in `fixed_pools` stay where they are. `movable`: the movable bytes, if already computed.
    """
    if movable is None:
        movable = movable_bytes(snapshot, fixed_pools)
    leveled = without_fixed_bytes(snapshot)
    return of_sizes(leveled_bounds(leveled, movable), leveled, snapshot)


def of_sizes(bounds: UtilizationBounds, leveled: Snapshot, snapshot: Snapshot
             ) -> UtilizationBounds:
    """Converts bounds of the cluster without fixed bytes to ratios of the sizes with them.

    `highest` is at most the present maximum unless OSDs are drained: lowered weights can ask for
    more.
    """
    found = dict(bounds.utilizations)
    for number, osd in leveled.osds.items():
        if osd.fixed_bytes and number in found:
            used = found[number] * osd.size_bytes + osd.fixed_bytes
            found[number] = used / snapshot.osds[number].size_bytes
    highest: Dict[str, float] = {}
    for name, members in bounds.members.items():
        highest[name] = max([found[osd] for osd in members])
        if not snapshot.drained_osds:
            now = [snapshot.osds[osd].target_utilization or 0.0 for osd in members]
            highest[name] = min(highest[name], max(now))
    sets = [one._replace(bound=max([found[osd] for osd in one.osds])) for one in bounds.sets]
    return bounds._replace(utilizations=found, highest=highest, sets=tuple(sets))


def cluster_bounds(snapshot: Snapshot,
                   fixed_pools: FrozenSet[int] = frozenset()) -> UtilizationBounds:
    """Returns the bounds of utilization and of the pools' free space, with their proofs.

    Lowered weights are an operator's wish and prove nothing, so `at_bound` uses full sizes.
    """
    movable = movable_bytes(snapshot, fixed_pools)
    bounds = utilization_bounds(snapshot, movable=movable)
    give_way()
    by_size = without_shares(snapshot)
    at_bound = leveled_bounds(by_size, movable).at_bound
    pool_space = pool_space_bounds(snapshot, movable)
    proofs = [*at_bound.values(), *[bound.osds for bound in pool_space.values()]]
    return bounds._replace(
        epoch=snapshot.epoch,
        at_bound=at_bound,
        pool_space=pool_space,
        cuts=cuts_of(snapshot, movable, proofs))


def leveled_bounds(snapshot: Snapshot, movable: MovableBytes) -> UtilizationBounds:
    """Returns the bounds of a snapshot by its sizes and used bytes."""
    parts: Dict[int, SinkPart] = {}   # OSD → its part of a sink, by its capacity
    for number, moved in piecewise(movable.on_osd.items(), OSDS_AT_ONCE):
        entry = snapshot.osds[number]
        fixed = entry.target_bytes - moved - entry.spared_bytes
        parts[number] = SinkPart(fixed, entry.capacity_bytes)
    utilizations: Dict[int, float] = {}
    for number, osd in piecewise(sorted(snapshot.osds.items()), OSDS_AT_ONCE):
        if osd.has_statistics and osd.size_bytes > 0:
            utilizations[number] = osd.target_utilization or 0.0
    give_way()
    shares = share_utilizations(snapshot)
    sets: List[OsdSet] = []
    demands = grouped((demand.reach.set_name or "", demand) for demand in movable.demands)
    for name, tied in demands.items():
        component = Component(tied, set().union(*[demand.reach.osds for demand in tied]))
        sets.append(_level(snapshot, name, component, parts, shares, utilizations))
    members: Dict[str, Sequence[int]] = _members(snapshot, utilizations)
    members.update({osd_set.name: osd_set.osds for osd_set in sets})
    highest: Dict[str, float] = {}
    at_bound: Dict[str, FrozenSet[int]] = {}
    for name in sorted(members):
        highest[name], at_bound[name] = _highest(members[name], utilizations)
    sets.sort(key=lambda osd_set: osd_set.osds)
    return UtilizationBounds(tuple(sets), utilizations, highest, at_bound, members)


def _members(snapshot: Snapshot, osds: Iterable[int]) -> Dict[str, Sequence[int]]:
    """Returns OSD set → those of the OSDs that are up and in, by name."""
    members: Dict[str, List[int]] = defaultdict(list)
    for osd in piecewise(osds, OSDS_AT_ONCE):
        entry = snapshot.osds[osd]
        if entry.is_for_data and entry.up:
            members[snapshot.set_of(osd)].append(osd)
    return dict(sorted(members.items()))


def _highest(osds: Iterable[int], utilizations: Mapping[int, float]
             ) -> Tuple[float, FrozenSet[int]]:
    """Returns the highest utilization of the OSDs, and the OSDs at that utilization."""
    highest = max([utilizations[osd] for osd in osds])
    least = highest * (1.0 - _SAME)
    return highest, frozenset([osd for osd in osds if utilizations[osd] >= least])


def _level(snapshot: Snapshot, name: str, component: Component, parts: Dict[int, SinkPart],
           shares: Mapping[int, float], utilizations: Dict[int, float]) -> OsdSet:
    """Solves one set of OSDs, and puts their lowest utilizations into `utilizations`.

    `shares`: OSD with a lowered weight → the utilization that its weight asks for.
    """
    solution = _solved(snapshot, component, parts)
    raised = False
    for osd in component.osds & shares.keys():
        part = parts[osd]
        share = shares[osd]
        fair = solution.fair[osd]
        # its bucket would fill it more than other OSDs, as ratios of their capacity
        if fair > share > part.fixed_utilization:
            size = int(part.size_bytes * (share / fair))
            parts[osd] = part._replace(size_bytes=max(1, size))
            raised = True
    if raised:
        solution = _solved(snapshot, component, parts)
    for osd, utilization in piecewise(solution.fair.items(), OSDS_AT_ONCE):
        utilizations[osd] = _of_size(snapshot.osds[osd], parts[osd], utilization)
    give_way()
    bound, at_bound = _highest(component.osds, utilizations)
    takes = {demand.reach.block.take for demand in component.demands}
    return OsdSet(
        name=name,
        takes=tuple(sorted(map(snapshot.crush.name_of, takes))),
        osds=tuple(sorted(component.osds)),
        bound=bound,
        binding=_binding(snapshot, component, solution, at_bound, bound))


class _Solution(NamedTuple):
    """The fairest placement of split shards on the OSDs of a component."""

    network: CapacityNetwork
    tiers: Sequence[UtilizationTier]   # from the highest to the lowest
    fair: Dict[int, float]             # OSD → utilization, a ratio of its capacity


def _solved(snapshot: Snapshot, component: Component,
            parts: Mapping[int, SinkPart]) -> _Solution:
    """Returns the fairest placement of a component."""
    sizes = {osd: parts[osd].size_bytes for osd in component.osds}
    osds = [snapshot.osds[osd] for osd in sizes]
    ceiling = max([(osd.target_bytes - osd.spared_bytes) / sizes[osd.id] for osd in osds])
    drained_bytes = sum([osd.target_bytes for osd in snapshot.osds.values() if osd.drained])
    # in the worst case one OSD gets all of it
    ceiling += drained_bytes / min(sizes.values())
    network = build_network(component, parts, ceiling)
    tiers = max_min_levels(network)
    fair: Dict[int, float] = {}
    for tier in piecewise(tiers, 1):
        for node in tier.nodes:
            for osd in network.osds_of.get(node, ()):
                fair[osd] = max(tier.utilization, parts[osd].fixed_utilization)
    return _Solution(network, tiers, fair)


def _of_size(osd: Osd, part: SinkPart, utilization: float) -> float:
    """Returns a utilization of the part as a ratio of the OSD's size."""
    if osd.share >= 1.0:
        return utilization
    return (utilization * part.size_bytes + osd.spared_bytes) / osd.size_bytes


def _binding(snapshot: Snapshot, component: Component, solution: _Solution,
             at_bound: FrozenSet[int], bound: float) -> BindingConstraint:
    """Returns the constraint that keeps the OSDs `at_bound` at the bound."""
    network = solution.network
    tiers = solution.tiers
    osds = tuple(sorted(at_bound))
    number = _first_tier_with(solution, at_bound)
    tier = tiers[number]
    if bound * (1.0 - _SAME) > tier.utilization:
        return BindingConstraint(FIXED, osds, (), ())
    demand_of = network.demand_of
    lower: Set[int] = set().union(*[below.nodes for below in tiers[number + 1:]])
    # edges to lower tiers carry all they can, those to higher tiers nothing
    kind = CAPACITY
    buckets: Set[str] = set()
    pools: Set[int] = set()
    for tail in tier.nodes:
        for head, _ in network.edges[tail]:
            if head in lower:
                kind = FAILURE_DOMAIN
                buckets.add(snapshot.crush.name_of(network.item_of[head]).split("~")[0])
                pools.update(demand_of[tail].pools)
    below_bound = [snapshot.osds[osd] for osd in component.osds - at_bound]
    if not buckets and any([osd.share >= 1.0 for osd in below_bound]):
        for node in demand_of.keys() & tier.nodes:
            pools.update(demand_of[node].pools)
    return BindingConstraint(kind, osds, tuple(sorted(buckets)), tuple(sorted(pools)))


def _first_tier_with(solution: _Solution, osds: FrozenSet[int]) -> int:
    """Returns the number of the highest tier with one of the OSDs; others may be above it."""
    for number, tier in enumerate(solution.tiers):
        for node in tier.nodes:
            if not osds.isdisjoint(solution.network.osds_of.get(node, ())):
                return number
    return 0

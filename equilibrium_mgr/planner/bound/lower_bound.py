"""The lower bound of the highest utilization of OSDs and what sets it.

Shards are treated as if they could be split at will (see `demand`), which no placement of whole
shards can beat. Which bytes can be on which OSDs is a flow network (`build_network` of
`max_min_levels.py`).
"""
from __future__ import annotations

from typing import (
    Dict, FrozenSet, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple)

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

    CAPACITY: bytes simply fill them. FAILURE_DOMAIN: buckets with free space may not take more
    shards. FIXED: what is on these OSDs cannot be on any other.
    """

    kind: str
    osds: Tuple[int, ...]     # all OSDs that are at the bound
    buckets: Tuple[str, ...]  # buckets (or OSDs) that can take no more shards of these pools
    pools: Tuple[int, ...]    # pools whose rules keep their bytes here; none if all OSDs are full


class OsdSet(NamedTuple):
    """OSDs connected by pools that may use them: what leaves one can end on another."""

    name: str                 # unique
    takes: Tuple[str, ...]    # names of what the rules take, with "~class"
    osds: Tuple[int, ...]
    bound: float              # lowest possible highest utilization, a ratio
    binding: BindingConstraint


class UtilizationBounds(NamedTuple):
    """Utilizations are ratios of a device's size. That of an OSD which an operator's weights hold
    to a share is this share of what OSDs of the same takes have.

    `highest` and `at_bound` have all sets, those on which no pool places data too, by name.
    """

    sets: Tuple[OsdSet, ...]
    utilizations: Dict[int, float]   # OSD → utilization in the fairest placement of split shards
    highest: Dict[str, float]        # OSD set → its bound; of OSDs that are up and in
    at_bound: Mapping[str, FrozenSet[int]]        # OSD set → its OSDs at that bound
    members: Mapping[str, Sequence[int]]          # OSD set → its OSDs that are up and in
    # by cluster_bounds alone
    epoch: int = 0                                  # of the osdmap
    pool_space: Mapping[int, PoolSpaceBound] = {}   # pool id → its bound
    cuts: Mapping[FrozenSet[int], Cut] = {}         # what proves the bounds of sets and pools


def utilization_bounds(snapshot: Snapshot, fixed_pools: FrozenSet[int] = frozenset(),
                       movable: Optional[MovableBytes] = None) -> UtilizationBounds:
    """The bounds for every set of OSDs; pools in `fixed_pools` stay where they are. `movable`:
    what then can be moved, where that is known."""
    leveled = without_fixed_bytes(snapshot)
    return of_sizes(leveled_bounds(leveled, movable or movable_bytes(snapshot, fixed_pools)),
                    leveled, snapshot)


def of_sizes(bounds: UtilizationBounds, leveled: Snapshot, snapshot: Snapshot
             ) -> UtilizationBounds:
    """Bounds of the cluster without fixed bytes, as ratios of the sizes with them. None is above
    what is, but where OSDs are emptied: what operators' weights ask for can be more."""
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
    return bounds._replace(utilizations=found, highest=highest, sets=tuple([
        one._replace(bound=max([found[osd] for osd in one.osds])) for one in bounds.sets]))


def cluster_bounds(snapshot: Snapshot,
                   fixed_pools: FrozenSet[int] = frozenset()) -> UtilizationBounds:
    """As utilization_bounds, with those of the pools' free space, and what proves them all.

    That OSDs are held to a share is an operator's wish, which proves nothing: `at_bound` is by the
    sizes alone.
    """
    movable = movable_bytes(snapshot, fixed_pools)
    bounds = utilization_bounds(snapshot, movable=movable)
    give_way()
    by_size = without_shares(snapshot)
    at_bound = leveled_bounds(by_size, movable).at_bound
    pool_space = pool_space_bounds(snapshot, movable)
    return bounds._replace(
        epoch=snapshot.epoch, at_bound=at_bound, pool_space=pool_space, cuts=cuts_of(
            snapshot, movable,
            [*at_bound.values(), *[bound.osds for bound in pool_space.values()]]))


def leveled_bounds(snapshot: Snapshot, movable: MovableBytes) -> UtilizationBounds:
    """The bounds by the sizes and used bytes that the snapshot has."""
    parts: Dict[int, SinkPart] = {}   # OSD → its part of a sink, by its capacity
    for number, moved in piecewise(movable.on_osd.items(), OSDS_AT_ONCE):
        entry = snapshot.osds[number]
        parts[number] = SinkPart(entry.target_bytes - moved - entry.spared_bytes,
                                 entry.capacity_bytes)
    utilizations = {
        number: osd.target_utilization or 0.0 for number, osd in piecewise(
            sorted(snapshot.osds.items()), OSDS_AT_ONCE)
        if osd.has_statistics and osd.size_bytes > 0}
    give_way()
    shares = share_utilizations(snapshot)
    sets: List[OsdSet] = []
    demands = grouped((demand.reach.set_name or "", demand) for demand in movable.demands)
    for name, tied in demands.items():
        component = Component(tied, set().union(*[demand.reach.osds for demand in tied]))
        network, tiers, fair = _solved(snapshot, component, parts)
        above = {osd: shares[osd] / fair[osd] for osd in component.osds
                 if osd in shares and fair[osd] > shares[osd] > parts[osd].fixed_utilization}
        if above:   # their buckets would have them hold more of their capacity than others
            for osd, factor in above.items():
                parts[osd] = parts[osd]._replace(
                    size_bytes=max(1, int(parts[osd].size_bytes * factor)))
            network, tiers, fair = _solved(snapshot, component, parts)
        for osd, utilization in piecewise(fair.items(), OSDS_AT_ONCE):
            utilizations[osd] = _of_size(snapshot.osds[osd], parts[osd], utilization)
        give_way()
        bound = max(utilizations[osd] for osd in component.osds)
        at_bound = {osd for osd in component.osds if utilizations[osd] >= bound * (1.0 - _SAME)}
        sets.append(OsdSet(
            name,
            tuple(sorted({snapshot.crush.name_of(demand.reach.block.take)
                          for demand in component.demands})),
            tuple(sorted(component.osds)), bound,
            _binding(snapshot, component, network, tiers, at_bound, bound)))
    give_way()
    known = [osd for osd in piecewise(utilizations, OSDS_AT_ONCE)
             if snapshot.osds[osd].is_for_data and snapshot.osds[osd].up]
    members: Dict[str, Sequence[int]] = {
        name: [osd for osd in known if snapshot.set_of(osd) == name]
        for name in sorted(set(map(snapshot.set_of, known)))}
    members.update({osd_set.name: osd_set.osds for osd_set in sets})
    highest = {name: max([utilizations[osd] for osd in members[name]]) for name in sorted(members)}
    return UtilizationBounds(
        tuple(sorted(sets, key=lambda s: s.osds)), utilizations, highest,
        {name: frozenset([osd for osd in members[name]
                          if utilizations[osd] >= bound * (1.0 - _SAME)])
         for name, bound in highest.items()}, members)


def _solved(snapshot: Snapshot, component: Component, parts: Mapping[int, SinkPart]
            ) -> Tuple[CapacityNetwork, List[UtilizationTier], Dict[int, float]]:
    """The network, its tiers, and OSD → its utilization in the fairest placement, a ratio of its
    capacity."""
    osds = [snapshot.osds[osd] for osd in component.osds]
    ceiling = max((osd.target_bytes - osd.spared_bytes) / parts[osd.id].size_bytes for osd in osds)
    drained_bytes = sum(osd.target_bytes for osd in snapshot.osds.values() if osd.drained)
    if drained_bytes:   # all of it may have to go to one OSD
        ceiling += drained_bytes / min(parts[osd.id].size_bytes for osd in osds)
    give_way()
    network = build_network(component, parts, ceiling)
    tiers = max_min_levels(network)
    fair: Dict[int, float] = {}
    for tier in piecewise(tiers, 1):
        for node in tier.nodes:
            for osd in network.osds_of.get(node, ()):
                fair[osd] = max(tier.utilization, parts[osd].fixed_utilization)
    return network, tiers, fair


def _of_size(osd: Osd, part: SinkPart, utilization: float) -> float:
    """A utilization of the part as a ratio of the OSD's size."""
    return utilization if osd.share >= 1.0 else (
        utilization * part.size_bytes + osd.spared_bytes) / osd.size_bytes


def _binding(snapshot: Snapshot, component: Component, network: CapacityNetwork,
             tiers: Sequence[UtilizationTier], at_bound: Set[int],
             bound: float) -> BindingConstraint:
    """The constraint that keeps the highest tier at the bound."""
    osds = tuple(sorted(at_bound))
    # the highest tier with one of the OSDs; OSDs that are held to a share may be above it
    number = next((number for number, tier in enumerate(tiers) if any(
        not at_bound.isdisjoint(network.osds_of.get(node, ())) for node in tier.nodes)), 0)
    tier = tiers[number]
    if bound * (1.0 - _SAME) > tier.utilization:
        return BindingConstraint(FIXED, osds, (), ())
    lower = {node for below in tiers[number + 1:] for node in below.nodes}
    # where edges lead to lower tiers: these carry all they can, those to higher tiers nothing
    saturated = [(network.demand_of[tail], network.item_of[head]) for tail in tier.nodes
                 for head, _ in network.edges[tail] if head in lower]
    if saturated:
        return BindingConstraint(
            FAILURE_DOMAIN, osds,
            tuple(sorted({snapshot.crush.name_of(item).split("~")[0] for _, item in saturated})),
            tuple(sorted({pool for demand, _ in saturated for pool in demand.pools})))
    if all(osd in at_bound or snapshot.osds[osd].share < 1.0 for osd in component.osds):
        return BindingConstraint(CAPACITY, osds, (), ())
    confined = [network.demand_of[node] for node in tier.nodes if node in network.demand_of]
    return BindingConstraint(CAPACITY, osds, (), tuple(sorted(
        {pool for demand in confined for pool in demand.pools})))

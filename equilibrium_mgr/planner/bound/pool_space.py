"""An upper bound of each pool's free space in any placement, and its proof.

A pool's free space ends when its first OSD is at full_ratio. Until then clients have made each of
its shards grow alike, and all shards of the cluster still fit on the OSDs. So the free space is at
most the growth with which shards that can be split at will fit (see `demand`). This is a maximum
flow with a parameter. Newton's method finds it on the minimum cuts, and each of these proves a
bound (T. Radzik, "Parametric flows, weighted means of cuts, and fractional combinatorial
optimization", 1993).

"Any placement" means one that is legal, and in which no OSD is above full_ratio except those that
are above it now.
"""
from __future__ import annotations

from math import ceil, floor
from operator import attrgetter
from typing import Dict, FrozenSet, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ...runtime.time_slice import give_way, piecewise
from ...snapshot.model import Pool, Snapshot
from .demand import (
    OSDS_AT_ONCE, Demand, MovableBytes, PoolDemand, full_bytes)
from .max_min_levels import Component, SinkPart, build_network, components, upper_nodes, whole

# Values of PoolSpaceBound.kind.
CAPACITY = "capacity"              # all OSDs that its bytes can reach are full then
FAILURE_DOMAIN = "failure domain"  # some are full then; the rule keeps bytes off the others

#: Growths of a pool whose relative difference is below this are equal.
_SAME = 1e-12
_STEPS = 1_000_000   # of a ratio of growths
_MOST_CUTS = 50   # a handful is needed


class PoolSpaceBound(NamedTuple):
    """The most free space that a placement can leave a pool."""

    free_bytes: int           # client bytes
    kind: str
    osds: FrozenSet[int]      # the cut: OSDs that are full then and cannot hold less
    kept_shards: float        # shards of a PG that are always on them
    shards: int               # of the pool
    shard_bytes: int          # mean


class _Growth(NamedTuple):
    """The growth of a part of a pool, as a ratio of the growth that is searched for."""

    part: PoolDemand
    all: float      # bytes of all shards
    single: float   # bytes of one shard of each PG


class _Cut(NamedTuple):
    growth: float   # the most that the cut allows
    osds: FrozenSet[int]
    kept_shards: float


def alike_growth(snapshot: Snapshot, movable: MovableBytes) -> List[Tuple[float, float]]:
    """Returns for each set of OSDs with data (the ratio by which its pools can grow, raw bytes).

    All pools of a set grow by the same ratio. The raw bytes are those that come if they double.
    """
    growths: List[_Growth] = []
    for part in movable.parts():
        if part.all_shards and part.reach.set_name is not None:
            pool = snapshot.pools[part.pool]
            rate = pool.stored_bytes / pool.chunks
            growths.append(_Growth(part, rate * part.all_weight, rate * part.single_weight))
    cuts = _cuts(movable, growths, _room(snapshot, movable))
    return [(cut.growth, raw) for cut, raw in cuts]


def _room(snapshot: Snapshot, movable: MovableBytes) -> Dict[int, int]:
    """Returns usable OSD → bytes of demands that it can hold; shards outside their rule leave
    it."""
    room: Dict[int, int] = {}
    for osd, moved in piecewise(movable.on_osd.items(), OSDS_AT_ONCE):
        free = full_bytes(snapshot, osd) - snapshot.osds[osd].target_bytes
        room[osd] = free + moved + movable.outside[osd]
    return room


def pool_space_bounds(snapshot: Snapshot, movable: MovableBytes) -> Dict[int, PoolSpaceBound]:
    """Returns pool id → its bound.

    Pools have none if their rule is not understood or they have no shards where it places any.
    """
    room = _room(snapshot, movable)
    cuts: Dict[Tuple[object, ...], Optional[_Cut]] = {}
    bounds: Dict[int, PoolSpaceBound] = {}
    for number, parts in piecewise(movable.pools.items(), 1):
        growths = _growths_of_pool(parts)
        key = tuple([(*growth.part.growth_shape(), growth.all, growth.single)
                     for growth in growths])
        if key not in cuts:
            found = [cut for cut, _ in _cuts(movable, growths, room)]
            cuts[key] = min(found, key=attrgetter("growth"), default=None)
        cut = cuts[key]
        if cut is not None:
            bounds[number] = _bound(snapshot.pools[number], growths, cut)
    return bounds


def _growths_of_pool(parts: Sequence[PoolDemand]) -> List[_Growth]:
    """Returns the growth of a pool's parts, as ratios of one shard of each PG of the first part.

    Rounds so that pools of one shape share a cut, towards more free space.
    """
    placed = [part for part in parts if part.all_shards]
    growths: List[_Growth] = []
    for part in placed:
        unit = placed[0].single_weight
        all_steps = floor(_STEPS * part.all_weight / unit)
        single_steps = ceil(_STEPS * part.single_weight / unit)
        growths.append(_Growth(part, all_steps / _STEPS, single_steps / _STEPS))
    return growths


def _bound(pool: Pool, growths: Sequence[_Growth], cut: _Cut) -> PoolSpaceBound:
    """Returns the bound that the cut proves for a pool."""
    parts = [growth.part for growth in growths]
    positions = parts[0].single_weight / pool.pg_num   # 1 if each PG of the map is known
    growth = max(0.0, cut.growth / positions)
    reached = frozenset().union(*[part.reach.osds for part in parts])
    shards = sum([part.all_shards for part in parts])
    return PoolSpaceBound(
        free_bytes=ceil(growth * pool.data_shards * (1.0 + _SAME)),
        kind=CAPACITY if reached <= cut.osds else FAILURE_DOMAIN,
        osds=cut.osds,
        kept_shards=cut.kept_shards * positions,
        shards=shards,
        shard_bytes=sum([part.all_bytes for part in parts]) // shards)


def _cuts(movable: MovableBytes, growths: Sequence[_Growth],
          room: Mapping[int, int]) -> List[Tuple[_Cut, float]]:
    """Returns (the cut that allows the least growth, raw bytes) for each component that grows.

    The raw bytes are those that come to the component per unit of growth. A component without a
    limit is left out.
    """
    by_shape = {demand.shape: demand for demand in movable.demands}
    grown: Dict[Tuple[object, ...], Tuple[float, float]] = {}
    for growth in growths:
        shape = growth.part.growth_shape()
        if shape not in by_shape:
            by_shape[shape] = Demand(growth.part.reach, shape)
        of_all, of_single = grown.get(shape, (0.0, 0.0))
        grown[shape] = of_all + growth.all, of_single + growth.single
    found: List[Tuple[_Cut, float]] = []
    for component in components(by_shape.values()):
        raw = [grown[one.shape][0] for one in component.demands if one.shape in grown]
        if raw:
            cut = _cut_of_component(component, grown, room)
            if cut is not None:
                found.append((cut, sum(raw)))
    return found


def _cut_of_component(component: Component, grown: Mapping[Tuple[object, ...], Tuple[float, float]],
                      room: Mapping[int, int]) -> Optional[_Cut]:
    """Returns the cut that allows the least growth; None if nothing limits it.

    Newton's method: tries the growth that a cut allows, until all bytes find a place.
    """
    best: Optional[_Cut] = None
    osds = frozenset(component.osds)
    parts = {osd: SinkPart(0, max(1, room[osd])) for osd in component.osds}
    for _ in range(_MOST_CUTS):
        cut = _cut(component, grown, room, osds)
        if cut is None:
            return best
        if best is not None and cut.growth >= best.growth * (1.0 - _SAME):
            return best
        best = cut
        growth = max(0.0, cut.growth)
        demands = []
        for demand in component.demands:
            of_all, of_single = grown.get(demand.shape, (0.0, 0.0))
            demands.append(demand.with_bytes(
                demand.all_bytes + int(growth * of_all),
                demand.single_bytes + int(growth * of_single) + 1))
        network = build_network(Component(demands, component.osds), parts, 1.0)
        # the OSDs that cannot hold all bytes that have to be on them
        nodes = upper_nodes(network, whole(network), 1.0)
        osds = frozenset().union(*[network.osds_of.get(node, ()) for node in nodes])
        give_way()
        if not osds:
            return best
    return best


def _cut(component: Component, grown: Mapping[Tuple[object, ...], Tuple[float, float]],
         room: Mapping[int, int], osds: FrozenSet[int]) -> Optional[_Cut]:
    """Returns the cut of these OSDs; None if all growth can be on other OSDs.

    It allows the growth at which the OSDs are full with bytes that cannot be elsewhere.
    """
    left = sum([room[osd] for osd in osds])
    confined_growth = 0.0
    for demand in component.demands:
        outside = demand.reach.most_shards(demand.reach.osds - osds)
        left -= max(0, demand.all_bytes - outside * demand.single_bytes)
        if demand.shape in grown:
            of_all, of_single = grown[demand.shape]
            confined_growth += max(0.0, of_all - outside * of_single)
    if confined_growth <= 0.0:
        return None
    return _Cut(left / confined_growth, osds, confined_growth)

"""An upper bound of each pool's free space, whatever the placement, and what proves it.

A pool's free space ends when its first OSD is at full_ratio. When clients have written to it until
then, each of its shards has grown alike, and all shards of the cluster still fit on the OSDs: so it
is at most the growth with which shards that can be split at will fit (see `demand`). This is a
maximum flow with a parameter. Newton's method finds it on the minimum cuts, each of which is a
bound by itself (T. Radzik, "Parametric flows, weighted means of cuts, and fractional combinatorial
optimization", 1993).

A placement here is a legal one in which no OSD is above full_ratio that is not there now.
"""
from __future__ import annotations

from math import ceil, floor
from typing import Dict, FrozenSet, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ...runtime.time_slice import give_way, piecewise
from ...snapshot.model import Pool, Snapshot
from .demand import (
    OSDS_AT_ONCE, Demand, MovableBytes, PoolDemand, full_bytes)
from .max_min_levels import Component, SinkPart, build_network, components, upper_nodes, whole

# Values of PoolSpaceBound.kind.
CAPACITY = "capacity"              # all OSDs are full then that its bytes can reach
FAILURE_DOMAIN = "failure domain"  # some are, which have to hold what others must not

#: Growths that differ by a smaller ratio are equal.
_SAME = 1e-12
_STEPS = 1_000_000   # of a ratio of growths
_MOST_CUTS = 50   # a handful is needed


class PoolSpaceBound(NamedTuple):
    """No placement leaves a pool more free space; client bytes."""

    free_bytes: int
    kind: str
    osds: FrozenSet[int]      # full then, and cannot hold less: the cut
    kept_shards: float        # of a PG that are always on them
    shards: int               # of the pool
    shard_bytes: int          # mean
    reached_osds: int         # that may hold any


class _Growth(NamedTuple):
    """Bytes that come to a demand for each that comes to one shard of each PG."""

    part: PoolDemand
    all: float
    single: float   # to one shard of each PG


class _Cut(NamedTuple):
    growth: float   # bytes that come to one shard of each PG at most
    osds: FrozenSet[int]
    kept_shards: float


def alike_growth(snapshot: Snapshot, movable: MovableBytes) -> List[Tuple[float, float]]:
    """For each set of OSDs whose pools have data: the most by which all these can grow, each by the
    same ratio, and the raw bytes that come to the set where they double."""
    growths = [_Growth(part, rate * part.all_weight, rate * part.single_weight)
               for _, parts in sorted(movable.pools.items()) for part in parts
               if part.all_shards and part.reach.set_name is not None
               for pool in (snapshot.pools[part.pool],)
               for rate in (pool.stored_bytes / (pool.pg_num * pool.data_shards),)]
    return [(cut.growth, raw) for cut, raw in _cuts(movable, growths, _room(snapshot, movable))]


def _room(snapshot: Snapshot, movable: MovableBytes) -> Dict[int, int]:
    """Usable OSD → bytes of demands that it can hold; shards outside their rule leave it."""
    return {osd: full_bytes(snapshot, osd) - snapshot.osds[osd].target_bytes + moved
            + movable.outside.get(osd, 0)
            for osd, moved in piecewise(movable.on_osd.items(), OSDS_AT_ONCE)}


def pool_space_bounds(snapshot: Snapshot, movable: MovableBytes) -> Dict[int, PoolSpaceBound]:
    """Pool id → its bound; without pools whose rule is not understood, and those without shards
    where it places any."""
    room = _room(snapshot, movable)
    cuts: Dict[Tuple[object, ...], Optional[_Cut]] = {}
    bounds: Dict[int, PoolSpaceBound] = {}
    for number, parts in piecewise(sorted(movable.pools.items()), 1):
        pool = snapshot.pools[number]
        # in proportion to the first part; rounded so that pools share a cut, towards more room
        placed = [part for part in parts if part.all_shards]
        growths = [_Growth(
            part, floor(_STEPS * part.all_weight / placed[0].single_weight) / _STEPS,
            ceil(_STEPS * part.single_weight / placed[0].single_weight) / _STEPS)
            for part in placed]
        key = tuple([(*growth.part.growth_shape(), growth.all, growth.single)
                     for growth in growths])
        if key not in cuts:
            cuts[key] = min([cut for cut, _ in _cuts(movable, growths, room)],
                            key=lambda cut: cut.growth, default=None)
        cut = cuts[key]
        give_way()
        if cut is not None:
            bounds[number] = _bound(pool, growths, cut)
    return bounds


def _bound(pool: Pool, growths: Sequence[_Growth], cut: _Cut) -> PoolSpaceBound:
    positions = growths[0].part.single_weight / pool.pg_num   # 1 where each PG of the map is known
    # what clients write while so much comes to each position; rounded up
    free = ceil(max(0.0, cut.growth / positions) * pool.data_shards * (1.0 + _SAME))
    kind = CAPACITY if all(entry.part.reach.osds <= cut.osds for entry in growths) else (
        FAILURE_DOMAIN)
    shards = sum([entry.part.all_shards for entry in growths])
    return PoolSpaceBound(
        free, kind, cut.osds, cut.kept_shards * positions, shards,
        sum([entry.part.all_bytes for entry in growths]) // shards,
        len(frozenset().union(*[entry.part.reach.osds for entry in growths])))


def _cuts(movable: MovableBytes, growths: Sequence[_Growth],
          room: Mapping[int, int]) -> List[Tuple[_Cut, float]]:
    """For each component that grows and that something limits: the cut that allows the least
    growth, and the bytes that come to its demands for each of that."""
    by_shape = {demand.shape: demand for demand in movable.demands}
    grown: Dict[Tuple[object, ...], Tuple[float, float]] = {}
    for growth in growths:
        shape = growth.part.growth_shape()
        by_shape.setdefault(shape, Demand(growth.part.reach, shape))
        before = grown.get(shape, (0.0, 0.0))
        grown[shape] = before[0] + growth.all, before[1] + growth.single
    found = [(_cut_of_component(component, grown, room), sum([more[0] for more in growing]))
             for component in components(by_shape.values())
             for growing in ([grown[demand.shape] for demand in component.demands
                              if demand.shape in grown],) if growing]
    return [(cut, raw) for cut, raw in found if cut is not None]


def _cut_of_component(component: Component, grown: Mapping[Tuple[object, ...], Tuple[float, float]],
                      room: Mapping[int, int]) -> Optional[_Cut]:
    """Newton's method: the growth that a cut allows is tried, until it fits."""
    best: Optional[_Cut] = None
    osds = frozenset(component.osds)
    for _ in range(_MOST_CUTS):
        cut = _cut(component, grown, room, osds)
        give_way()
        if cut is None or (best is not None and cut.growth >= best.growth * (1.0 - _SAME)):
            return best
        best = cut
        demands = []
        for demand in component.demands:
            more = grown.get(demand.shape, (0.0, 0.0))
            demands.append(demand.with_bytes(
                demand.all_bytes + int(max(0.0, cut.growth) * more[0]),
                demand.single_bytes + int(max(0.0, cut.growth) * more[1]) + 1))
        # the OSDs that cannot hold what has to be on them; none if all bytes find a place
        built = build_network(Component(demands, component.osds), {
            osd: SinkPart(0, max(1, room[osd])) for osd in component.osds}, 1.0)
        osds = frozenset(osd for node in upper_nodes(built, whole(built), 1.0)
                         for osd in built.osds_of.get(node, ()))
        give_way()
        if not osds:
            return best
    return best


def _cut(component: Component, grown: Mapping[Tuple[object, ...], Tuple[float, float]],
         room: Mapping[int, int], osds: FrozenSet[int]) -> Optional[_Cut]:
    """The growth at which the OSDs are full with what cannot be elsewhere; None where growth can
    always be elsewhere."""
    left = sum([room[osd] for osd in osds])
    confined_growth = 0.0
    for demand in component.demands:
        outside = demand.reach.most_shards(demand.reach.osds - osds)
        left -= max(0, demand.all_bytes - outside * demand.single_bytes)
        more = grown.get(demand.shape)
        if more is not None:
            confined_growth += max(0.0, more[0] - outside * more[1])
    return _Cut(left / confined_growth, osds, confined_growth) if confined_growth > 0.0 else None

"""An upper bound of each pool's free space, whatever the placement, and what proves it.

A pool's free space ends when its first OSD is at full_ratio. When clients have written to it until
then, each of its shards has grown alike, and all shards of the cluster still fit on the OSDs: so it
is at most the growth with which shards that can be split at will fit (see `demand`). This is a
maximum flow with a parameter. Newton's method finds it on the minimum cuts, each of which is a
bound by itself (T. Radzik, "Parametric flows, weighted means of cuts, and fractional combinatorial
optimization", 1993).

That shards cannot be split is counted for each pool by itself (`whole_shard_space`), which is what
bounds pools of few PGs.

A placement here is a legal one in which no OSD is above full_ratio that is not there now.
"""
from __future__ import annotations

from math import ceil, floor
from typing import Dict, FrozenSet, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ...runtime.time_slice import give_way, piecewise
from ...snapshot.model import Pool, Snapshot
from .certificate import full_bytes
from .components import Component, alike_osds, components
from .demand import OSDS_AT_ONCE, Demand, MovableBytes, PoolDemand
from .max_flow import FlowNetwork
from .whole_shard_space import WholeShardSpace

# Values of PoolSpaceBound.kind.
CAPACITY = "capacity"              # all OSDs are full then that its bytes can reach
FAILURE_DOMAIN = "failure domain"  # some are, which have to hold what others must not
WHOLE_SHARDS = "whole shards"      # its shards are too few for its OSDs

#: Growths that differ by a smaller ratio are equal.
_SAME = 1e-12
#: What rounding may leave without a place: this part of all bytes, as a power of two.
_TOLERANCE_SHIFT = 40
_STEPS = 1_000_000   # of a ratio of growths
_MOST_CUTS = 50   # a handful is needed


class PoolSpaceBound(NamedTuple):
    """No placement leaves a pool more free space; client bytes."""

    free_bytes: int
    kind: str
    split_bytes: int          # as free_bytes, if its shards could be split
    osds: FrozenSet[int]      # full with split_bytes, and cannot hold less: the cut
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


def pool_space_bounds(snapshot: Snapshot, movable: MovableBytes) -> Dict[int, PoolSpaceBound]:
    """Pool id → its bound; without pools whose rule is not understood, and those without shards
    where it places any."""
    room = _room(snapshot, movable)
    whole = WholeShardSpace(room)
    cuts: Dict[Tuple[object, ...], Optional[_Cut]] = {}
    bounds: Dict[int, PoolSpaceBound] = {}
    for number, parts in piecewise(sorted(movable.pools.items()), 1):
        pool = snapshot.pools[number]
        growths = _growths(parts)
        key = tuple([(*growth.part.growth_shape(), growth.all, growth.single)
                     for growth in growths])
        if key not in cuts:
            cuts[key] = _least_cut(movable, growths, room) if growths else None
        cut = cuts[key]
        give_way()
        if cut is not None:
            bounds[number] = _bound(pool, growths, cut, whole)
    return bounds


def _growths(parts: Sequence[PoolDemand]) -> List[_Growth]:
    """In proportion to the first part. Rounded so that pools can share a cut, towards more room."""
    placed = [part for part in parts if part.all_shards]
    return [_Growth(part, floor(_STEPS * part.all_weight / placed[0].single_weight) / _STEPS,
                    ceil(_STEPS * part.single_weight / placed[0].single_weight) / _STEPS)
            for part in placed]


def _room(snapshot: Snapshot, movable: MovableBytes) -> Dict[int, int]:
    """Usable OSD → bytes of demands that it can hold. Shards outside their rule leave it."""
    room: Dict[int, int] = {}
    for osd, moved in piecewise(movable.on_osd.items(), OSDS_AT_ONCE):
        room[osd] = (full_bytes(snapshot, osd) - snapshot.osds[osd].target_bytes + moved
                     + movable.outside.get(osd, 0))
    return room


def _bound(pool: Pool, growths: Sequence[_Growth], cut: _Cut,
           whole: WholeShardSpace) -> PoolSpaceBound:
    positions = growths[0].part.single_weight / pool.pg_num   # 1 where each PG of the map is known
    most = cut.growth / positions
    split = _client_bytes(pool, most)
    growth = min([whole.most_growth(pool, entry.part, most) for entry in growths])
    kind = (WHOLE_SHARDS if growth < most else CAPACITY
            if all(entry.part.osds <= cut.osds for entry in growths) else FAILURE_DOMAIN)
    shards = sum([entry.part.all_shards for entry in growths])
    return PoolSpaceBound(
        _client_bytes(pool, growth), kind, split, cut.osds, cut.kept_shards * positions, shards,
        sum([entry.part.all_bytes for entry in growths]) // shards,
        len(frozenset().union(*[entry.part.osds for entry in growths])))


def _client_bytes(pool: Pool, growth: float) -> int:
    """Bytes that clients write while so many come to each position; rounded up."""
    return int(max(0.0, growth) * pool.data_shards * (1.0 + _SAME)) + 1


def _least_cut(movable: MovableBytes, growths: Sequence[_Growth],
               room: Mapping[int, int]) -> Optional[_Cut]:
    """The cut that allows the least growth; None where nothing limits it."""
    demands = list(movable.demands)
    by_shape = {demand.shape: demand for demand in demands}
    grown: Dict[Tuple[object, ...], Tuple[float, float]] = {}
    for growth in growths:
        shape = growth.part.growth_shape()
        if shape not in by_shape:
            by_shape[shape] = Demand(growth.part.block, growth.part.osds, shape)
            demands.append(by_shape[shape])
        before = grown.get(shape, (0.0, 0.0))
        grown[shape] = before[0] + growth.all, before[1] + growth.single
    cuts = [_cut_of_component(component, grown, room)
            for component in components(demands)
            if any(demand.shape in grown for demand in component.demands)]
    return min((cut for cut in cuts if cut is not None), key=lambda cut: cut.growth, default=None)


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
        osds = _full_osds(Component(demands, component.osds), room)
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
        outside = demand.most_shards(demand.osds - osds)
        left -= max(0, demand.all_bytes - outside * demand.single_bytes)
        more = grown.get(demand.shape)
        if more is not None:
            confined_growth += max(0.0, more[0] - outside * more[1])
    if confined_growth <= 0.0:
        return None
    return _Cut(left / confined_growth, osds, confined_growth)


def _full_osds(component: Component, room: Mapping[int, int]) -> FrozenSet[int]:
    """OSDs that cannot hold what has to be on them; none if all bytes find a place."""
    groups = list(alike_osds(component, room).items())
    roots = range(len(component.demands))
    source, sink = len(component.demands) + len(groups), len(component.demands) + len(groups) + 1
    flows = FlowNetwork(sink + 1)
    buckets: Dict[Tuple[int, Tuple[int, ...]], int] = {}
    for root, demand in enumerate(component.demands):
        flows.add_edge(source, root, demand.all_bytes)
    for group, ((paths, single), osds) in enumerate(groups, start=len(component.demands)):
        flows.add_edge(group, sink, sum([room[osd] for osd in osds]))
        for root, demand, path in zip(roots, component.demands, paths):
            if path is not None:
                limited = single is not None and demand.osd_limit_counts()
                flows.add_edge(_bucket(flows, buckets, root, demand, path), group, min(
                    demand.all_bytes, demand.single_bytes) if limited else demand.all_bytes)
    needed = component.all_bytes()
    unplaced = needed - flows.max_flow(source, sink)
    give_way()
    if unplaced <= len(groups) + (needed >> _TOLERANCE_SHIFT):
        return frozenset()
    return frozenset(osd for group, (_, osds) in enumerate(groups, start=len(component.demands))
                     if flows.on_source_side(group) for osd in osds)


def _bucket(flows: FlowNetwork, buckets: Dict[Tuple[int, Tuple[int, ...]], int], root: int,
            demand: Demand, path: Tuple[int, ...]) -> int:
    """The node for the last bucket of a path from a demand's node; made where needed."""
    if not path:
        return root
    if (root, path) not in buckets:
        shards = demand.domains[len(path) - 1].shards_per_bucket
        above = _bucket(flows, buckets, root, demand, path[:-1])
        buckets[root, path] = flows.add_node()
        flows.add_edge(above, buckets[root, path], min(
            demand.all_bytes, shards * demand.single_bytes))
    return buckets[root, path]

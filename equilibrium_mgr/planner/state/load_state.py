"""The load of each OSD in a placement (plan/load.py), and which shards bear it.

Reads are served by the first OSD of a replicated PG. The order of its OSDs is that of the up set
that Ceph will have, because it differs from the order in the placement.
"""
from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict
from typing import Dict, List, NamedTuple, Sequence, Tuple

from ...crush.placement import replaced
from ...plan.load import osd_loads, position_loads
from ...runtime.time_slice import piecewise
from ...snapshot.upmap_items import keep_raw_positions
from .placement_state import PlacementState

_PGS_A_PIECE = 500   # a few milliseconds

Shard = Tuple[int, int, int]   # (bytes, PG, group)


class Kind(NamedTuple):
    """Shards of an OSD that are alike."""

    density: float        # load a byte
    load: float           # of each shard
    group: int
    cost: float           # bytes that it costs at least to move one; 0 if they are displaced anyway
    smallest: int         # bytes
    largest: int
    shards: List[Shard]   # sorted by bytes


class LoadState:
    """The loads of OSDs, by index, while shards move."""

    def __init__(self, placement: PlacementState) -> None:
        self._placement = placement
        snapshot = placement.snapshot
        self._by_position: Dict[int, Sequence[float]] = {}   # pool id → loads of a PG's shards
        for pool in snapshot.pools.values():
            self._by_position[pool.id] = position_loads(snapshot, pool) or [0.0] * pool.size
        osds = placement.osd_ids
        ups: Dict[str, List[int]] = {}
        for pg in piecewise(placement.moved_pgs, _PGS_A_PIECE):
            ups[placement.pgs[pg].pgid] = [osds[i] for i in self._order(pg, placement.up[pg])]
        known = osd_loads(snapshot, ups)
        self.loads: List[float] = [known.get(osd, 0.0) for osd in osds]
        self.speeds = [snapshot.speeds.get(osd, 1.0) for osd in osds]
        #: (load, OSD) of the targets of one set, the least busy first
        self.idle: List[Tuple[float, int]] = []
        #: OSD → (number of its changes, its movable shards)
        self._kinds: Dict[int, Tuple[int, List[Kind]]] = {}
        self._shard_cost = 0.0

    def choose(self, osds: Sequence[int], shard_cost: float) -> None:
        """Makes `idle` the list of these OSDs, as far as they may get shards. `shard_cost`: of a
        move, in addition to its bytes (bytes)."""
        self._shard_cost = shard_cost
        self.idle = sorted([(self.loads[i], i) for i in osds if self._placement.is_target[i]])

    def kinds_on(self, osd: int) -> List[Kind]:
        """Returns the movable shards of an OSD by kind, those with the least load a byte first."""
        placement = self._placement
        changes = len(placement.changes[osd])
        known = self._kinds.get(osd)
        if known is not None and known[0] == changes:
            return known[1]
        alike: Dict[Tuple[float, int, bool], List[Shard]] = defaultdict(list)
        for pg in placement.shards[osd]:
            group = placement.group_of(pg, osd)
            is_displaced = osd not in placement.initial_up[pg]
            shard = placement.bytes_of[group][pg], pg, group
            alike[self._load_of(pg, osd), group, is_displaced].append(shard)
        kinds: List[Kind] = []
        for (load, group, is_displaced), shards in alike.items():
            shards.sort()
            smallest = shards[0][0]
            cost = smallest + self._shard_cost
            density = load / max(1.0, cost)
            if is_displaced:
                cost = 0.0
            kinds.append(Kind(density, load, group, cost, smallest, shards[-1][0], shards))
        kinds.sort()
        self._kinds[osd] = changes, kinds
        return kinds

    def takes_load(self, pg: int, source: int, target: int) -> bool:
        """Returns True if a move takes the load of a shard along, and no other shard gets or loses
        reads."""
        placement = self._placement
        up = placement.up[pg]
        if up is placement.raw_up[pg]:
            return True
        first = self._order(pg, up)[0]
        if first == source:
            first = target
        return self._order(pg, replaced(up, up.index(source), target))[0] == first

    def move(self, pg: int, source: int, target: int) -> None:
        """Moves a shard in the placement, with its load."""
        load = self._load_of(pg, source)
        self._placement.move(pg, source, target)
        self._add(source, -load)
        self._add(target, load)

    def _add(self, osd: int, load: float) -> None:
        """Adds load to an OSD, and keeps the idle OSDs in order."""
        before = self.loads[osd]
        after = self.loads[osd] = before + load / self.speeds[osd]
        if self._placement.is_target[osd]:
            del self.idle[bisect_left(self.idle, (before, osd))]
            insort(self.idle, (after, osd))

    def _load_of(self, pg: int, osd: int) -> float:
        """Returns the load of the shard that a PG has on an OSD."""
        by_position = self._by_position[self._placement.pool_of_pg[pg]]
        return by_position[self._order(pg, self._placement.up[pg]).index(osd)]

    def _order(self, pg: int, up: Tuple[int, ...]) -> Tuple[int, ...]:
        """Returns the OSDs of an up set in the order that Ceph will have."""
        placement = self._placement
        initial = placement.initial_up[pg]
        pool = placement.snapshot.pools[placement.pool_of_pg[pg]]
        if up is initial or pool.erasure or pool.rule is None:
            return up
        if set(up) == set(initial):   # the plan does not change this PG
            return initial
        return keep_raw_positions(placement.raw_up[pg], up, pool.rule)

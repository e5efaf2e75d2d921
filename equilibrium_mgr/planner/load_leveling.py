"""Load leveling: after the search for bytes the busiest OSDs of each set give load to idle ones.

Shards move, or two shards exchange their OSDs. No OSD set becomes fuller for it, and no pool that
holds data loses free space. The formula is in planner/objective.py. Steps that lower most a byte go
first: shards that the plan displaces anyway, and shards of few bytes. The rest has to be worth its
bytes.
"""
from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections import defaultdict
from itertools import islice
from typing import Dict, List, NamedTuple, Sequence, Tuple

from ..crush.placement import replaced
from ..plan.load import osd_loads, position_loads
from ..plan.options import PlanOptions
from ..runtime.time_slice import give_way, grouped, piecewise, told_to_end
from ..snapshot.upmap_items import keep_raw_positions
from .move_order import Change, apply, take_back
from .objective import LOAD_SHARD_COST, LOAD_VALUES, keeps_space
from .search.relief import Offer, pairs_of_shards
from .state.constraints import MOST_LOST, SearchConstraints
from .state.cost_model import pool_weights
from .state.placement_state import PlacementState, ShardMove

#: An OSD gives no load below this, as a ratio of the mean of its set.
_LEVEL = 1.01

#: So many of the least busy OSDs are examined at once, and in all, for one step.
_TARGETS = 16
_MOST_TARGETS = 48

#: So many exchanges by pool, and shards of one, are tried for one step.
_TRIES = 40
_SHARDS = 12

#: Passes over the OSDs of a set, because a step may make way for others.
_PASSES = 3

_PGS_A_PIECE = 500

Kind = Tuple[float, int, bool]   # (load of a shard, group, whether it is displaced)
Steps = Tuple[ShardMove, ...]

#: A kind that stands for no shard: a move without a return.
_NOTHING: Kind = (0.0, -1, True)


class _Exchange(NamedTuple):
    """An exchange with a target by kinds of shards, the best first."""

    rank: float    # negative worth ÷ cost
    worth: float   # in bytes moved
    target: int
    kind: Kind
    back: Kind     # of the shard that comes back; _NOTHING: none


def level_loads(placement: PlacementState, changes: Sequence[Change],
                options: PlanOptions) -> bool:
    """Lowers the load of the busiest OSDs after the `changes` of a placement; returns False if it
    was told to end."""
    take_back(placement, changes)
    weights = pool_weights(placement)
    limits = SearchConstraints(placement, [
        group.index for group in placement.groups
        if group.shard_count and keeps_space(weights[group.index])])
    osds_of = grouped((placement.class_of(i), i) for i in range(len(placement.osd_ids)))
    highest = [max(map(placement.utilization, osds)) for osds in osds_of.values()]
    apply(placement, changes)
    limits.tighten_to_current(MOST_LOST, of_pools=True)
    leveling = _Leveling(placement, limits, changes, options)
    for osds in osds_of.values():
        limits.keep_highest(osds)
    for osds, most in zip(osds_of.values(), highest):
        leveling.run(osds, most)
    return not told_to_end()


class _Leveling:
    """The loads of a placement, which it changes. OSDs are indices."""

    def __init__(self, placement: PlacementState, limits: SearchConstraints,
                 changes: Sequence[Change], options: PlanOptions) -> None:
        self._placement = placement
        self._limits = limits
        self._options = options
        snapshot = placement.snapshot
        self._value = LOAD_VALUES[options.aim]
        self._loads_of = {pool.id: position_loads(snapshot, pool) or [0.0] * pool.size
                          for pool in snapshot.pools.values()}
        self._speed = [snapshot.speeds.get(osd, 1.0) for osd in placement.osd_ids]
        self._moves = self._bytes = 0
        for change in changes:
            moves = len(change.moves)
            self._bytes += moves * change.bytes
            if change.bytes:
                self._moves += moves
        ups: Dict[str, List[int]] = {}
        for pg in piecewise(placement.moved_pgs, _PGS_A_PIECE):
            order = self._order(pg, placement.up[pg])
            ups[placement.pgs[pg].pgid] = [placement.osd_ids[i] for i in order]
        loads = osd_loads(snapshot, ups)
        self._load = [loads.get(osd, 0.0) for osd in placement.osd_ids]
        #: OSD → (number of its changes, its shards by kind)
        self._known: Dict[int, Tuple[int, Dict[Kind, List[Offer]]]] = {}
        #: the least busy OSDs of the set that may get shards, first
        self._idle: List[Tuple[float, int]] = []
        self._mean = self._highest = 0.0
        #: (source, target, kind) → shards that may go there, while a step is sought
        self._allowed: Dict[Tuple[int, int, Kind], List[Offer]] = {}
        #: bytes that a unit of the objective's term is worth; bytes that a displaced shard costs
        self._worth = 0.0
        self._shard_cost = 0.0

    def run(self, osds: Sequence[int], highest: float) -> None:
        """Lowers the load of the busiest OSDs of a set. `highest`: their utilization at first."""
        placement = self._placement
        members = [i for i in osds if placement.is_usable[i]]
        total = sum([self._load[i] for i in members])
        if not total:
            return
        self._mean = total / len(members)
        used = sum([placement.used_bytes[i] for i in members]) / len(members)
        self._worth = self._value * used / self._mean ** 2
        self._shard_cost = LOAD_SHARD_COST * used
        self._highest = highest
        self._idle = sorted([(self._load[i], i) for i in members if placement.is_target[i]])
        for _ in range(_PASSES):
            if not self._pass(members):
                break

    def _pass(self, members: Sequence[int]) -> int:
        """Lowers each OSD above the level as far as it pays, the busiest first; returns the number
        of steps made."""
        level = _LEVEL * self._mean
        busy = [(-self._load[i], i) for i in members if self._load[i] > level]
        heapq.heapify(busy)
        made = 0
        while busy:
            if not give_way(self._placement.moves_made):
                return 0
            _, source = heapq.heappop(busy)
            steps = self._find(source)
            if not steps:
                continue
            self._make(steps)
            made += 1
            if self._load[source] > level:
                heapq.heappush(busy, (-self._load[source], source))
        return made

    # -- loads ---------------------------------------------------------------------------------

    def _order(self, pg: int, up: Tuple[int, ...]) -> Tuple[int, ...]:
        """Returns the OSDs of an up set as Ceph will have them. In a replicated PG, those of the
        raw mapping keep their positions, and with them the reads."""
        placement = self._placement
        initial = placement.initial_up[pg]
        pool = placement.snapshot.pools[placement.pool_of_pg[pg]]
        if pool.erasure or pool.rule is None or up == initial:
            return up
        if set(up) == set(initial):   # then nothing is sent
            return initial
        return keep_raw_positions(placement.raw_up[pg], up, pool.rule)

    def _load_of(self, pg: int, osd: int) -> float:
        """Returns the load of the shard that a PG has on an OSD."""
        up = self._order(pg, self._placement.up[pg])
        return self._loads_of[self._placement.pool_of_pg[pg]][up.index(osd)]

    def _takes_load(self, pg: int, source: int, target: int) -> bool:
        """Returns True if a move takes the load of a shard along, and no other shard gets or loses
        reads."""
        placement = self._placement
        up = placement.up[pg]
        if placement.raw_up[pg] is up or placement.groups[placement.group_of(
                pg, source)].pool.erasure:
            return True
        first = self._order(pg, up)[0]
        if first == source:
            first = target
        return self._order(pg, replaced(up, up.index(source), target))[0] == first

    def _kinds(self, osd: int) -> Dict[Kind, List[Offer]]:
        """Returns the movable shards of an OSD by kind, the smallest first."""
        placement = self._placement
        changes = len(placement.changes[osd])
        known = self._known.get(osd)
        if known is not None and known[0] == changes:
            return known[1]
        found: Dict[Kind, List[Offer]] = defaultdict(list)
        for pg in placement.shards[osd]:
            group = placement.group_of(pg, osd)
            kind = self._load_of(pg, osd), group, osd not in placement.initial_up[pg]
            found[kind].append((placement.bytes_of[group][pg], pg, group))
        for offers in found.values():
            offers.sort()
        self._known[osd] = changes, found
        return found

    # -- steps ---------------------------------------------------------------------------------

    def _find(self, source: int) -> Steps:
        """Returns the move or exchange that lowers an OSD most a byte; () if none pays."""
        self._allowed = {}
        own = self._costs(source)
        for first in range(0, _MOST_TARGETS, _TARGETS):
            ranked: List[_Exchange] = []
            for _, target in self._idle[first:first + _TARGETS]:
                if self._load[target] < self._load[source]:
                    ranked += self._exchanges(source, target, own)
            ranked.sort()
            for exchange in ranked[:_TRIES]:
                steps = self._steps(source, exchange)
                if steps:
                    return steps
        return ()

    def _costs(self, osd: int) -> List[Tuple[Kind, float]]:
        """Returns the kinds of shards on an OSD, with the bytes that it costs at least to displace
        one."""
        found: List[Tuple[Kind, float]] = []
        for kind, offers in self._kinds(osd).items():
            cost = 0.0
            if not kind[2]:
                cost = offers[0][0] + self._shard_cost
            found.append((kind, cost))
        return found

    def _exchanges(self, source: int, target: int,
                   own: Sequence[Tuple[Kind, float]]) -> List[_Exchange]:
        """Returns the exchanges with a target that may pay. `own`: the `_costs` of the source."""
        groups = self._placement.groups
        theirs = [(kind, cost) for kind, cost in self._costs(target)
                  if groups[kind[1]].may_reach(target, source)]
        theirs.append((_NOTHING, 0.0))
        found: List[_Exchange] = []
        for kind, cost in own:
            if not kind[0] or not groups[kind[1]].may_reach(source, target):
                continue
            fits = self._kinds(source)[kind][0][0] <= self._room(target)
            for back, back_cost in theirs:
                if back is _NOTHING and not fits:
                    continue
                worth = self._worth_of(source, target, kind[0] - back[0])
                both = cost + back_cost
                if worth > both:
                    rank = -worth / (both + self._shard_cost)
                    found.append(_Exchange(rank, worth, target, kind, back))
        return found

    def _worth_of(self, source: int, target: int, load: float) -> float:
        """Returns the bytes that it is worth to move load from one OSD to another."""
        less = load / self._speed[source]
        more = load / self._speed[target]
        fall = less * (2.0 * self._load[source] - less)
        return self._worth * (fall - more * (2.0 * self._load[target] + more))

    def _steps(self, source: int, exchange: _Exchange) -> Steps:
        """Returns moves of shards of these kinds that keep all limits; () if there are none."""
        target = exchange.target
        offers = self._legal(source, target, exchange.kind)
        choices: List[Steps] = [((pg, source, target),) for _, pg, _ in offers]
        if exchange.back is not _NOTHING:
            sizes = [offer[0] for offer in offers]
            theirs = self._legal(target, source, exchange.back)
            choices = []
            if offers and theirs:
                for (_, pg, _), (_, other, _) in pairs_of_shards(
                        offers, sizes, theirs, 0.0, -self._room(source), self._room(target)):
                    choices.append(((pg, source, target), (other, target, source)))
        for steps in choices:
            if self._pays(steps, exchange.worth) and self._is_allowed(steps):
                return steps
        return ()

    def _legal(self, source: int, target: int, kind: Kind) -> List[Offer]:
        """Returns the first shards of a kind that may go to a target and take their load along."""
        key = source, target, kind
        known = self._allowed.get(key)
        if known is None:
            offers = (offer for offer in self._kinds(source)[kind]
                      if self._placement.is_legal(offer[1], source, target)
                      and self._takes_load(offer[1], source, target))
            known = self._allowed[key] = list(islice(offers, _SHARDS))
        return known

    def _room(self, osd: int) -> float:
        """Returns the bytes that an OSD may get; negative if it is above its limit."""
        return self._limits.max_used_bytes[osd] - self._placement.used_bytes[osd]

    def _start_room(self, osd: int) -> float:
        """Returns the bytes that an OSD may get on the way: no OSD of its class passes the highest
        utilization at the start."""
        placement = self._placement
        most = min(self._highest * placement.size_bytes[osd], placement.fill_limit_bytes[osd])
        return most - placement.used_bytes[osd]

    def _displaced(self, steps: Steps) -> Tuple[int, int]:
        """Returns how many more shards with bytes steps displace, and how many more bytes."""
        placement = self._placement
        shards = moved_bytes = 0
        for pg, source, target in steps:
            initial = placement.initial_up[pg]
            more = (source in initial) - (target in initial)
            size = placement.pg_bytes[pg]
            shards += more * bool(size)
            moved_bytes += more * size
        return shards, moved_bytes

    def _pays(self, steps: Steps, worth: float) -> bool:
        """Returns True if steps cost fewer bytes than they are worth, within the plan's limits."""
        shards, moved_bytes = self._displaced(steps)
        self._placement.candidates_examined += 1
        if moved_bytes + shards * self._shard_cost >= worth:
            return False
        return self._options.limit_passed(
            self._moves + shards, self._bytes + moved_bytes) is None

    def _is_allowed(self, steps: Steps) -> bool:
        """Returns True if legal steps keep all limits, and one can go before the other."""
        placement = self._placement
        coming: Dict[int, Tuple[int, int]] = {}   # OSD → (bytes, group) of the shard that comes
        for pg, source, target in steps:
            coming[target] = placement.size_on(pg, source), placement.group_of(pg, source)
        if not placement.has_upmap_pairs(steps):
            return False
        if not any([size <= self._start_room(osd) for osd, (size, _) in coming.items()]):
            return False
        _, source, target = steps[0]
        size, group = coming[target]
        back_size, back_group = coming.get(source, (0, -1))
        return (self._fits(target, size - back_size, group, back_group)
                and self._fits(source, back_size - size, back_group, group))

    def _fits(self, osd: int, more: int, plus: int, minus: int) -> bool:
        """Returns True if an OSD keeps all limits, or gets no bytes and keeps the pressures."""
        if more > 0 and more > self._room(osd):
            return False
        return self._limits.fits_pressure(osd, more, plus, minus)

    def _make(self, steps: Steps) -> None:
        """Makes the moves, and moves their load."""
        placement = self._placement
        shards, moved_bytes = self._displaced(steps)
        self._moves += shards
        self._bytes += moved_bytes
        for pg, source, target in steps:
            load = self._load_of(pg, source)
            placement.move(pg, source, target)
            self._add_load(source, -load)
            self._add_load(target, load)

    def _add_load(self, osd: int, load: float) -> None:
        """Adds load of shards to an OSD, and keeps the idle OSDs in order."""
        entry = self._load[osd], osd
        self._load[osd] += load / self._speed[osd]
        if self._placement.is_target[osd]:
            del self._idle[bisect_left(self._idle, entry)]
            insort(self._idle, (self._load[osd], osd))

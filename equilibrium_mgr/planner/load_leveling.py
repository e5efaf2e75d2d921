"""Load leveling: after the search for bytes, the busiest OSD of each set gives load.

A shard moves to an OSD that is less busy, or two shards exchange their OSDs. It is always the
busiest OSD of the moment that gives, and its step is the one that evens the loads most for each
byte moved: with shards that the plan moves anyway, with shards of few bytes, with others last.
Leveling ends with the step up to which it has paid most (planner/objective.py), once no rest can
pay, or no step is left for the busiest OSD.

Fullness and space come first. No OSD passes the highest utilization of its set. No pool with data
loses more free space than a plan may take, nor more than that ratio of what the plan gives it.
"""
from __future__ import annotations

import heapq
from itertools import islice
from typing import Dict, List, NamedTuple, Sequence, Tuple

from ..plan.options import PlanOptions
from ..runtime.time_slice import give_way, grouped, piecewise, told_to_end
from .move_order import Change, apply, take_back
from .objective import LOAD_SHARD_COST, LOAD_VALUES, keeps_space
from .search.relief import Offer, pairs_of_shards
from .state.constraints import MOST_LOST, SearchConstraints
from .state.cost_model import pool_weights
from .state.load_state import Kind, LoadState
from .state.placement_state import PlacementState, ShardMove

#: The busiest OSD is near enough to the mean of its set at this ratio of it.
_LEVEL = 1.01

#: A smaller gain is a rounding error (squared ratio of the mean load).
_NOISE = 1e-9

#: Least busy OSDs that are examined for a step: so many at a time, and in all.
_TARGETS = 16
_MOST_TARGETS = 48

#: Exchanges that are tried for a step, and shards of one kind.
_TRIES = 40
_SHARDS = 12

_CHANGES_A_PIECE = 500   # a few milliseconds

Steps = Tuple[ShardMove, ...]   # a move, or the two of an exchange

_NOTHING: Kind = (0.0, -1, True)   # no shard comes back


class _Exchange(NamedTuple):
    """A shard of one kind for a shard of another kind on the target."""

    rank: float    # the lowest is the best
    target: int
    kind: Kind
    back: Kind


def level_loads(placement: PlacementState, changes: Sequence[Change],
                options: PlanOptions) -> bool:
    """Lowers the load of the busiest OSD of each set; returns False if it was told to end.
    `changes`: those of the placement, which it keeps or makes cheaper."""
    usable = [i for i in range(len(placement.osd_ids)) if placement.is_usable[i]]
    sets = list(grouped((placement.class_of(i), i) for i in usable).values())
    weights = pool_weights(placement)
    kept = [group.index for group in placement.groups
            if group.shard_count and keeps_space(weights[group.index])]
    take_back(placement, changes)
    limits = SearchConstraints(placement, kept)
    highest = [max(map(placement.utilization, osds)) for osds in sets]
    apply(placement, changes)
    limits.tighten_to_current(MOST_LOST, of_pools=True)
    leveling = _Leveling(placement, limits, changes, options)
    for osds in sets:
        limits.keep_highest(osds)
    for osds, most in zip(sets, highest):
        leveling.run(osds, most)
    return not told_to_end()


class _Leveling:
    """Levels the loads of one set after another."""

    def __init__(self, placement: PlacementState, limits: SearchConstraints,
                 changes: Sequence[Change], options: PlanOptions) -> None:
        self._placement = placement
        self._limits = limits
        self._options = options
        self._state = LoadState(placement)
        #: of the whole plan; moves of no bytes are free
        self._moves = self._bytes = 0
        for change in piecewise(changes, _CHANGES_A_PIECE):
            self._count(len(change.moves), change.bytes)
        self._shard_cost = 0.0   # bytes
        self._noise = 0.0
        self._highest = 0.0      # utilization of the set before the plan
        #: (source, target, kind) → shards that may go there; while a step is sought
        self._allowed: Dict[Tuple[int, int, Kind], List[Offer]] = {}

    def run(self, osds: Sequence[int], highest: float) -> None:
        """Levels the loads of a set. `highest`: the utilization of its fullest OSD at first."""
        loads = self._state.loads
        mean = sum([loads[i] for i in osds]) / len(osds)
        sources = [i for i in osds if self._placement.is_source[i]]
        if not mean or not sources:
            return
        used = sum([self._placement.used_bytes[i] for i in osds])
        self._shard_cost = LOAD_SHARD_COST * used / len(osds)
        self._noise = _NOISE * mean * mean
        self._highest = highest
        self._state.choose(osds)
        value = LOAD_VALUES[self._options.aim] * used / mean
        self._lower_busiest(sources, _LEVEL * mean, value)

    def _lower_busiest(self, sources: Sequence[int], level: float, value: float) -> None:
        """Makes steps off the busiest of the sources as long as it pays to bring it to `level`.
        `value`: bytes that a unit of its load is worth."""
        loads = self._state.loads
        queue = [(-loads[i], i) for i in sources]
        heapq.heapify(queue)
        first = -queue[0][0]
        made: List[Steps] = []
        paying = 0    # the steps that pay best
        bytes_moved = least = 0.0
        while give_way(self._placement.moves_made):
            busiest, source = queue[0]
            if -busiest != loads[source]:   # it has a later entry
                heapq.heappop(queue)
                continue
            net = bytes_moved - value * (first + busiest)
            if net < least:
                paying = len(made)
                least = net
            if net + value * (level + busiest) >= least:
                break
            steps = self._find(source)
            if not steps:
                break
            bytes_moved += self._make(steps)
            made.append(steps)
            for osd in steps[0][1:]:
                if self._placement.is_source[osd]:
                    heapq.heappush(queue, (-loads[osd], osd))
        for steps in reversed(made[paying:]):
            self._make([(pg, target, source) for pg, source, target in reversed(steps)])

    # -- candidates ----------------------------------------------------------------------------

    def _find(self, source: int) -> Steps:
        """Returns the best move or exchange that lowers the load of an OSD; () if there is none."""
        self._allowed = {}
        loads = self._state.loads
        for first in range(0, _MOST_TARGETS, _TARGETS):
            ranked: List[_Exchange] = []
            for _, target in self._state.idle[first:first + _TARGETS]:
                if loads[target] < loads[source]:
                    ranked += self._exchanges(source, target)
            ranked.sort()
            for exchange in ranked[:_TRIES]:
                for steps in self._choices(source, exchange):
                    if self._is_allowed(steps):
                        return steps
        return ()

    def _exchanges(self, source: int, target: int) -> List[_Exchange]:
        """Returns the exchanges with a target that even the loads."""
        theirs = self._costs(target, source)
        found: List[_Exchange] = []
        for kind, cost, smallest in self._costs(source, target):
            partners = theirs
            if smallest <= self._room(target):
                partners = [*theirs, (_NOTHING, 0.0, 0)]
            self._placement.candidates_examined += len(partners)
            for back, back_cost, _ in partners:
                gain = self._state.fall(source, target, kind[0] - back[0])
                if gain > self._noise:
                    rank = -gain / (cost + back_cost + self._shard_cost)
                    found.append(_Exchange(rank, target, kind, back))
        return found

    def _costs(self, source: int, target: int) -> List[Tuple[Kind, float, int]]:
        """Returns (kind, least cost, bytes of the smallest) of the shards on an OSD that may be
        able to go to another. Shards that are displaced anyway cost nothing."""
        groups = self._placement.groups
        found: List[Tuple[Kind, float, int]] = []
        for kind, shards in self._state.shards_on(source).items():
            _, group, is_displaced = kind
            if groups[group].may_reach(source, target):
                smallest = shards[0][0]
                cost = 0.0
                if not is_displaced:
                    cost = smallest + self._shard_cost
                found.append((kind, cost, smallest))
        return found

    def _choices(self, source: int, exchange: _Exchange) -> List[Steps]:
        """Returns legal steps with shards of these kinds."""
        target = exchange.target
        mine = self._legal(source, target, exchange.kind)
        if exchange.back is _NOTHING:
            return [((pg, source, target),) for _, pg, _ in mine]
        theirs = self._legal(target, source, exchange.back)
        if not mine or not theirs:
            return []
        pairs = pairs_of_shards(mine, [offer[0] for offer in mine], theirs, 0.0,
                                -self._room(source), self._room(target))
        return [((pg, source, target), (back, target, source))
                for (_, pg, _), (_, back, _) in pairs]

    def _legal(self, source: int, target: int, kind: Kind) -> List[Offer]:
        """Returns the first shards of a kind that may go to a target with their load."""
        key = source, target, kind
        known = self._allowed.get(key)
        if known is None:
            is_legal = self._placement.is_legal
            takes_load = self._state.takes_load
            offers = (offer for offer in self._state.shards_on(source)[kind]
                      if is_legal(offer[1], source, target)
                      and takes_load(offer[1], source, target))
            known = self._allowed[key] = list(islice(offers, _SHARDS))
        return known

    # -- limits --------------------------------------------------------------------------------

    def _room(self, osd: int) -> float:
        """Returns the bytes that an OSD may get; negative if it is above its limit."""
        return self._limits.max_used_bytes[osd] - self._placement.used_bytes[osd]

    def _is_allowed(self, steps: Steps) -> bool:
        """Returns True if legal steps together keep all limits, and can go one after the other."""
        placement = self._placement
        if not placement.has_upmap_pairs(steps) or not self._has_order(steps):
            return False
        moves, moved_bytes = self._moves, self._bytes
        more: Dict[int, int] = {}      # OSD → bytes
        coming: Dict[int, int] = {}    # OSD → group of the shard that comes
        leaving: Dict[int, int] = {}
        for pg, source, target in steps:
            size = placement.size_on(pg, source)
            more[source] = more.get(source, 0) - size
            more[target] = more.get(target, 0) + size
            coming[target] = leaving[source] = placement.group_of(pg, source)
            displaced = self._displaced(pg, source, target)
            moved_bytes += displaced * placement.pg_bytes[pg]
            if placement.pg_bytes[pg]:
                moves += displaced
        if self._options.limit_passed(moves, moved_bytes) is not None:
            return False
        return all([self._fits(osd, count, coming.get(osd, -1), leaving.get(osd, -1))
                    for osd, count in more.items()])

    def _has_order(self, steps: Steps) -> bool:
        """Returns True if one of the steps may go first: it fills no OSD above the highest
        utilization before the plan."""
        placement = self._placement
        for pg, source, target in steps:
            used = placement.used_bytes[target] + placement.size_on(pg, source)
            most = self._highest * placement.size_bytes[target]
            if used <= min(most, placement.fill_limit_bytes[target]):
                return True
        return False

    def _fits(self, osd: int, more: int, plus: int, minus: int) -> bool:
        """Returns True if an OSD keeps its pressures, and its maximum if it gets bytes."""
        if more > 0 and more > self._room(osd):
            return False
        return self._limits.fits_pressure(osd, more, plus, minus)

    # -- changing ------------------------------------------------------------------------------

    def _make(self, steps: Sequence[ShardMove]) -> float:
        """Makes the moves; returns their cost in bytes."""
        placement = self._placement
        cost = 0.0
        for pg, source, target in steps:
            size = placement.pg_bytes[pg]
            displaced = self._displaced(pg, source, target)
            self._count(displaced, size)
            cost += displaced * size + self._shard_cost
            self._state.move(pg, source, target)
        return cost

    def _displaced(self, pg: int, source: int, target: int) -> int:
        """Returns 1 if a move displaces a shard, -1 if it returns one to an initial OSD, else 0."""
        initial = self._placement.initial_up[pg]
        return (source in initial) - (target in initial)

    def _count(self, moves: int, size: int) -> None:
        """Counts moves of `size` bytes each."""
        self._bytes += moves * size
        if size:
            self._moves += moves

"""Load leveling: after the search for bytes, the busiest OSD of each set gives load.

A shard moves to an OSD that is less busy, or two shards exchange their OSDs. It is always the
busiest OSD of the moment that gives, and its step is the one that evens the loads most for each
byte moved: with shards that the plan moves anyway, with shards of few bytes, with others last.
Leveling ends with the step up to which it has paid most (planner/objective.py), once no rest can
pay, or no step is left for the busiest OSD.

Fullness and space come first. No OSD passes the highest utilization of its set. A pool with data
loses at most MOST_LOST of the free space that it had, and of that which the other moves give it.
"""
from __future__ import annotations

import heapq
from itertools import islice
from typing import List, Sequence, Tuple

from ..plan.options import PlanOptions
from ..runtime.time_slice import give_way, grouped, told_to_end
from .move_order import Change, apply, take_back
from .objective import LOAD_SHARD_COST, LOAD_VALUES, keeps_space
from .search.relief import pairs_of_shards
from .state.constraints import MOST_LOST, SearchConstraints
from .state.cost_model import pool_weights
from .state.load_state import Kind, LoadState, Shard
from .state.placement_state import PlacementState, ShardMove

#: The busiest OSD is near enough to the mean of its set at this ratio of it.
_LEVEL = 1.01

#: What evens the loads by less is a rounding error (squared ratio of the mean).
_LEAST_FALL = 1e-6

#: Least busy OSDs that are examined for a step: so many at a time, and in all.
_TARGETS = 16
_MOST_TARGETS = 48

#: Exchanges that are tried for a step, shards of one kind, and kinds of shards of an OSD.
_TRIES = 40
_SHARDS = 12
_KINDS = 8

#: Exchanges and shards that may be examined in all: at least so many, or this ratio of the
#: candidates of the search for bytes. It is a count and not a time, so that the same snapshot gives
#: the same plan.
_LEAST_EXAMINED = 300_000
_EXAMINED_RATIO = 0.2

Steps = Tuple[ShardMove, ...]   # a move, or the two of an exchange

_NOTHING = Kind(0.0, 0.0, -1, 0.0, 0, 0, [])   # no shard comes back

#: A shard of one kind for a shard of another kind on the target: (rank, the lowest is the best;
#: target; kind; kind of the shard that comes back)
_Exchange = Tuple[float, int, Kind, Kind]


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
    leveling = _Leveling(placement, limits, LOAD_VALUES[options.aim])
    for osds in sets:
        limits.keep_highest(osds)
    for osds, most in zip(sets, highest):
        leveling.run(osds, most)
    return not told_to_end()


class _Leveling:
    """Levels the loads of one set after another."""

    def __init__(self, placement: PlacementState, limits: SearchConstraints,
                 worth: float) -> None:
        self._placement = placement
        self._limits = limits
        self._worth = worth
        self._state = LoadState(placement)
        examined = placement.candidates_examined
        self._most_examined = examined + max(_LEAST_EXAMINED, _EXAMINED_RATIO * examined)
        self._shard_cost = self._least_fall = 0.0
        self._highest = 0.0      # utilization of the set before the plan

    def run(self, osds: Sequence[int], highest: float) -> None:
        """Levels the loads of a set. `highest`: the utilization of its fullest OSD at first."""
        loads = self._state.loads
        mean = sum([loads[i] for i in osds]) / len(osds)
        sources = [i for i in osds if self._placement.is_source[i]]
        if not mean or not sources:
            return
        used = sum([self._placement.used_bytes[i] for i in osds])
        self._shard_cost = LOAD_SHARD_COST * used / len(osds)
        self._least_fall = _LEAST_FALL * mean * mean
        self._highest = highest
        self._state.choose(osds, self._shard_cost)
        self._lower_busiest(sources, _LEVEL * mean, self._worth * used / mean)

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
            if not steps or self._placement.candidates_examined > self._most_examined:
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
        """Returns the exchanges with a target that even the loads: the kinds with most load a byte
        for those with least. They are ranked by the fall of the sum of squares of both loads."""
        groups = self._placement.groups
        state = self._state
        mine = [kind for kind in state.kinds_on(source)[-_KINDS:]
                if groups[kind.group].may_reach(source, target)]
        theirs = [kind for kind in state.kinds_on(target)[:_KINDS]
                  if groups[kind.group].may_reach(target, source)]
        theirs.append(_NOTHING)
        self._placement.candidates_examined += len(mine) * len(theirs)
        here = self._room(source)
        there = self._room(target)
        twice_source = 2.0 * state.loads[source]
        twice_target = 2.0 * state.loads[target]
        source_speed = state.speeds[source]
        target_speed = state.speeds[target]
        found: List[_Exchange] = []
        for kind in mine:
            load = kind.load
            least = kind.smallest - there
            most = kind.largest + here
            for back in theirs:
                shed = load - back.load
                if shed <= 0.0 or back.largest < least or back.smallest > most:
                    continue
                less = shed / source_speed
                more = shed / target_speed
                fall = less * (twice_source - less) - more * (twice_target + more)
                if fall > self._least_fall:
                    rank = -fall / (kind.cost + back.cost + self._shard_cost)
                    found.append((rank, target, kind, back))
        return found

    def _choices(self, source: int, exchange: _Exchange) -> List[Steps]:
        """Returns legal steps with shards of these kinds."""
        _, target, kind, back = exchange
        mine = self._legal(source, target, kind)
        if back is _NOTHING:
            return [((pg, source, target),) for _, pg, _ in mine]
        theirs = self._legal(target, source, back)
        if not mine or not theirs:
            return []
        pairs = pairs_of_shards(mine, [offer[0] for offer in mine], theirs, 0.0,
                                -self._room(source), self._room(target))
        return [((pg, source, target), (other, target, source))
                for (_, pg, _), (_, other, _) in pairs]

    def _legal(self, source: int, target: int, kind: Kind) -> List[Shard]:
        """Returns the first shards of a kind that may go to a target with their load."""
        self._placement.candidates_examined += len(kind.shards)
        is_legal = self._placement.is_legal
        takes_load = self._state.takes_load
        shards = (shard for shard in kind.shards if is_legal(shard[1], source, target)
                  and takes_load(shard[1], source, target))
        return list(islice(shards, _SHARDS))

    # -- limits --------------------------------------------------------------------------------

    def _room(self, osd: int) -> float:
        """Returns the bytes that an OSD may get; negative if it is above its limit."""
        return self._limits.max_used_bytes[osd] - self._placement.used_bytes[osd]

    def _is_allowed(self, steps: Steps) -> bool:
        """Returns True if legal steps together keep all limits, and one can go before the other."""
        placement = self._placement
        pg, source, target = steps[0]
        size = placement.size_on(pg, source)
        group = placement.group_of(pg, source)
        back_size = 0
        back_group = -1
        may_go_first = self._may_go_first(target, size)
        for other, _, _ in steps[1:]:
            back_size = placement.size_on(other, target)
            back_group = placement.group_of(other, target)
            may_go_first = may_go_first or self._may_go_first(source, back_size)
        if not may_go_first or not placement.has_upmap_pairs(steps):
            return False
        shed = size - back_size
        fits = self._fits(target, shed, group, back_group)
        return fits and self._fits(source, -shed, back_group, group)

    def _may_go_first(self, target: int, size: int) -> bool:
        """Returns True if bytes may come to an OSD before others leave it: no OSD passes the
        highest utilization before the plan on the way."""
        placement = self._placement
        most = self._highest * placement.size_bytes[target]
        return placement.used_bytes[target] + size <= min(most, placement.fill_limit_bytes[target])

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
            initial = placement.initial_up[pg]
            displaced = (source in initial) - (target in initial)
            cost += displaced * placement.size_on(pg, source) + self._shard_cost
            self._state.move(pg, source, target)
        return cost

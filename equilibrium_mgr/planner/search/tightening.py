"""Tightens the limits of the pools, step by step and as far as it pays, after the descent.

Two limits are tightened: the highest utilization of an OSD set, and the pressure of a data pool.
Pressure is the highest count of the pool's shards per free byte on an OSD. Each step relieves the
OSDs above the tighter limit, the worst first. It keeps the moves up to the point of the best value
and reverts the others.
"""
from __future__ import annotations

from bisect import bisect_left
from functools import partial
from math import inf
from typing import Callable, Dict, List, Sequence, Tuple

from ...runtime.time_slice import give_way, piecewise
from ..state.constraints import SearchConstraints
from ..state.placement_state import PlacementState, ShardMove
from ..state.target_index import SortedOsds
from .relief import OverfullOsd, Relief, ReliefGoal, TooManyShards

#: How far a pool's pressure is lowered per step, a ratio of it.
_PRESSURE_STEP = 0.04

#: A limit stays after so many steps that had to revert moves. Each is half the step before.
_PATIENCE = 3

#: Candidates examined for each kind of limit: so many, or on a small cluster so many per shard and
#: OSD. If the descent examined more, as many as that.
_LEAST_EFFORT = 500_000
_EFFORT_PER_SHARD_AND_OSD = 3

#: Operations per OSD above the limit, and in addition per step. Without a limit, operations of few
#: bytes would never end.
_OPERATIONS_PER_OSD = 2
_EXTRA_OPERATIONS = 20

#: The most operations on one OSD in a step. Further operations would be swaps of few bytes, which
#: do not save the step: on a large cluster a step made and reverted thousands of them.
_MOST_OPERATIONS = 24

#: A step ends when its cost is so many times its value.
_MAX_COST_RATIO = 1.2

_MOVES_A_PIECE = 50   # reverted between two yields: a few milliseconds


class Tightening:
    """Lowers limits. After each call, except of `lower_osd_to`, the moves are worth their cost.

    `price`: of a displaced byte (utilization).
    """

    _effort_end = 0   # `candidates_examined` at which work on the present limit ends
    _displaced_bytes = 0

    def __init__(self, placement: PlacementState, relief: Relief, limits: SearchConstraints,
                 price: float) -> None:
        self._placement = placement
        self._relief = relief
        self._limits = limits
        self._price = price
        pairs = len(placement.size_bytes) * sum(placement.shard_counts)
        effort = max(placement.candidates_examined,
                     min(_LEAST_EFFORT, _EFFORT_PER_SHARD_AND_OSD * pairs))
        self._utilization_effort = self._pressure_effort = effort   # candidates left
        self._moves_made: List[ShardMove] = []
        #: OSD set → length of the change log when the set could not be lowered further
        self._exhausted_at: Dict[Tuple[int, ...], int] = {}

    def lower_max_utilization(self, osds: Tuple[int, ...], helpers: Tuple[int, ...], goal: float,
                              value: Callable[[float, float], float], step: float,
                              fixed_cost: float) -> None:
        """Lowers the highest utilization of OSDs as far as it pays, at most to `goal` (a ratio).

        `helpers`: OSDs that may take shards. `value(high, low)`: of lowering the utilization from
        `high` to `low`, in bytes moved. `step`: the first step (a ratio). `fixed_cost`: of an
        operation in addition to its bytes, per byte of OSD.
        """
        placement = self._placement
        limits = self._limits
        used = placement.used_bytes
        size = placement.size_bytes
        members = [i for i in osds if placement.is_source[i] and placement.shards[i]]
        if not members or self._exhausted_at.get(osds) == len(placement.change_log):
            return
        failed = 0

        def highest_now() -> float:
            return max([used[i] / size[i] for i in members])
        self._effort_end = placement.candidates_examined + self._utilization_effort
        while failed < _PATIENCE:
            highest = highest_now()
            if highest <= goal + 1e-9:
                break
            wanted = max(goal, highest - step)
            limits.set_max_utilization(osds, wanted)
            above = [(-used[i] / size[i], i) for i in members if used[i] > wanted * size[i] + 1]
            if not above:   # the excess is at most a byte: tiny OSDs
                break
            relief_goal = OverfullOsd(helpers, goal, fixed_cost * size[members[0]])
            if not self._apply_step(relief_goal, above, placement.utilization, highest, wanted,
                                    value, inf):
                failed += 1
                step = min(step, highest - goal) / 2.0
        self._utilization_effort = self._effort_end - placement.candidates_examined
        limits.set_max_utilization(osds, highest_now())
        self._exhausted_at[osds] = len(placement.change_log)

    def lower_osd_to(self, osd: int, max_bytes: int, helpers: Tuple[int, ...]) -> None:
        """Relieves an OSD at any cost until it has less than its median shard above `max_bytes`,
        nothing more can leave, or the effort is spent."""
        placement = self._placement
        if not placement.is_source[osd]:
            return
        goal = OverfullOsd(helpers, max_bytes / placement.size_bytes[osd], 0.0)
        self._effort_end = placement.candidates_examined + self._utilization_effort
        for _ in range(_OPERATIONS_PER_OSD * len(placement.shards[osd])):
            sizes = sorted(filter(None, [placement.size_on(pg, osd)
                                         for pg in placement.shards[osd]]))
            if not sizes or placement.used_bytes[osd] - max_bytes < sizes[len(sizes) // 2]:
                break
            found = self._relief.find(osd, goal) if self._may_go_on() else None
            if found is None:
                break
            self._make_moves(found.steps)

    def _may_go_on(self) -> bool:
        """Returns False if the effort for the limit is spent, or the search has to end."""
        placement = self._placement
        if placement.candidates_examined >= self._effort_end:
            return False
        return give_way(placement.moves_made)

    def lower_pool_pressure(self, group: int, pressures: SortedOsds, goal: float, value: float,
                            budget: float, pools: int) -> float:
        """Lowers the highest pressure of a group as far as it pays, at most to `goal` (shards per
        free byte). Returns how many bytes of `budget` are left.

        `pressures`: of the OSDs that its shards may leave. `value`: of a raw byte of the pool's
        free space, in bytes moved. `budget`: bytes that may be displaced. `pools`: so many pools
        share the candidates that are left to examine.
        """
        placement = self._placement
        limits = self._limits
        of_group = placement.groups[group]
        pool = of_group.pool
        mean = max(1.0, of_group.mean_shard_bytes)
        raw_value = pool.pg_num * pool.size * value

        def value_of(high: float, low: float) -> float:
            return raw_value * (1.0 / low - 1.0 / high)
        ratio = _PRESSURE_STEP
        failed = 0
        begun = placement.candidates_examined
        self._effort_end = begun + self._pressure_effort // pools
        spent_at_most = budget + self._displaced_bytes
        while failed < _PATIENCE:
            entries = pressures.entries()
            if not entries:
                break
            now = -entries[0][0]
            if now <= goal or now == inf:
                break
            wanted = max(goal, now * (1.0 - ratio))
            limits.set_max_pressure(group, wanted)
            above = entries[:bisect_left(entries, (-wanted, -1))]
            left = spent_at_most - self._displaced_bytes
            if not self._apply_step(
                    TooManyShards(group, wanted, mean), above,
                    partial(limits.shards_per_free_byte, group), now, wanted, value_of, left):
                failed += 1
                ratio /= 2.0
        self._pressure_effort -= placement.candidates_examined - begun
        entries = pressures.entries()
        if entries:
            limits.set_max_pressure(group, -entries[0][0])
        return spent_at_most - self._displaced_bytes

    def _apply_step(self, goal: ReliefGoal, above: List[Tuple[float, int]],
                    measure: Callable[[int], float], highest: float, wanted: float,
                    value_of: Callable[[float, float], float], budget: float) -> bool:
        """Relieves the OSDs above the limit, the worst first, and keeps the moves that paid.
        Returns False if it reverted some, or found none for an OSD that is still above.

        `above`: (-measure, OSD) of these OSDs; `measure`: utilization or pressure of an OSD.
        `highest`: the measure at first; `wanted`: the limit. `value_of(high, low)`: of lowering
        the measure, in bytes moved. `budget`: bytes that may be displaced.
        """
        above = sorted(above)
        operations = _OPERATIONS_PER_OSD * len(above) + _EXTRA_OPERATIONS
        max_cost = _MAX_COST_RATIO * self._price * value_of(highest, wanted)
        cost = 0.0
        displaced = 0
        best = 0.0
        kept_moves = 0
        kept_bytes = 0
        self._moves_made.clear()
        for number, (_, source) in enumerate(above):
            left_here = _MOST_OPERATIONS
            while measure(source) > wanted * (1 + 1e-12):
                found = None
                if operations and left_here and self._may_go_on():
                    found = self._relief.find(source, goal)
                if found is None:
                    self._revert_after(kept_moves, kept_bytes)
                    return False
                operations -= 1
                left_here -= 1
                cost -= found.gain
                displaced += self._make_moves(found.steps)
            # now the measure of the next OSD is the highest
            following = -above[number + 1][0] if number + 1 < len(above) else 0.0
            value = self._price * value_of(highest, max(wanted, following)) - cost
            if value > best and displaced <= budget:
                best = value
                kept_moves = len(self._moves_made)
                kept_bytes = displaced
            elif displaced > budget or cost > max_cost:
                break
        whole = kept_moves == len(self._moves_made)
        self._revert_after(kept_moves, kept_bytes)
        return whole

    def _make_moves(self, steps: Sequence[ShardMove]) -> int:
        """Makes the moves; returns the bytes that they displace less the bytes that return."""
        displaced = 0
        placement = self._placement
        for pg, source, target in steps:
            initial = placement.initial_up[pg]
            displaced += placement.size_on(pg, source) * (
                (source in initial) - (target in initial))
            placement.move(pg, source, target)
        self._moves_made += steps
        return displaced

    def _revert_after(self, kept_moves: int, kept_bytes: int) -> None:
        """Reverts the moves of a step except the first `kept_moves`, which displaced `kept_bytes`;
        counts these bytes."""
        lost = self._moves_made[kept_moves:]
        for pg, source, target in piecewise(reversed(lost), _MOVES_A_PIECE):
            self._placement.move(pg, target, source)
        del self._moves_made[kept_moves:]
        self._displaced_bytes += kept_bytes

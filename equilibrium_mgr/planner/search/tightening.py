"""Tightens the limits of the pools, step by step and as far as it pays, after the descent.

Two limits are tightened: the highest utilization of an OSD set, and the pressure of a data pool,
which is the highest count of its shards per free byte on an OSD. In each step the OSDs beyond the
tighter limit are relieved, the worst first. The moves up to the point of the best value are kept
and the others are reverted.
"""
from __future__ import annotations

from bisect import bisect_left
from typing import Callable, Dict, List, Sequence, Tuple

from ...runtime.time_slice import give_way, piecewise
from ..state.constraints import SearchConstraints
from ..state.placement_state import PlacementState, ShardMove
from ..state.target_index import SortedOsds
from .relief import OverfullOsd, Relief, ReliefGoal, TooManyShards

#: How far a pool's pressure is lowered per step, a ratio of it.
_PRESSURE_STEP = 0.04

#: A limit is left as it is after so many steps that were not kept whole, each half the last.
_PATIENCE = 3

#: Candidates examined for each kind of limit: so many, on a small cluster so many per shard and
#: OSD, or as many as the descent examined, if that is more.
_LEAST_EFFORT = 500_000
_EFFORT_PER_SHARD_AND_OSD = 3

#: Operations per OSD beyond the limit, and on top of them per step: without a limit, operations of
#: few bytes go on without end.
_OPERATIONS_PER_OSD = 2
_EXTRA_OPERATIONS = 20

#: Operations on one OSD in a step. More are swaps of few bytes, and the step is lost: on a large
#: cluster thousands of them were made and reverted in a step.
_MOST_OPERATIONS = 24

#: A step is broken off when its cost is so many times its value.
_MAX_COST_RATIO = 1.2

_MOVES_A_PIECE = 50   # reverted before it gives way again: a few milliseconds


class Tightening:
    """Lowers limits. After each call the placement scores better or is the same.

    `price` is that of a displaced byte (utilization).
    """

    def __init__(self, placement: PlacementState, relief: Relief, limits: SearchConstraints,
                 price: float) -> None:
        self._placement = placement
        self._relief = relief
        self._limits = limits
        self._price = price
        effort = max(placement.candidates_examined, min(
            _LEAST_EFFORT, _EFFORT_PER_SHARD_AND_OSD * len(placement.size_bytes)
            * sum(placement.shard_counts)))
        self._utilization_effort = self._pressure_effort = effort   # candidates left
        self._effort_end = 0   # `candidates_examined` at which the present limit is left
        self._moves_made: List[ShardMove] = []
        self._displaced_bytes = 0
        #: OSD set → length of the change log when nothing more could be lowered there
        self._exhausted_at: Dict[Tuple[int, ...], int] = {}

    def lower_max_utilization(self, osds: Tuple[int, ...], helpers: Tuple[int, ...], goal: float,
                              value: Callable[[float, float], float], step: float,
                              fixed_cost: float) -> None:
        """Lowers the highest utilization of OSDs to `goal`, a ratio, or as far as it pays; shards
        may go to the `helpers`.

        `value(high, low)` is the value of lowering it from `high` to `low` in bytes moved, `step`
        the first step (a ratio), `fixed_cost` the cost of an operation beside its bytes, per byte
        of OSD.
        """
        placement, limits = self._placement, self._limits
        used, size = placement.used_bytes, placement.size_bytes
        members = [i for i in osds if placement.is_source[i] and placement.shards[i]]
        if not members or self._exhausted_at.get(osds) == len(placement.change_log):
            return
        failed = 0
        self._effort_end = placement.candidates_examined + self._utilization_effort
        while failed < _PATIENCE:
            highest = max(used[i] / size[i] for i in members)
            if highest <= goal + 1e-9:
                break
            wanted = max(goal, highest - step)
            limits.set_max_utilization(osds, wanted)
            above = [(-used[i] / size[i], i) for i in members if used[i] > wanted * size[i] + 1]
            if not above:   # OSDs of some bytes
                break
            if not self._apply_step(
                    OverfullOsd(helpers, goal, fixed_cost * size[members[0]]), above,
                    placement.utilization, highest, wanted, value, float("inf")):
                failed += 1
                step = min(step, highest - goal) / 2.0
        self._utilization_effort = self._effort_end - placement.candidates_examined
        limits.set_max_utilization(osds, max(used[i] / size[i] for i in members))
        self._exhausted_at[osds] = len(placement.change_log)

    def lower_osd_to(self, osd: int, max_bytes: int, helpers: Tuple[int, ...]) -> None:
        """Relieves an OSD until it has less than one of its shards above `max_bytes`, or nothing
        more can leave, at any cost."""
        placement = self._placement
        if not placement.is_source[osd]:
            return
        goal = OverfullOsd(helpers, max_bytes / placement.size_bytes[osd], 0.0)
        self._effort_end = placement.candidates_examined + self._utilization_effort
        for _ in range(_OPERATIONS_PER_OSD * len(placement.shards[osd])):
            sizes = sorted(filter(None, [placement.size_on(pg, osd)
                                         for pg in placement.shards[osd]]))
            if not sizes or placement.used_bytes[osd] - max_bytes < sizes[len(sizes) // 2] or (
                    placement.candidates_examined >= self._effort_end or (
                        not give_way(placement.moves_made))):
                break
            found = self._relief.find(osd, goal)
            if found is None:
                break
            self._moves_made.clear()
            self._make_moves(found.steps)
        self._moves_made.clear()

    def lower_pool_pressure(self, group: int, pressures: SortedOsds, goal: float, value: float,
                            budget: float, pools: int) -> float:
        """Lowers the highest pressure of a group to `goal` (shards per byte), or as far as it pays.
        `pressures` are those of the OSDs that its shards may leave.

        `value` is that of a raw byte of the pool's free space, in bytes moved. At most `budget`
        bytes are displaced; returns how many of them are left. So many `pools` share the candidates
        that are left to examine.
        """
        placement, limits = self._placement, self._limits
        pool = placement.groups[group].pool
        mean = max(1.0, placement.groups[group].mean_shard_bytes)
        raw_value = pool.pg_num * pool.size * value
        ratio, failed, displaced = _PRESSURE_STEP, 0, self._displaced_bytes
        begun = placement.candidates_examined
        self._effort_end = begun + self._pressure_effort // pools
        while pressures.entries() and failed < _PATIENCE:
            entries = pressures.entries()
            now = -entries[0][0]
            if now <= goal or now == float("inf"):
                break
            wanted = max(goal, now * (1.0 - ratio))
            limits.set_max_pressure(group, wanted)
            if not self._apply_step(
                    TooManyShards(group, wanted, mean),
                    entries[:bisect_left(entries, (-wanted, -1))],
                    lambda osd: limits.shards_per_free_byte(group, osd), now, wanted,
                    lambda high, low: raw_value * (1.0 / low - 1.0 / high),
                    budget - self._displaced_bytes + displaced):
                failed += 1
                ratio /= 2.0
        self._pressure_effort -= placement.candidates_examined - begun
        if pressures.entries():
            limits.set_max_pressure(group, -pressures.entries()[0][0])
        return budget - self._displaced_bytes + displaced

    def _apply_step(self, goal: ReliefGoal, above: List[Tuple[float, int]],
                    measure: Callable[[int], float], highest: float, wanted: float,
                    value_of: Callable[[float, float], float], budget: float) -> bool:
        """Relieves the OSDs beyond the limit, the worst first, and keeps the moves that paid.

        `above` has (-measure, OSD) of these, the measure being a utilization or a pressure, which
        was `highest` at the beginning and shall be above `wanted` nowhere; `value_of` is the value
        of lowering it from, to (in bytes moved), `budget` the bytes that may be displaced.
        After each OSD the limit is at the measure of the next one. False where not all was kept.
        """
        above = sorted(above)
        operations = _OPERATIONS_PER_OSD * len(above) + _EXTRA_OPERATIONS
        cost, displaced = 0.0, 0
        best, kept_moves, kept_bytes = 0.0, 0, 0
        self._moves_made.clear()
        for number, (_, source) in enumerate(above):
            left_here = _MOST_OPERATIONS
            while measure(source) > wanted * (1 + 1e-12):
                found = self._relief.find(source, goal) if (
                    operations and left_here and give_way(self._placement.moves_made)
                    and self._placement.candidates_examined < self._effort_end) else None
                if found is None:
                    self._revert_after(kept_moves, kept_bytes)
                    return False
                operations -= 1
                left_here -= 1
                cost -= found.gain
                displaced += self._make_moves(found.steps)
            following = -above[number + 1][0] if number + 1 < len(above) else 0.0
            value = self._price * value_of(
                highest, max(wanted, following)) - cost
            if value > best and displaced <= budget:
                best, kept_moves, kept_bytes = value, len(self._moves_made), displaced
            elif (displaced > budget
                  or cost > _MAX_COST_RATIO * self._price * value_of(highest, wanted)):
                break
        whole = kept_moves == len(self._moves_made)
        self._revert_after(kept_moves, kept_bytes)
        return whole

    def _make_moves(self, steps: Sequence[ShardMove]) -> int:
        """Makes the moves; returns the bytes that they displace, less those that return."""
        displaced = 0
        for pg, source, target in steps:
            initial = self._placement.initial_up[pg]
            displaced += self._placement.size_on(pg, source) * (
                (source in initial) - (target in initial))
            self._placement.move(pg, source, target)
        self._moves_made += steps
        return displaced

    def _revert_after(self, kept_moves: int, kept_bytes: int) -> None:
        """Reverts all but the first moves, which displaced `kept_bytes`."""
        for pg, source, target in piecewise(reversed(self._moves_made[kept_moves:]),
                                            _MOVES_A_PIECE):
            self._placement.move(pg, target, source)
        del self._moves_made[kept_moves:]
        self._displaced_bytes += kept_bytes

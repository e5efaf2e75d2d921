"""Tightening what limits the pools, where plain moves have ended, as far as it pays.

Two kinds of limits are tightened step by step: the highest utilization of an OSD set, and for a
pool that holds data the most shards per free byte on an OSD. In each step the OSDs beyond the
tighter limit are relieved, the worst first; what is kept is the part that gives the most space for
its cost, and the rest is taken back.
"""
from __future__ import annotations

from typing import Callable, Dict, List, NamedTuple, Sequence, Tuple

from ...runtime.checkpoints import Checkpoint
from ..state.constraints import SearchConstraints
from ..state.placement_state import PlacementState, ShardMove
from .repair import RepairGoal, Repair

#: How far a pool's shards per free byte sink at once, a ratio.
_SHARE = 0.04

#: Steps that did not pay in full, each half as far as the last, before a limit is left as it is.
_PATIENCE = 3

#: Candidates examined for each of the two kinds: so many, or as many as the descent examined, if
#: that is more.
_LEAST_EFFORT = 500_000

#: Operations per OSD beyond the limit, and on top of that: more are small ones without end.
_EFFORT = 2
_EXTRA_EFFORT = 20

#: A step that has cost so much more than it can be worth is not followed to its end.
_DEAR = 1.2


class _Step(NamedTuple):
    """One step: who is beyond the limit, how far it shall sink, and what that is worth."""

    complaint: RepairGoal
    above: List[Tuple[float, int]]           # (-level, OSD)
    level_of: Callable[[int], float]
    wanted: float
    space: Callable[[float], float]          # bytes moved that a level is worth
    budget: float                             # bytes that may be displaced


class Tightening:
    """The board is better or the same after each call; `price` is what a displaced byte costs."""

    def __init__(self, placement: PlacementState, repair: Repair, limits: SearchConstraints, price: float,
                 checkpoint: Checkpoint) -> None:
        self._placement = placement
        self._repair = repair
        self._limits = limits
        self._price = price
        self._checkpoint = checkpoint
        effort = max(_LEAST_EFFORT, placement.candidates_examined)
        self._utilization_effort = self._pressure_effort = effort
        self._effort_end = 0   # where `placement.examined` ends the present limit
        self._moves_made: List[ShardMove] = []
        self._displaced_bytes = 0
        # OSD set → changes of the board when it was left as it is: the same again is in vain
        self._exhausted_at: Dict[Tuple[int, ...], int] = {}

    def lower_max_utilization(self, osds: Tuple[int, ...], goal: float,
                      worth: Callable[[float, float], float], step: float,
                      trouble: float) -> None:
        """Sinks the highest utilization of a set of OSDs to the goal, or as far as it pays.

        `worth` is how many bytes moved a utilization of 1 less would be worth, `step` and `goal`
        are ratios, and `trouble` what an operation costs beside its bytes, per byte of OSD.
        """
        placement, limits = self._placement, self._limits
        used, size = placement.used_bytes, placement.size_bytes
        members = [i for i in osds if placement.is_source[i] and placement.shards[i]]
        if not members or self._exhausted_at.get(osds) == len(placement.change_log):
            return
        refused = 0
        self._effort_end = placement.candidates_examined + self._utilization_effort
        while refused < _PATIENCE:
            top = max(used[i] / size[i] for i in members)
            if top <= goal + 1e-9:
                break
            water = max(goal, top - step)
            limits.set_max_utilization(osds, water)
            above = [(-used[i] / size[i], i) for i in members if used[i] > water * size[i] + 1]
            complaint = RepairGoal(osds, -1, 0.0, goal, 0.0, trouble * size[members[0]])
            if not self._apply_step(_Step(complaint, above, lambda i: used[i] / size[i], water,
                                       lambda level: worth(top, level), float("inf"))):
                refused += 1
                step = min(step, top - goal) / 2.0
        self._utilization_effort = self._effort_end - placement.candidates_examined
        limits.set_max_utilization(osds, max(used[i] / size[i] for i in members))
        self._exhausted_at[osds] = len(placement.change_log)

    def lower_osd_to(self, osd: int, most: int, helpers: Tuple[int, ...]) -> None:
        """Relieves an OSD until it has less than one of its shards above `most` bytes, or nothing
        more can leave: what that costs is not asked."""
        placement = self._placement
        if not placement.is_source[osd]:
            return
        complaint = RepairGoal(helpers, -1, 0.0, most / placement.size_bytes[osd], 0.0, 0.0)
        self._effort_end = placement.candidates_examined + self._utilization_effort
        for _ in range(_EFFORT * len(placement.shards[osd])):
            sizes = sorted(placement.pg_bytes[pg] for pg in placement.shards[osd] if placement.pg_bytes[pg])
            if not sizes or placement.used_bytes[osd] - most < sizes[len(sizes) // 2] or (
                    placement.candidates_examined >= self._effort_end or not self._checkpoint()):
                break
            found = self._repair.find(osd, complaint)
            if found is None:
                break
            self._moves_made.clear()
            self._make_moves(found.steps)
        self._moves_made.clear()

    def lower_pool_pressure(self, group: int, goal: float, worth: float, budget: float) -> float:
        """Lowers a pool's highest count of shards per free byte to the goal, or as it pays.

        `worth` is how many bytes moved a byte of the pool's raw free space is worth. At most
        `budget` bytes are displaced; returns how many of them are left.
        """
        placement, limits = self._placement, self._limits
        members = [i for i in placement.groups[group].osds if placement.is_source[i]]
        pool = placement.groups[group].pool
        mean = max(1.0, placement.groups[group].mean_shard_bytes)
        share, refused, start = _SHARE, 0, self._displaced_bytes
        self._effort_end = placement.candidates_examined + self._pressure_effort

        def pressure(osd: int) -> float:
            return limits.shards_per_free_byte(group, osd)
        levels = [(-pressure(i), i) for i in members]
        while levels and refused < _PATIENCE:
            now = -min(levels)[0]
            if now <= goal or now == float("inf"):
                break
            wanted = max(goal, now * (1.0 - share))
            limits.set_max_pressure(group, wanted)
            raw = pool.pg_num * pool.size * worth
            if not self._apply_step(_Step(
                    RepairGoal((), group, wanted, 0.0, mean, 0.0),
                    [entry for entry in levels if -entry[0] > wanted], pressure, wanted,
                    lambda level: raw * (1.0 / level - 1.0 / now), budget - self._displaced_bytes + start)):
                refused += 1
                share /= 2.0
            levels = [(-pressure(i), i) for i in members]
        self._pressure_effort = self._effort_end - placement.candidates_examined
        if levels:
            limits.set_max_pressure(group, -min(levels)[0])
        return budget - self._displaced_bytes + start

    def _apply_step(self, sinking: _Step) -> bool:
        """Relieves the OSDs beyond the limit, the worst first, and keeps what paid.

        After each OSD the limit stands at the next one's level. False where not all was kept.
        """
        above = sorted(sinking.above)
        left = _EFFORT * len(above) + _EXTRA_EFFORT
        cost, displaced = 0.0, 0
        best, keep, spent = 0.0, 0, 0
        self._moves_made.clear()
        for number, (_, source) in enumerate(above):
            while sinking.level_of(source) > sinking.wanted * (1 + 1e-12):
                found = self._repair.find(source, sinking.complaint) if (
                    left and self._placement.candidates_examined < self._effort_end and self._checkpoint()) else None
                if found is None:
                    self._revert_after(keep, spent)
                    return False
                left -= 1
                cost -= found.gain
                displaced += self._make_moves(found.steps)
            following = -above[number + 1][0] if number + 1 < len(above) else 0.0
            value = self._price * sinking.space(max(sinking.wanted, following)) - cost
            if value > best and displaced <= sinking.budget:
                best, keep, spent = value, len(self._moves_made), displaced
            elif (displaced > sinking.budget
                  or cost > _DEAR * self._price * sinking.space(sinking.wanted)):
                break
        whole = keep == len(self._moves_made)
        self._revert_after(keep, spent)
        return whole

    def _make_moves(self, steps: Sequence[ShardMove]) -> int:
        """Carries the steps out; returns the bytes that they displace, less what they refund."""
        displaced = 0
        for pg, source, target in steps:
            start = self._placement.initial_up[pg]
            displaced += self._placement.pg_bytes[pg] * ((source in start) - (target in start))
            self._placement.move(pg, source, target)
        self._moves_made += steps
        return displaced

    def _revert_after(self, keep: int, spent: int) -> None:
        """Undoes all but the first `keep` steps, which displaced `spent` bytes."""
        for pg, source, target in reversed(self._moves_made[keep:]):
            self._placement.move(pg, target, source)
        del self._moves_made[keep:]
        self._displaced_bytes += spent

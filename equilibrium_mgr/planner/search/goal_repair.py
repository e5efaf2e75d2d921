"""Brings OSDs back to goals that the placement has kept before, or nearly.

After one event few OSDs are above them. Each is relieved by the smallest shard that suffices, to
the emptiest OSD that may take it; where there is none, by the operations of `Repair`. The effort is
in proportion to the OSDs that are above the goals.
"""
from __future__ import annotations

from bisect import bisect_left
from typing import Dict, FrozenSet, List, NamedTuple, Optional, Set, Tuple

from ...runtime.time_slice import give_way, told_to_end
from ..state.constraints import SearchConstraints
from ..state.osd_sets import OsdSetState
from ..state.placement_state import PlacementState, ShardMove
from .receivers import Receivers
from .repair import OverfullOsd, RepairGoal, TooManyShards
from .search import Search

#: How far above the goals OSDs are relieved at first, and then, in typical shards: what is far
#: above goes first, while many OSDs can take a shard.
_LEVELS = (1.0, 0.5, 0.25, 0.0)
#: How far above the goal OSDs may become for pressure: utilization (a ratio; half a typical shard
#: where that is less). Without it hardly any OSD takes a shard, and each costs a search of all.
_RISE = 0.001
#: How far pressure may be above its goal then, as a ratio of it per typical shard.
_PRESSURE_OF_LEVEL = 0.2

#: Shards, and targets of each, that are examined for a single move.
_SHARDS = 8
_TARGETS = 40

#: Candidates that `Repair` may examine, and so many more per OSD above the goals.
_CANDIDATES = 20_000
_CANDIDATES_PER_OSD = 200

#: Where it has moved fewer PGs than this ratio of those displaced, the others are not gone over
#: for moves that are no longer needed.
_FEW_MOVED = 0.1

#: Overfull OSDs for which no operation is found before it gives up: each costs a search of all
#: swaps and chains.
_MAX_FAILURES = 3

_ROUNDING = 1e-9


class Goals(NamedTuple):
    """What no OSD shall be above."""

    utilizations: Tuple[float, ...]    # of the OSD sets, in their order (ratios)
    pressures: Dict[int, float]        # data group → shards per free byte
    left_alone: FrozenSet[int] = frozenset()   # OSD indices for which there are no goals


class GoalRepair:
    """Lowers what is above the goals, as far as it can."""

    def __init__(self, placement: PlacementState, search: Search, goals: Goals) -> None:
        self._placement = placement
        self._search = search
        self._goals = goals
        #: in the end those of the placement as it is
        self.limits = SearchConstraints(placement, search.data_groups)
        self._repair = search.repair(self.limits)
        self._receivers = Receivers(placement, search.targets, self.limits)
        self._failures = 0
        #: groups whose highest pressure could not be lowered: their pools gain nothing elsewhere
        self._stuck_groups: Set[int] = set()
        self._last_candidate = 0
        self._moved_pgs: Set[int] = set()

    def run(self) -> bool:
        """Relieves all OSDs; False where that did not succeed."""
        above = sum(len(self.above(osd_set.osds, goal)) for osd_set, goal in zip(
            self._search.sets, self._goals.utilizations)) + sum(
                len(self.pressed(group, most)) for group, most in self._goals.pressures.items())
        if not above:
            return True
        self._last_candidate = (self._placement.candidates_examined + _CANDIDATES
                                + _CANDIDATES_PER_OSD * above)
        moved_pgs = self._moved_pgs   # not self: no circle
        self._placement.observers.append(lambda pg, *_: moved_pgs.add(pg))
        reached = all(self._lower_to(level) for level in _LEVELS)
        self.limits.tighten_to_current(0.0)
        if not told_to_end() and self._search.weights.return_value:
            few = len(self._moved_pgs) < _FEW_MOVED * len(self._placement.moved_pgs)
            self._search.reduce_moves(self.limits, 1, self._moved_pgs if few else None)
        return reached

    def _lower_to(self, level: float) -> bool:
        """Relieves what is so many typical shards above the goals; False where that fails."""
        sets = [(osd_set, goal + level * osd_set.typical_shard) for osd_set, goal in zip(
            self._search.sets, self._goals.utilizations)]
        pressures = [(group, most * (1.0 + level * _PRESSURE_OF_LEVEL))
                     for group, most in self._goals.pressures.items()]
        for osd_set, most in sets:
            self.limits.set_max_utilization(osd_set.osds, most)
        for group, most in pressures:
            self.limits.set_max_pressure(group, most)
        if not all(self._lower_utilizations(osd_set, most) for osd_set, most in sets):
            return False
        for osd_set, most in sets:
            self.limits.set_max_utilization(
                osd_set.osds, most + min(_RISE, osd_set.typical_shard / 2.0))
        return all(self._lower_pressures(group, most) for group, most in pressures)

    # -- utilization ---------------------------------------------------------------------------

    def above(self, osds: Tuple[int, ...], most: float) -> List[int]:
        """The OSDs above a utilization that may give, the fullest first."""
        placement = self._placement
        used, size = placement.used_bytes, placement.size_bytes
        return [i for _, i in sorted(
            (-used[i] / size[i], i) for i in osds
            if used[i] > most * size[i] + 1 and i not in self._goals.left_alone
            and placement.is_source[i] and placement.shards[i])]

    def _lower_utilizations(self, osd_set: OsdSetState, most: float) -> bool:
        placement, weights = self._placement, self._search.weights
        fixed_cost = (weights.fixed_cost_steps * weights.tightening_price * weights.step_shards
                      * osd_set.typical_shard * placement.size_bytes[osd_set.osds[0]])
        wanted = OverfullOsd(osd_set.osds, most, fixed_cost)
        stuck: List[int] = []
        for osd in self.above(osd_set.osds, most):
            while self._is_above(osd, wanted):
                step = (self._single_move(osd, osd_set, most)
                        if give_way(placement.moves_made) else None)
                if step is None:
                    stuck.append(osd)
                    break
                placement.move(*step)
        return all(self._relieve(osd, wanted) for osd in stuck)

    def _single_move(self, osd: int, osd_set: OsdSetState, most: float) -> Optional[ShardMove]:
        """A move of the smallest shard that suffices; displaced ones first, which cost nothing."""
        placement, shard_index = self._placement, self._search.shard_index
        need = int(placement.used_bytes[osd] - most * placement.size_bytes[osd])
        for listed in (shard_index.displaced, shard_index.by_size):
            shards = listed(osd)
            enough = bisect_left(shards, (need, -1, -1))
            for size, pg, group in shards[enough:enough + _SHARDS]:
                target = self._target(osd, size, pg, group, osd_set.osds)
                if target is not None:
                    return pg, osd, target
        return None

    def _target(self, osd: int, size: int, pg: int, group: int,
                osds: Tuple[int, ...]) -> Optional[int]:
        """The emptiest OSD that may take a shard and stays within all limits."""
        placement, limits = self._placement, self.limits
        members, tried = placement.groups[group].members, 0
        for target in self._receivers.among(osds, size):
            if target not in members or target == osd:
                continue
            tried += 1
            if tried > _TARGETS:
                break
            if limits.fits(target, size, group, -1) and placement.is_legal(pg, osd, target):
                return target
        placement.candidates_examined += tried
        return None

    # -- pressure ------------------------------------------------------------------------------

    def pressed(self, group: int, most: float) -> List[int]:
        """The OSDs above a pressure that may give, those with the highest first."""
        counts, used = self._placement.groups[group].counts, self._placement.used_bytes
        usable, is_source = self.limits.usable_bytes, self._placement.is_source
        return [i for _, i in sorted(
            (-self.limits.shards_per_free_byte(group, i), i)
            for i in self._placement.groups[group].osds
            if counts[i] > most * (1.0 + _ROUNDING) * max(0.0, usable[i] - used[i])
            and i not in self._goals.left_alone and is_source[i])]

    def _lower_pressures(self, group: int, most: float) -> bool:
        mean = max(1.0, self._placement.groups[group].mean_shard_bytes)
        wanted = TooManyShards(group, most, mean)
        for osd in self.pressed(group, most) if group not in self._stuck_groups else ():
            if not self._relieve(osd, wanted):
                return False
            if self._is_above(osd, wanted):
                self._stuck_groups.add(group)
                break
        return True

    # -- both ----------------------------------------------------------------------------------

    def _is_above(self, osd: int, wanted: RepairGoal) -> bool:
        placement = self._placement
        if isinstance(wanted, OverfullOsd):
            return placement.used_bytes[osd] > wanted.utilization * placement.size_bytes[osd] + 1
        return self.limits.shards_per_free_byte(wanted.group, osd) > (
            wanted.max_pressure * (1.0 + _ROUNDING))

    def _relieve(self, osd: int, wanted: RepairGoal) -> bool:
        """Relieves one OSD by whatever operation there is; False where it must end."""
        placement = self._placement
        while self._is_above(osd, wanted):
            if placement.candidates_examined >= self._last_candidate or (
                    not give_way(placement.moves_made)):
                return False
            found = self._repair.find(osd, wanted)
            if found is None:
                self._failures += isinstance(wanted, OverfullOsd)
                return self._failures < _MAX_FAILURES
            for step in found.steps:
                placement.move(*step)
        return True

"""The best that a limited number of moves, or of bytes, can do.

A whole plan's beginning is not that: parts of it prepare what comes later. Here the question is
turned round: to bring every OSD of a set to a level, how many moves does it take? The lowest level
that the limit pays for is searched for by halving, set by set. What a set gains for its moves
decides which sets get them, and what is left relieves the fullest OSDs.
"""
from __future__ import annotations

from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from ..plan.options import PlanOptions
from ..runtime.checkpoints import Checkpoint
from ..snapshot.model import Snapshot
from .bound.lower_bound import UtilizationBounds
from .move_order import Change
from .objective import AIM_SCORE_WEIGHTS, AIM_WEIGHTS
from .placement_score import pool_free_bytes, score_placement
from .search.repair import RepairGoal, Repair
from .search.search import Search
from .state.constraints import SearchConstraints
from .state.osd_sets import OsdSetState
from .state.placement_state import PlacementState, ShardMove

#: Levels tried per set: by halving down to the lowest, and between that and the top.
_HALVINGS = 12
_LEVELS = 8

#: Shards and targets looked at for one move.
_SHARDS = 12
_TARGETS = 40


#: Usable bytes that differ by less are the same.
_SAME_BYTES = 1 << 20


class MoveCost(NamedTuple):
    """What moves cost; those of no bytes are free."""

    moves: int = 0
    bytes: int = 0

    def plus(self, other: MoveCost) -> MoveCost:
        return MoveCost(self.moves + other.moves, self.bytes + other.bytes)

    def within(self, options: PlanOptions) -> bool:
        return ((options.max_moves is None or self.moves <= options.max_moves)
                and (options.max_bytes is None or self.bytes <= options.max_bytes))


class _CurvePoint(NamedTuple):
    """A level of a set, and the moves that lead there."""

    level: float
    steps: Tuple[ShardMove, ...]
    spent: MoveCost


def limited_placement(snapshot: Snapshot, options: PlanOptions, bounds: UtilizationBounds,
                  beginning: Sequence[Change], checkpoint: Checkpoint
                  ) -> Optional[PlacementState]:
    """The placement that a limited search finds, or None where the beginning of a whole plan,
    which keeps the limits as well, lowers the highest utilizations further."""
    placement = PlacementState(snapshot, options, checkpoint)
    search = LimitedSearch(placement, bounds, options, checkpoint)
    room = pool_free_bytes(placement, search.data_groups)
    other = PlacementState(snapshot, options, checkpoint)
    for change in beginning:
        for source, target in change.moves:
            other.move(change.pg, source, target)
    search.run()
    placement.observers.clear()

    def worth(placed: PlacementState) -> Tuple[float, float]:
        tops = sum(members.usable_bytes * max(placed.capacity_utilization(i) for i in members.osds)
                   for members in search.sets)
        return -round(tops / _SAME_BYTES), score_placement(
            placed, search.sets, search.data_groups, room, AIM_WEIGHTS[options.aim][0],
            AIM_SCORE_WEIGHTS[options.aim])
    return placement if worth(placement) >= worth(other) else None


class LimitedSearch:
    """One run over a board that nothing has been moved on."""

    def __init__(self, placement: PlacementState, bounds: UtilizationBounds, options: PlanOptions,
                 checkpoint: Checkpoint) -> None:
        self._placement = placement
        self._options = options
        self._stopped = False
        self._tightly = False   # shards go where they just fit, to keep the emptiest for others
        self._outer_checkpoint = checkpoint
        search = Search(placement, bounds, AIM_WEIGHTS[options.aim][0], checkpoint)
        self.sets: List[OsdSetState] = search.sets
        self.data_groups = search.data_groups
        self._limits = SearchConstraints(placement, search.data_groups, self._checkpoint)
        self._repair: Repair = search.repair(self._limits)
        self._targets = search.targets
        self._shard_index = search.shard_index

    def run(self) -> None:
        """Leaves the board as the limited moves make it."""
        curves = [self._curve(members) for members in self.sets]
        chosen = _share_out(curves, [members.usable_bytes for members in self.sets],
                            self._options)
        spent = MoveCost()
        for members, reached in zip(self.sets, chosen):
            for step in reached.steps:
                self._placement.move(*step)
            spent = spent.plus(reached.spent)
        for members, reached in zip(self.sets, chosen):
            further = self._lowest(members, spent, _HALVINGS // 2)
            if further is not None:
                for step in further.steps:
                    self._placement.move(*step)
                spent = spent.plus(further.spent)
        self._even_out(spent)

    def _checkpoint(self, _moves: Optional[int] = None) -> bool:
        if not self._stopped and not self._outer_checkpoint(len(self._placement.moved_pgs)):
            self._stopped = True
        return not self._stopped

    # -- levels of one set -----------------------------------------------------------------------

    def _curve(self, members: OsdSetState) -> List[_CurvePoint]:
        """Levels from the present one down to the lowest within the limit; the board is as before."""
        top = self._top(members)
        curve = [_CurvePoint(top, (), MoveCost())]
        lowest = self._lowest(members, MoveCost(), _HALVINGS)
        if lowest is None:
            return curve
        for part in range(1, _LEVELS):
            reached = self._reach(members, top - (top - lowest.level) * part / _LEVELS, MoveCost())
            if reached is not None:
                curve.append(reached)
        return curve + [lowest]

    def _lowest(self, members: OsdSetState, spent: MoveCost, halvings: int) -> Optional[_CurvePoint]:
        high = self._top(members)
        low = min(high, members.bound)
        best = self._reach(members, low, spent)
        if best is not None:
            return best
        for _ in range(halvings):
            middle = (low + high) / 2.0
            reached = self._reach(members, middle, spent)
            if reached is None:
                low = middle
            else:
                best, high = reached, min(middle, reached.level)
        return best

    def _top(self, members: OsdSetState) -> float:
        return max(self._placement.capacity_utilization(i) for i in members.osds)

    def _reach(self, members: OsdSetState, level: float, spent: MoveCost) -> Optional[_CurvePoint]:
        """The moves that bring all OSDs of a set to a level, None where they cost too much. The
        board is as before."""
        for self._tightly in (False, True):
            reached = self._try(members, level, spent)
            if reached is not None:
                return reached
        return None

    def _try(self, members: OsdSetState, level: float, spent: MoveCost) -> Optional[_CurvePoint]:
        placement = self._placement
        # what an operator's weights call full may be far above what any OSD may be filled to
        real = max(members.max_utilization(placement), members.bound + members.typical_shard)
        self._limits.set_max_utilization(members.osds, min(level, real))
        steps: List[ShardMove] = []
        cost: Optional[MoveCost] = MoveCost()
        for osd in sorted((i for i in members.osds if self._excess(i, level) > 0.0),
                          key=lambda i: (-placement.capacity_utilization(i), i)):
            cost = self._relieve(osd, members, level, spent, cost, steps)
            if cost is None:
                break
        reached = max(placement.capacity_utilization(i) for i in members.osds)
        for pg, source, target in reversed(steps):
            placement.move(pg, target, source)
        if cost is None or not steps:
            return None
        return _CurvePoint(reached, tuple(steps), cost)

    def _relieve(self, osd: int, members: OsdSetState, level: float, spent: MoveCost,
                 cost: MoveCost, steps: List[ShardMove]) -> Optional[MoveCost]:
        """Moves shards off an OSD until it is at the level; what all has cost, or None."""
        placement = self._placement
        while self._excess(osd, level) > 0.0:
            if not (placement.is_source[osd] and self._checkpoint()):
                return None
            found = (self._single(osd, self._excess(osd, level))
                     or self._other(osd, members, level))
            if not found:
                return None
            for step in found:
                placement.move(*step)
                size = placement.pg_bytes[step[0]]
                cost = cost.plus(MoveCost(1 if size else 0, size))
            steps += found
            if not spent.plus(cost).within(self._options):
                return None
        return cost

    def _excess(self, osd: int, level: float) -> float:
        """Bytes above a level; an OSD that is held to a share is never asked for more than that."""
        placement = self._placement
        most = max(level * placement.capacity_bytes[osd] + placement.spared_bytes[osd], placement.share_limit_bytes.get(osd, 0))
        return placement.used_bytes[osd] - most - 1.0

    def _single(self, osd: int, need: float) -> Tuple[ShardMove, ...]:
        """One shard that is enough, the smallest such; else the largest that can go."""
        shards = self._shard_index.by_size(osd)
        enough = _first_at_least(shards, need)
        for offers in (shards[enough:enough + _SHARDS],
                       shards[max(0, enough - _SHARDS):enough][::-1]):
            for size, pg, group in offers:
                target = self._target(osd, size, pg, group) if size else None
                if target is not None:
                    return ((pg, osd, target),)
        return ()

    def _target(self, osd: int, size: int, pg: int, group: int) -> Optional[int]:
        """Where the shard may go: the best OSD, or the fullest that it fits on."""
        placement, limits = self._placement, self._limits
        best: Optional[int] = None
        for number, (_, target) in enumerate(self._targets.candidates(group, osd)):
            if number >= _TARGETS:
                break
            if (target != osd and limits.fits(target, size, group, -1)
                    and placement.is_legal(pg, osd, target)):
                if not self._tightly:
                    return target
                if best is None or placement.capacity_utilization(target) > placement.capacity_utilization(best):
                    best = target
        return best

    def _other(self, osd: int, members: OsdSetState, level: float) -> Tuple[ShardMove, ...]:
        """Shards that only move together, a swap or a chain."""
        placement = self._placement
        goal = (placement.used_bytes[osd] - self._excess(osd, level)) / placement.size_bytes[osd]
        found = self._repair.find(osd, RepairGoal(members.osds, -1, 0.0, goal, 0.0, 0.0))
        return found.steps if found is not None else ()

    # -- what is left ------------------------------------------------------------------------------

    def _even_out(self, spent: MoveCost) -> None:
        """Moves that are left take from the fullest OSDs what makes none as full as they were."""
        placement = self._placement
        for members in sorted(self.sets, key=lambda s: -s.usable_bytes):
            for osd in sorted(members.osds, key=lambda i: (-placement.capacity_utilization(i), i)):
                level = placement.capacity_utilization(osd) - members.typical_shard / 4.0
                if level <= members.bound or not self._checkpoint():
                    break
                self._limits.set_max_utilization(members.osds, min(level, members.max_utilization(placement)))
                found = self._single(osd, self._excess(osd, level)) if placement.is_source[osd] else ()
                for pg, _, _ in found:
                    size = placement.pg_bytes[pg]
                    if self._excess(osd, level) <= 0.0 or not spent.plus(
                            MoveCost(1, size)).within(self._options):
                        return
                    placement.move(*found[0])
                    spent = spent.plus(MoveCost(1, size))


def _first_at_least(shards: Sequence[Tuple[int, int, int]], need: float) -> int:
    low, high = 0, len(shards)
    while low < high:
        middle = (low + high) // 2
        if shards[middle][0] < need:
            low = middle + 1
        else:
            high = middle
    return low


def _share_out(curves: Sequence[Sequence[_CurvePoint]], worth: Sequence[float],
               options: PlanOptions) -> List[_CurvePoint]:
    """A point of each set's curve: what gains most for its cost first, within the limit."""
    at = [0] * len(curves)
    while True:
        best: Optional[Tuple[float, int, int]] = None
        for number, curve in enumerate(curves):
            now = curve[at[number]]
            for index in range(at[number] + 1, len(curve)):
                others = MoveCost()
                for other, point in enumerate(at):
                    if other != number:
                        others = others.plus(curves[other][point].spent)
                if not others.plus(curve[index].spent).within(options):
                    continue
                cost = _cost(curve[index].spent, options) - _cost(now.spent, options)
                gain = worth[number] * (now.level - curve[index].level) / max(1e-9, cost)
                if gain > 0.0 and (best is None or gain > best[0]):
                    best = gain, number, index
        if best is None:
            return [curve[index] for curve, index in zip(curves, at)]
        at[best[1]] = best[2]


def _cost(spent: MoveCost, options: PlanOptions) -> float:
    """As a part of the limits, the scarcer one."""
    parts: Dict[str, float] = {"none": 0.0}
    if options.max_moves is not None:
        parts["moves"] = spent.moves / max(1, options.max_moves)
    if options.max_bytes is not None:
        parts["bytes"] = spent.bytes / max(1, options.max_bytes)
    return max(parts.values())

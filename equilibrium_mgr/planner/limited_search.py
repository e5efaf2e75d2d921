"""The best placement that a limited number of moves, or of bytes, can reach.

The first changes of a whole plan are not that placement: some of them prepare later ones. Instead
the lowest utilization that the limit allows is found by bisection, for each set of OSDs by itself.
The sets that gain most for their moves get them; moves that are left relieve the fullest OSDs.
"""
from __future__ import annotations

from bisect import bisect_left
from typing import List, NamedTuple, Optional, Sequence, Tuple

from ..plan.options import PlanOptions
from ..runtime.time_slice import give_way
from ..snapshot.model import Snapshot
from .bound.lower_bound import UtilizationBounds
from .changes import Change
from .objective import AIM_SCORE_WEIGHTS, AIM_WEIGHTS
from .placement_score import pool_free_bytes, score_placement
from .search.repair import OverfullOsd, Repair
from .search.search import Search
from .state.constraints import SearchConstraints
from .state.osd_sets import OsdSetState
from .state.placement_state import PlacementState, ShardMove

#: Utilizations tried per set: by bisection for the lowest, and between that and the present one.
_HALVINGS = 12
_CURVE_POINTS = 8

#: Shards and targets examined for one move.
_SHARDS = 12
_TARGETS = 40

#: Usable bytes that differ by less are equal.
_SAME_BYTES = 1 << 20


class MoveCost(NamedTuple):
    """The cost of moves; those of no bytes are free."""

    moves: int = 0
    bytes: int = 0

    def plus(self, other: MoveCost) -> MoveCost:
        """The sum of both."""
        return MoveCost(self.moves + other.moves, self.bytes + other.bytes)

    def within(self, options: PlanOptions) -> bool:
        """True if the cost keeps the limits of the options."""
        return ((options.max_moves is None or self.moves <= options.max_moves)
                and (options.max_bytes is None or self.bytes <= options.max_bytes))


class _CurvePoint(NamedTuple):
    """The highest utilization of a set (a ratio), and the moves that lead there."""

    utilization: float
    steps: Tuple[ShardMove, ...]
    cost: MoveCost


def limited_placement(snapshot: Snapshot, options: PlanOptions, bounds: UtilizationBounds,
                      beginning: Sequence[Change]) -> Optional[PlacementState]:
    """Returns the placement that a limited search finds, or None where `beginning`, the changes of
    a whole plan up to the limits, lowers the highest utilizations further."""
    placement = PlacementState(snapshot, options)
    search = LimitedSearch(placement, bounds, options)
    free = pool_free_bytes(placement, search.data_groups)
    other = PlacementState(snapshot, options)
    for change in beginning:
        for source, target in change.moves:
            other.move(change.pg, source, target)
    search.run()
    placement.observers.clear()

    def score(placed: PlacementState) -> Tuple[float, float]:
        highest = sum(
            osd_set.usable_bytes * max(placed.capacity_utilization(i) for i in osd_set.osds)
            for osd_set in search.sets)
        return -round(highest / _SAME_BYTES), score_placement(
            placed, search.sets, search.data_groups, free, search.near_free_bytes,
            AIM_WEIGHTS[options.aim][0],
            AIM_SCORE_WEIGHTS[options.aim])
    return placement if score(placement) >= score(other) else None


class LimitedSearch:
    """One search over a placement on which no moves have been made."""

    def __init__(self, placement: PlacementState, bounds: UtilizationBounds,
                 options: PlanOptions) -> None:
        self._placement = placement
        self._options = options
        self._best_fit = False   # shards go where they just fit, to keep the emptiest for others
        search = Search(placement, bounds, AIM_WEIGHTS[options.aim][0])
        self.sets: List[OsdSetState] = search.sets
        self.data_groups = search.data_groups
        self.near_free_bytes = search.near_free_bytes()
        self._limits = SearchConstraints(placement, search.data_groups)
        self._repair: Repair = search.repair(self._limits)
        self._targets = search.targets
        self._shard_index = search.shard_index

    def run(self) -> None:
        """Makes the limited moves."""
        curves = [self._curve(osd_set) for osd_set in self.sets]
        chosen = _distribute_limits(curves, [osd_set.usable_bytes for osd_set in self.sets],
                            self._options)
        spent = MoveCost()
        for point in chosen:
            spent = self._move_to(point, spent)
        for osd_set in self.sets:
            further = self._lowest(osd_set, spent, _HALVINGS // 2)
            if further is not None:
                spent = self._move_to(further, spent)
        self._even_out(spent)

    def _move_to(self, point: _CurvePoint, spent: MoveCost) -> MoveCost:
        for step in point.steps:
            self._placement.move(*step)
        return spent.plus(point.cost)

    # -- utilizations of one set -----------------------------------------------------------------

    def _curve(self, osd_set: OsdSetState) -> List[_CurvePoint]:
        """Points from the present utilization down to the lowest within the limit. The placement
        is left unchanged."""
        highest = self._highest(osd_set)
        curve = [_CurvePoint(highest, (), MoveCost())]
        lowest = self._lowest(osd_set, MoveCost(), _HALVINGS)
        if lowest is None:
            return curve
        for part in range(1, _CURVE_POINTS):
            point = self._reach(osd_set, highest - (highest - lowest.utilization) * part
                                / _CURVE_POINTS, MoveCost())
            if point is not None:
                curve.append(point)
        return curve + [lowest]

    def _lowest(self, osd_set: OsdSetState, spent: MoveCost,
                halvings: int) -> Optional[_CurvePoint]:
        """The lowest utilization within what the limits leave after `spent`, or None."""
        high = self._highest(osd_set)
        low = min(high, osd_set.bound)
        best = self._reach(osd_set, low, spent)
        if best is not None:
            return best
        for _ in range(halvings):
            middle = (low + high) / 2.0
            point = self._reach(osd_set, middle, spent)
            if point is None:
                low = middle
            else:
                best, high = point, min(middle, point.utilization)
        return best

    def _highest(self, osd_set: OsdSetState) -> float:
        return max(self._placement.capacity_utilization(i) for i in osd_set.osds)

    def _reach(self, osd_set: OsdSetState, utilization: float,
               spent: MoveCost) -> Optional[_CurvePoint]:
        """The moves that bring all OSDs of a set to a utilization, None where they cost too much.
        The placement is left unchanged."""
        for self._best_fit in (False, True):
            point = self._try(osd_set, utilization, spent)
            if point is not None:
                return point
        return None

    def _try(self, osd_set: OsdSetState, utilization: float,
             spent: MoveCost) -> Optional[_CurvePoint]:
        placement = self._placement
        # a ratio of the capacity that an operator's weights leave may be far above any OSD's limit
        real = max(osd_set.max_utilization(placement), osd_set.bound + osd_set.typical_shard)
        self._limits.set_max_utilization(osd_set.osds, min(utilization, real))
        steps: List[ShardMove] = []
        cost: Optional[MoveCost] = MoveCost()
        for osd in sorted((i for i in osd_set.osds if self._excess(i, utilization) > 0.0),
                          key=lambda i: (-placement.capacity_utilization(i), i)):
            assert cost is not None
            cost = self._relieve(osd, osd_set, utilization, spent, cost, steps)
            if cost is None:
                break
        reached = max(placement.capacity_utilization(i) for i in osd_set.osds)
        for pg, source, target in reversed(steps):
            placement.move(pg, target, source)
        if cost is None or not steps:
            return None
        return _CurvePoint(reached, tuple(steps), cost)

    def _relieve(self, osd: int, osd_set: OsdSetState, utilization: float, spent: MoveCost,
                 cost: MoveCost, steps: List[ShardMove]) -> Optional[MoveCost]:
        """Moves shards off an OSD until it is at the utilization, and adds them to `steps`; returns
        `cost` with theirs, or None where that is not possible within the limits."""
        placement = self._placement
        while self._excess(osd, utilization) > 0.0:
            if not (placement.is_source[osd] and give_way()):
                return None
            found = (self._single(osd, self._excess(osd, utilization))
                     or self._repair_moves(osd, osd_set, utilization))
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

    def _excess(self, osd: int, utilization: float) -> float:
        """Bytes above a utilization of the capacity; for an OSD that is held to a share never more
        than what is beyond the share."""
        placement = self._placement
        most = max(utilization * placement.capacity_bytes[osd] + placement.spared_bytes[osd],
                   placement.share_limit_bytes.get(osd, 0))
        return placement.used_bytes[osd] - most - 1.0

    def _single(self, osd: int, need: float) -> Tuple[ShardMove, ...]:
        """A move of the smallest shard of `need` bytes or more that can go, else of the largest."""
        shards = self._shard_index.by_size(osd)
        enough = bisect_left(shards, (need, -1, -1))
        for offers in (shards[enough:enough + _SHARDS],
                       shards[max(0, enough - _SHARDS):enough][::-1]):
            for size, pg, group in offers:
                target = self._target(osd, size, pg, group) if size else None
                if target is not None:
                    return ((pg, osd, target),)
        return ()

    def _target(self, osd: int, size: int, pg: int, group: int) -> Optional[int]:
        """The OSD that the shard goes to: the best one, or for best fit the fullest possible."""
        placement, limits = self._placement, self._limits
        best: Optional[int] = None
        for number, (_, target) in enumerate(self._targets.candidates(group, osd)):
            if number >= _TARGETS:
                break
            if (target != osd and limits.fits(target, size, group, -1)
                    and placement.is_legal(pg, osd, target)):
                if not self._best_fit:
                    return target
                if best is None or (placement.capacity_utilization(target)
                                    > placement.capacity_utilization(best)):
                    best = target
        return best

    def _repair_moves(self, osd: int, osd_set: OsdSetState,
                      utilization: float) -> Tuple[ShardMove, ...]:
        """A joint move, a swap or a chain."""
        placement = self._placement
        wanted = (placement.used_bytes[osd]
                  - self._excess(osd, utilization)) / placement.size_bytes[osd]
        found = self._repair.find(osd, OverfullOsd(osd_set.osds, wanted, 0.0))
        return found.steps if found is not None else ()

    # -- what is left ------------------------------------------------------------------------------

    def _even_out(self, spent: MoveCost) -> None:
        """Uses moves that are left: from the fullest OSDs to OSDs that stay emptier than these."""
        placement = self._placement
        for osd_set in sorted(self.sets, key=lambda s: -s.usable_bytes):
            for osd in sorted(osd_set.osds,
                              key=lambda i: (-placement.capacity_utilization(i), i)):
                wanted = placement.capacity_utilization(osd) - osd_set.typical_shard / 4.0
                if wanted <= osd_set.bound or not give_way():
                    break
                self._limits.set_max_utilization(
                    osd_set.osds, min(wanted, osd_set.max_utilization(placement)))
                found = (self._single(osd, self._excess(osd, wanted))
                         if placement.is_source[osd] else ())
                for pg, _, _ in found:
                    cost = MoveCost(1, placement.pg_bytes[pg])
                    if self._excess(osd, wanted) <= 0.0 or (
                            not spent.plus(cost).within(self._options)):
                        return
                    placement.move(*found[0])
                    spent = spent.plus(cost)


def _distribute_limits(curves: Sequence[Sequence[_CurvePoint]], values: Sequence[float],
               options: PlanOptions) -> List[_CurvePoint]:
    """Chooses a point of each set's curve: steps that gain most for their cost first, within the
    limits. `values` are bytes per 1.0 of utilization, per set."""
    at = [0] * len(curves)
    while True:
        best: Optional[Tuple[float, int, int]] = None
        for number, curve in enumerate(curves):
            now = curve[at[number]]
            for index in range(at[number] + 1, len(curve)):
                others = MoveCost()
                for other, point in enumerate(at):
                    if other != number:
                        others = others.plus(curves[other][point].cost)
                if not others.plus(curve[index].cost).within(options):
                    continue
                cost = (_part_of_limits(curve[index].cost, options)
                        - _part_of_limits(now.cost, options))
                gain = values[number] * (now.utilization - curve[index].utilization) / max(
                    1e-9, cost)
                if gain > 0.0 and (best is None or gain > best[0]):
                    best = gain, number, index
        if best is None:
            return [curve[index] for curve, index in zip(curves, at)]
        at[best[1]] = best[2]


def _part_of_limits(cost: MoveCost, options: PlanOptions) -> float:
    """The cost as a ratio of the limits, of the one that it uses more of."""
    parts = [0.0]
    if options.max_moves is not None:
        parts.append(cost.moves / max(1, options.max_moves))
    if options.max_bytes is not None:
        parts.append(cost.bytes / max(1, options.max_bytes))
    return max(parts)

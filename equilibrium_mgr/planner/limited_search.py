"""A search for plans that are limited to a number of moves or of bytes.

There the first changes of a whole plan are not the best that so much can do: some of them prepare
later ones. Instead the lowest utilizations that the limit allows are found by bisection, all sets
of OSDs by the same part of their way to their bounds. Moves that are left relieve the fullest OSDs.
"""
from __future__ import annotations

from bisect import bisect_left
from typing import List, Optional, Sequence, Tuple

from ..plan.options import PlanOptions
from ..runtime.time_slice import give_way
from ..snapshot.model import Snapshot
from .bound.lower_bound import UtilizationBounds
from .move_order import Change, apply
from .objective import AIM_SCORE_WEIGHTS, AIM_WEIGHTS
from .score import pool_free_bytes, score_placement
from .search.relief import OverfullOsd, Relief
from .search.search import Search
from .state.constraints import OsdSetState
from .state.placement_state import PlacementState, ShardMove

#: Utilizations tried by bisection.
_HALVINGS = 12

#: Shards and targets examined for one move.
_SHARDS = 12
_TARGETS = 40

#: Bytes that differ by less are equal.
SAME_BYTES = 1 << 20


def limited_placement(snapshot: Snapshot, options: PlanOptions, bounds: UtilizationBounds,
                      beginning: Sequence[Change]) -> Optional[PlacementState]:
    """Returns the placement that a limited search finds, or None where `beginning`, the changes of
    a whole plan up to the limits, lowers the highest utilizations further."""
    placement = PlacementState(snapshot, options)
    search = LimitedSearch(placement, bounds, options)
    free = pool_free_bytes(placement, search.data_groups)
    other = PlacementState(snapshot, options)
    apply(other, beginning)
    other.share_limit_bytes.update(placement.share_limit_bytes)   # a Search sets them
    search.run()
    placement.observers.clear()

    def score(placed: PlacementState) -> Tuple[float, float]:
        highest = sum(
            osd_set.usable_bytes * max(placed.capacity_utilization(i) for i in osd_set.osds)
            for osd_set in search.sets)
        return -round(highest / SAME_BYTES), score_placement(
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
        self._moves = self._bytes = 0   # of what has been made; moves of no bytes are free
        self._best_fit = False   # shards go where they just fit, to keep the emptiest for others
        search = Search(placement, bounds, AIM_WEIGHTS[options.aim][0])
        self.sets: List[OsdSetState] = search.sets
        self.data_groups = search.data_groups
        self.near_free_bytes = search.near_free_bytes()
        self._limits = search.limits
        self._limits.tighten_to_current(0.0)
        self._relief: Relief = search.relief(self._limits)
        self._targets = search.targets
        self._shard_index = search.shard_index

    def run(self) -> None:
        """Makes the limited moves: all sets come nearer to their bounds by the same part, then each
        by what is left."""
        by_value = sorted(self.sets, key=lambda s: -s.usable_bytes * (self._highest(s) - s.bound))
        for some in (by_value, *([osd_set] for osd_set in by_value)):
            self._make(self._lowest(some))
        self._even_out()

    def reach(self, levels: Sequence[float]) -> None:
        """Makes moves until all sets are at their levels (utilizations), as far as possible."""
        for osd_set, level in zip(self.sets, levels):
            self._reach(osd_set, level, [])

    def _make(self, steps: Sequence[ShardMove]) -> None:
        for step in steps:
            self._placement.move(*step)
            size = self._placement.pg_bytes[step[0]]
            self._moves += 1 if size else 0
            self._bytes += size

    # -- utilizations ------------------------------------------------------------------------------

    def _lowest(self, sets: Sequence[OsdSetState]) -> List[ShardMove]:
        """The moves by which the sets come as near to their bounds as the limits allow on top of
        what has been made, none where that is not nearer. The placement is left unchanged."""
        ends = [(self._highest(osd_set), osd_set.bound) for osd_set in sets]
        made = self._moves, self._bytes
        low, high = 0.0, 1.0   # parts of the way from the bound to the present utilization
        best: List[ShardMove] = []
        for number in range(_HALVINGS + 1):
            part = (low + high) / 2.0 if number else 0.0
            steps: List[ShardMove] = []
            is_near = all(
                self._reach(osd_set, min(highest, bound + part * (highest - bound)), steps)
                for osd_set, (highest, bound) in zip(sets, ends))
            self._moves, self._bytes = made
            for pg, source, target in reversed(steps):
                self._placement.move(pg, target, source)
            if not is_near:
                low = part
                continue
            best, high = steps, part
            if not number:
                break
        return best

    def _highest(self, osd_set: OsdSetState) -> float:
        return max(self._placement.capacity_utilization(i) for i in osd_set.osds)

    def _reach(self, osd_set: OsdSetState, utilization: float, steps: List[ShardMove]) -> bool:
        """Makes moves until all OSDs of a set are at a utilization, and adds them to `steps`;
        False, with none of them made, where that is not possible within the limits."""
        placement, made, before = self._placement, (self._moves, self._bytes), len(steps)
        # a ratio of the capacity that an operator's weights leave may be far above any OSD's limit
        real = max(osd_set.max_utilization(placement), osd_set.bound + osd_set.typical_shard)
        for self._best_fit in (False, True):
            self._limits.set_max_utilization(osd_set.osds, min(utilization, real))
            above = sorted((i for i in osd_set.osds if self._excess(i, utilization) > 0.0),
                           key=lambda i: (-placement.capacity_utilization(i), i))
            if all(self._relieve(osd, osd_set, utilization, steps) for osd in above):
                return True
            for pg, source, target in reversed(steps[before:]):
                placement.move(pg, target, source)
            del steps[before:]
            self._moves, self._bytes = made
        return False

    def _relieve(self, osd: int, osd_set: OsdSetState, utilization: float,
                 steps: List[ShardMove]) -> bool:
        """Moves shards off an OSD until it is at the utilization, and adds them to `steps`; False
        where that is not possible within the limits."""
        placement = self._placement
        while self._excess(osd, utilization) > 0.0:
            if not (placement.is_source[osd] and give_way()):
                return False
            found = self._single(osd, self._excess(osd, utilization))
            if not found:   # a joint move, a swap or a chain
                wanted = (placement.used_bytes[osd]
                          - self._excess(osd, utilization)) / placement.size_bytes[osd]
                relief = self._relief.find(osd, OverfullOsd(osd_set.helpers, wanted, 0.0))
                if relief is None:
                    return False
                found = relief.steps
            self._make(found)
            steps += found
            if self._options.limit_passed(self._moves, self._bytes):
                return False
        return True

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

    # -- what is left ------------------------------------------------------------------------------

    def _even_out(self) -> None:
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
                if found and self._excess(osd, wanted) <= 0.0:
                    return
                self._make(found)
                if self._options.limit_passed(self._moves, self._bytes):
                    for pg, source, target in found:
                        placement.move(pg, target, source)
                    return

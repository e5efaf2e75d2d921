"""A search for plans that are limited to a number of moves or of bytes.

The first changes of a whole plan are not the best within such a limit, because some of them prepare
later ones. Instead bisection finds the lowest utilizations that the limit allows: all OSD sets come
nearer to their bounds by the same part. The remaining moves relieve the fullest OSDs.
"""
from __future__ import annotations

from bisect import bisect_left
from math import inf
from typing import List, Optional, Sequence, Tuple

from ..plan.options import PlanOptions
from ..runtime.time_slice import give_way
from ..snapshot.model import Snapshot
from .bound.lower_bound import UtilizationBounds
from .move_order import Change, apply
from .objective import AIM_SCORE_WEIGHTS
from .score import pool_free_bytes, score_placement
from .search.relief import OverfullOsd, Relief
from .search.search import Search, first_search
from .state.constraints import OsdSetState
from .state.placement_state import PlacementState, ShardMove

#: Utilizations tried by bisection.
_HALVINGS = 12

#: Shards and targets examined for one move.
_SHARDS = 12
_TARGETS = 40

#: Bytes that differ by less are equal.
_SAME_BYTES = 1 << 20


def limited_placement(snapshot: Snapshot, options: PlanOptions, bounds: UtilizationBounds,
                      beginning: Sequence[Change]) -> Optional[PlacementState]:
    """Returns the placement that a limited search finds, or None if `beginning` is better: the
    changes of a whole plan up to the limits."""
    placement = PlacementState(snapshot, options)
    search = first_search(placement, bounds, options)
    near = search.near_free_bytes()
    free = pool_free_bytes(placement, search.data_groups)
    other = PlacementState(snapshot, options)
    apply(other, beginning)
    other.share_limit_bytes.update(placement.share_limit_bytes)   # a Search sets them
    LimitedSearch(placement, search, options).run()
    placement.observers.clear()

    def score(placed: PlacementState) -> Tuple[float, float]:
        highest = sum([
            osd_set.usable_bytes * max(map(placed.capacity_utilization, osd_set.osds))
            for osd_set in search.sets])
        return -round(highest / _SAME_BYTES), score_placement(
            placed, search.sets, search.data_groups, free, near, AIM_SCORE_WEIGHTS[options.aim])
    return placement if score(placement) >= score(other) else None


class LimitedSearch:
    """One search over a placement without moves."""

    def __init__(self, placement: PlacementState, search: Search, options: PlanOptions) -> None:
        self._placement = placement
        self._options = options
        self._moves = self._bytes = 0   # made so far; moves of no bytes are free
        self._best_fit = False   # True: a shard goes to the fullest OSD that it fits
        self._search = search
        self._limits = search.limits
        self._limits.tighten_to_current(0.0)
        self._relief: Relief = search.relief(self._limits)

    def run(self) -> None:
        """Makes the limited moves: first all sets come nearer to their bounds by the same part,
        then each set alone as far as the limits still allow."""
        by_value = sorted(self._search.sets,
                          key=lambda s: -s.usable_bytes * (self._highest(s) - s.bound))
        self._make(self._lowest(by_value))
        for osd_set in by_value:
            self._make(self._lowest([osd_set]))
        self._even_out()

    def reach(self, levels: Sequence[float]) -> None:
        """Makes moves until all sets are at their levels (utilizations), as far as possible."""
        for osd_set, level in zip(self._search.sets, levels):
            self._reach(osd_set, level, [])

    def _make(self, steps: Sequence[ShardMove]) -> None:
        """Makes the moves and counts them."""
        for step in steps:
            self._placement.move(*step)
        self._count(steps, 1)

    def _revert(self, steps: Sequence[ShardMove]) -> None:
        """Reverts the moves, the last one first."""
        for pg, source, target in reversed(steps):
            self._placement.move(pg, target, source)
        self._count(steps, -1)

    def _count(self, steps: Sequence[ShardMove], sign: int) -> None:
        """Counts moves that are made (sign 1) or reverted (-1)."""
        sizes = [self._placement.pg_bytes[pg] for pg, _, _ in steps]
        self._moves += sign * sum(map(bool, sizes))
        self._bytes += sign * sum(sizes)

    # -- utilizations ------------------------------------------------------------------------------

    def _lowest(self, sets: Sequence[OsdSetState]) -> List[ShardMove]:
        """Returns the moves that bring the sets closest to their bounds within the remaining
        limits; empty if none does. The placement stays as it is."""
        ends = [(self._highest(osd_set), osd_set.bound) for osd_set in sets]
        low, high = 0.0, 1.0   # parts of the way from the bound to the present utilization
        best: List[ShardMove] = []
        for number in range(_HALVINGS + 1):
            part = (low + high) / 2.0 if number else 0.0
            levels = [min(highest, bound + part * (highest - bound)) for highest, bound in ends]
            steps: List[ShardMove] = []
            is_near = all(self._reach(osd_set, level, steps)
                          for osd_set, level in zip(sets, levels))
            self._revert(steps)
            if not is_near:
                low = part
                continue
            best = steps
            high = part
            if not number:
                break
        return best

    def _highest(self, osd_set: OsdSetState) -> float:
        """Returns the highest utilization of capacity in a set."""
        return max(map(self._placement.capacity_utilization, osd_set.osds))

    def _reach(self, osd_set: OsdSetState, utilization: float, steps: List[ShardMove]) -> bool:
        """Makes moves until no OSD of a set is above a utilization, and adds them to `steps`.
        If that is not possible within the limits, reverts them and returns False."""
        placement = self._placement
        before = len(steps)
        # lowered weights leave little capacity: its ratio may be far above the limit of any OSD
        real = max(osd_set.max_utilization(placement), osd_set.bound + osd_set.typical_shard)
        for self._best_fit in (False, True):
            self._limits.set_max_utilization(osd_set.osds, min(utilization, real))
            above = [i for i in self._fullest_first(osd_set) if self._excess(i, utilization) > 0.0]
            if all(self._relieve(osd, osd_set, utilization, steps) for osd in above):
                return True
            self._revert(steps[before:])
            del steps[before:]
        return False

    def _fullest_first(self, osd_set: OsdSetState) -> List[int]:
        """Returns the OSDs of a set, the fullest first."""
        placement = self._placement
        return sorted(osd_set.osds, key=lambda i: (-placement.capacity_utilization(i), i))

    def _relieve(self, osd: int, osd_set: OsdSetState, utilization: float,
                 steps: List[ShardMove]) -> bool:
        """Moves shards off an OSD until it is at the utilization, and adds the moves to `steps`.
        Returns False if no move is left, or the moves pass the limits."""
        placement = self._placement
        while True:
            excess = self._excess(osd, utilization)
            if excess <= 0.0:
                return True
            if not (placement.is_source[osd] and give_way()):
                return False
            found = self._single(osd, excess)
            if not found:   # a joint move, a swap or a chain
                wanted = (placement.used_bytes[osd] - excess) / placement.size_bytes[osd]
                relief = self._relief.find(osd, OverfullOsd(osd_set.helpers, wanted, 0.0))
                if relief is None:
                    return False
                found = relief.steps
            self._make(found)
            steps += found
            if self._options.limit_passed(self._moves, self._bytes):
                return False

    def _excess(self, osd: int, utilization: float) -> float:
        """Returns the bytes above a utilization of the capacity; for an OSD with a lowered weight,
        at most the bytes above its share."""
        placement = self._placement
        most = max(utilization * placement.capacity_bytes[osd] + placement.spared_bytes[osd],
                   placement.share_limit_bytes.get(osd, 0))
        return placement.used_bytes[osd] - most - 1.0

    def _single(self, osd: int, need: float) -> Tuple[ShardMove, ...]:
        """Returns a move of the smallest shard of `need` bytes or more that can move, else of the
        largest smaller one. Tries only shards near that size; () if none can move."""
        shards = self._search.shard_index.by_size(osd)
        enough = bisect_left(shards, (need, -1, -1))
        larger = shards[enough:enough + _SHARDS]
        smaller = shards[max(0, enough - _SHARDS):enough]
        for size, pg, group in larger + smaller[::-1]:
            if not size:
                continue
            target = self._target(osd, size, pg, group)
            if target is not None:
                return ((pg, osd, target),)
        return ()

    def _target(self, osd: int, size: int, pg: int, group: int) -> Optional[int]:
        """Returns the OSD that the shard goes to, or None: of some that may take it the best one,
        or for best fit the fullest."""
        placement = self._placement
        limits = self._limits
        best: Optional[int] = None
        fullest = -inf
        for _, target in self._search.targets.candidates(group, osd)[:_TARGETS]:
            if target == osd or not limits.fits(target, size, group, -1):
                continue
            if not placement.is_legal(pg, osd, target):
                continue
            if not self._best_fit:
                return target
            utilization = placement.capacity_utilization(target)
            if utilization > fullest:
                best = target
                fullest = utilization
        return best

    # -- the remaining moves -----------------------------------------------------------------------

    def _even_out(self) -> None:
        """Uses the remaining moves: from the fullest OSDs to OSDs that stay emptier than these."""
        for osd_set in sorted(self._search.sets, key=lambda s: -s.usable_bytes):
            for osd in self._fullest_first(osd_set):
                wanted = (self._placement.capacity_utilization(osd)
                          - osd_set.typical_shard / 4.0)
                if wanted <= osd_set.bound or not give_way():
                    break
                if not self._lower(osd, osd_set, wanted):
                    return

    def _lower(self, osd: int, osd_set: OsdSetState, wanted: float) -> bool:
        """Makes a move that lowers an OSD towards the wanted utilization, if there is one. Returns
        False if no further move is of use: the limits are reached, or the OSD was that low
        already."""
        placement = self._placement
        self._limits.set_max_utilization(
            osd_set.osds, min(wanted, osd_set.max_utilization(placement)))
        if not placement.is_source[osd]:
            return True
        excess = self._excess(osd, wanted)
        found = self._single(osd, excess)
        if found and excess <= 0.0:
            return False
        self._make(found)
        if self._options.limit_passed(self._moves, self._bytes):
            self._revert(found)
            return False
        return True

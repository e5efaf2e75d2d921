"""The best that any legal placement of a part can reach: highest utilization, and free space.

A placement in which an OSD is above full_ratio is none.
"""
from __future__ import annotations

import heapq
from bisect import bisect_left
from typing import Callable, List, NamedTuple, Optional, Sequence, Tuple

from tests.optimum.problem import Part
from tests.optimum.reachable import Limits, Reachable

#: Boxes of free space that are examined before an optimum is called unproven.
MAX_BOXES = 3000

#: Sums of free space that differ by a smaller ratio are equal.
_SAME = 1e-9


class Space(NamedTuple):
    """The greatest sum of the pools' free space, how it is divided, and whether it is proven."""

    total: float
    free_bytes: Tuple[float, ...]
    proven: bool


class Optima:
    """Optimal values of a part, by bisection over the values that single OSDs can have."""

    def __init__(self, part: Part) -> None:
        self.part = part
        self.reachable = Reachable(part)
        self._values: List[List[float]] = []
        for measure in range(len(part.pools) + 1):
            self._values.append(sorted({
                value for one in set(self.reachable.measures.values())
                for value in one.values[measure] if value != float("-inf")}))
        self.no_space = tuple(0.0 for _ in part.pools)

    def least_max(self, free_bytes: Sequence[float] = ()) -> float:
        """The least highest utilization; with at least so much space free for each pool."""
        free = tuple(free_bytes) or self.no_space
        found = self._least(0, lambda value: Limits(value, free))
        assert found is not None
        return found

    def most_free(self, number: int, limits: Limits) -> Optional[float]:
        """The most free space of one pool within the limits; None where nothing is possible."""
        def limited(value: float) -> Limits:
            free = list(limits.free_bytes)
            free[number] = max(free[number], -value)
            return limits._replace(free_bytes=tuple(free))
        found = self._least(number + 1, limited)
        return None if found is None else -found

    def most_free_of_each(self) -> Tuple[float, ...]:
        """The most free space of each pool, whatever the others have."""
        everything = Limits(self.part.full_ratio, self.no_space)
        return tuple(self.most_free(number, everything) or 0.0
                     for number in range(len(self.part.pools)))

    def most_space(self, max_utilization: float = 1.0) -> Space:
        """The greatest sum of the pools' free space with no OSD above a utilization."""
        if not self.part.pools:
            return Space(0.0, (), True)
        return _SpaceSearch(self, min(max_utilization, self.part.full_ratio)).run()

    def next_above(self, number: int, free: float) -> float:
        """The next greater free space that an OSD can leave a pool."""
        values = self._values[number + 1]
        at = bisect_left(values, -free)
        return -values[at - 1] if at else float("inf")

    def _least(self, measure: int, limited: Callable[[float], Limits]) -> Optional[float]:
        """The least value of a measure that the limits made of it allow."""
        values = self._values[measure]
        low, high = 0, len(values)
        while low < high:
            middle = (low + high) // 2
            if self.reachable.is_possible(limited(values[middle])):
                high = middle
            else:
                low = middle + 1
        return values[low] if low < len(values) else None


class _Box(NamedTuple):
    """The placements that leave each pool at least, and at most, so many bytes."""

    least: Tuple[float, ...]
    most: Tuple[float, ...]


class _SpaceSearch:
    """Branch and bound over boxes of free space, the most promising first.

    What each pool can have within a box bounds the sum from above. A placement in which no pool can
    gain divides the rest of the box: better ones have more space for the first pool, or no more for
    the first and more for the second, ...
    """

    def __init__(self, optima: Optima, max_utilization: float) -> None:
        self._optima = optima
        self._max_utilization = max_utilization
        self._best = Space(-1.0, optima.no_space, True)
        self._boxes: List[Tuple[float, _Box]] = []   # (-bound, box)

    def run(self) -> Space:
        self._add(_Box(self._optima.no_space, tuple(float("inf") for _ in self._optima.no_space)))
        examined = 0
        while self._boxes and -self._boxes[0][0] > self._best.total * (1 + _SAME):
            examined += 1
            if examined > MAX_BOXES:
                return self._best._replace(proven=False)
            self._examine(heapq.heappop(self._boxes)[1])
        return self._best

    def _examine(self, box: _Box) -> None:
        reached = self._reached(box.least)
        if sum(reached) > self._best.total:
            self._best = Space(sum(reached), reached, True)
        most = box.most
        for number, free in enumerate(reached):
            above = self._optima.next_above(number, free)
            if above <= most[number]:
                self._add(_Box(_replaced(box.least, number, above), most))
            most = _replaced(most, number, min(most[number], free))

    def _reached(self, least: Tuple[float, ...]) -> Tuple[float, ...]:
        """A placement with at least this, in which no pool can gain."""
        for number in range(len(least)):
            free = self._most(number, least)
            assert free is not None
            least = _replaced(least, number, free)
        return least

    def _add(self, box: _Box) -> None:
        """Adds a box after raising its lower limits to what a better sum needs."""
        least = box.least
        while not any(free == float("inf") for free in least):
            tops: List[float] = []
            for number, most in enumerate(box.most):
                free = self._most(number, least)
                if free is None:
                    return
                tops.append(min(most, free))
            bound = sum(tops)
            if bound <= self._best.total * (1 + _SAME):
                return
            raised = tuple(max(free, self._best.total - (bound - top))
                           for free, top in zip(least, tops))
            if raised == least or len(least) == 1:
                heapq.heappush(self._boxes, (-bound, _Box(least, box.most)))
                return
            least = raised

    def _most(self, number: int, least: Tuple[float, ...]) -> Optional[float]:
        return self._optima.most_free(number, Limits(self._max_utilization, least))


def _replaced(values: Tuple[float, ...], number: int, value: float) -> Tuple[float, ...]:
    return values[:number] + (value,) + values[number + 1:]

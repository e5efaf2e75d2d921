"""The distance of many plans from the optima as a table."""
from __future__ import annotations

from typing import Callable, List, NamedTuple, Sequence, Tuple

from tests.optimum.comparison import ROUNDING, PartResult
from tests.support.units import GIB


class Distance(NamedTuple):
    """One axis over many results; the distances ascend, and the last is the worst."""

    name: str
    unit: str
    values: List[float]

    @property
    def mean(self) -> float:
        return sum(self.values) / len(self.values)

    def at(self, share: float) -> float:
        """The distance that this ratio of all results does not pass."""
        return self.values[min(len(self.values) - 1, int(share * len(self.values)))]

    @property
    def none(self) -> int:
        """How many are at the optimum."""
        return sum(1 for value in self.values if value <= 100.0 * ROUNDING)


_AXES: Tuple[Tuple[str, str, Callable[[PartResult], float]], ...] = (
    ("maximum above the least", "points", lambda r: r.points),
    ("space short of the greatest", "%", lambda r: 100.0 * (1.0 - r.space_ratio)))


def distances(results: Sequence[PartResult]) -> List[Distance]:
    """Of the results whose optima are proven."""
    return [Distance(name, unit, sorted(of(one) for one in results if one.proven))
            for name, unit, of in _AXES]


def table(results: Sequence[PartResult]) -> List[str]:
    """Lines for one aim."""
    lines = [f"{'':32}{'':15}{'mean':>8}{'median':>8}{'95 %':>8}{'worst':>8}{'optimal':>9}"]
    lines += [_row(one) for one in distances(results)] + bound_lines(results)
    unproven = sum(1 for one in results if not one.proven)
    return lines + ([f"{unproven} optima are not proven and not counted"] if unproven else [])


def bound_lines(results: Sequence[PartResult]) -> List[str]:
    """How far the planner's bounds are from what can be reached."""
    proven = [one for one in results if one.proven]
    below = sorted(100.0 * (one.best_max - one.bound) for one in proven)
    above = sorted(100.0 * (bound / best - 1.0) for one in proven
                   for bound, best in zip(one.space_bounds, one.best_free) if best)
    return [_row(Distance("bound below the least maximum", "points", below)),
            _row(Distance("bound above a pool's most space", "%", above))]


def _row(one: Distance) -> str:
    return (f"{one.name:32}{one.unit:15}{one.mean:8.3f}{one.at(0.5):8.3f}{one.at(0.95):8.3f}"
            f"{one.at(1.0):8.3f}{one.none:5} / {len(one.values)}")


def worst(results: Sequence[PartResult], count: int) -> List[str]:
    """The seeds that are farthest from the optima, by each axis."""
    by_max = sorted(results, key=lambda r: -r.points)[:count]
    by_space = sorted(results, key=lambda r: r.space_ratio)[:count]
    return (["farthest above the least maximum:"] * bool(by_max) + [_line(one) for one in by_max]
            + ["farthest below the greatest space:"] * bool(by_space)
            + [_line(one) for one in by_space])


def _line(one: PartResult) -> str:
    return (f"  seed {one.seed:4} {one.kind:28} maximum {one.planned.max_utilization:.4f} least"
            f" {one.best_max:.4f}, space {one.planned.space / GIB:.1f} GiB greatest"
            f" {one.best_space / GIB:.1f}")

"""Trends: what grows, what does not, and what stands out of a line."""
from __future__ import annotations

import random
from typing import Callable, List, Tuple

import pytest
from tests.support.units import GIB

from equilibrium_mgr.growth.trend import (
    GROWING, LEAST_POINTS, SHRINKING, STEADY, UNKNOWN, trend_of)

HOUR = 3600.0
DAY = 24 * HOUR


def points(count: int, every: float, value: Callable[[float], float]) -> List[Tuple[float, float]]:
    """`value` of the days since the first point."""
    return [(1e9 + number * every, value(number * every / DAY)) for number in range(count)]


def test_a_line() -> None:
    found = trend_of(points(20, 4 * HOUR, lambda days: 100 * GIB + 5 * GIB * days))
    assert found.state == GROWING and found.bytes_per_day == pytest.approx(5 * GIB)
    found = trend_of(points(20, 4 * HOUR, lambda days: 100 * GIB - 5 * GIB * days))
    assert found.state == SHRINKING and found.rate == pytest.approx(-5 * GIB)


@pytest.mark.parametrize("count, every", [
    (LEAST_POINTS - 1, DAY), (LEAST_POINTS, 4 * HOUR), (0, DAY), (1, DAY)])
def test_too_little_history(count: int, every: float) -> None:
    found = trend_of(points(count, every, lambda days: days * GIB))
    assert (found.state, found.bytes_per_day, found.rate) == (UNKNOWN, None, 0.0)


def test_what_stays_or_trembles_is_steady() -> None:
    rng = random.Random(1)
    assert trend_of(points(40, 4 * HOUR, lambda days: 100 * GIB)) == (STEADY, 0.0)
    assert trend_of(points(40, 4 * HOUR, lambda days: 0.0)).state == STEADY
    noisy = points(40, 4 * HOUR, lambda days: 100 * GIB + rng.uniform(-2, 2) * GIB)
    assert trend_of(noisy).state == STEADY


def test_a_load_that_is_deleted_again_changes_little() -> None:
    def value(days: float) -> float:
        return 100 * GIB + 5 * GIB * days + (400 * GIB if 3 <= days < 4.5 else 0)
    found = trend_of(points(60, 4 * HOUR, value))   # ten days
    assert found.bytes_per_day == pytest.approx(5 * GIB, rel=0.1)


def test_many_points_are_thinned_and_the_slope_stays() -> None:
    found = trend_of(points(1000, HOUR, lambda days: 7 * GIB * days))
    assert found.bytes_per_day == pytest.approx(7 * GIB)

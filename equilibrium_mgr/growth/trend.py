"""The trend of bytes over time: the median of the slopes between all pairs of points (Theil-Sen).

Nearly a third of the points may be far off, as while data is loaded and deleted again, before it
changes much.
"""
from __future__ import annotations

from statistics import median
from typing import List, NamedTuple, Optional, Sequence, Tuple

GROWING, SHRINKING, STEADY, UNKNOWN = "growing", "shrinking", "steady", "unknown"

#: Without so many points over so many seconds nothing is said.
LEAST_POINTS = 6
LEAST_SECONDS = 86_400.0
#: A change over the whole time below this ratio of the level, or below this multiple of how far
#: points lie from the line, is none.
_LEAST_CHANGE, _LEAST_NOISE = 0.002, 2.0
#: Of more points, so many are taken, evenly: slopes of all pairs are computed.
_MOST_POINTS = 48
_DAY = 86_400.0

Points = Sequence[Tuple[float, float]]   # (seconds since the epoch, bytes), in order


class Trend(NamedTuple):
    """How bytes grow."""

    state: str                       # GROWING, SHRINKING, STEADY, UNKNOWN
    bytes_per_day: Optional[float]   # 0 where steady; None where unknown

    @property
    def rate(self) -> float:
        """Bytes a day, 0 where unknown."""
        return self.bytes_per_day or 0.0


def trend_of(points: Points) -> Trend:
    """The trend of some points."""
    if len(points) < LEAST_POINTS or points[-1][0] - points[0][0] < LEAST_SECONDS:
        return Trend(UNKNOWN, None)
    chosen = _evenly(points)
    slope = median([(b - a) / (later - at) for number, (at, a) in enumerate(chosen)
                    for later, b in chosen[number + 1:] if later > at] or [0.0])
    level = median([value - slope * at for at, value in chosen])
    noise = median([abs(value - slope * at - level) for at, value in chosen])
    change = abs(slope) * (chosen[-1][0] - chosen[0][0])
    if change <= max(_LEAST_CHANGE * max(value for _, value in chosen), _LEAST_NOISE * noise):
        return Trend(STEADY, 0.0)
    return Trend(GROWING if slope > 0.0 else SHRINKING, slope * _DAY)


def _evenly(points: Points) -> List[Tuple[float, float]]:
    """At most _MOST_POINTS of them, the first and the last among them."""
    if len(points) <= _MOST_POINTS:
        return list(points)
    step = (len(points) - 1) / (_MOST_POINTS - 1)
    return [points[round(number * step)] for number in range(_MOST_POINTS)]

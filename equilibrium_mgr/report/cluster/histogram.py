"""OSDs of a class by utilization, now and later side by side, as text and as JSON."""
from __future__ import annotations

import math
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

#: Points of utilization that a line stands for: the least that keeps to so many lines.
_STEPS = (1, 2, 4, 5, 10, 20, 50, 100)
_MOST_LINES = 10
_BAR = 22


class Histogram(NamedTuple):
    """One class. `later` is empty where nothing is to be compared with now."""

    now: Sequence[float]      # utilization of each OSD, a ratio
    later: Sequence[float]
    bound: Optional[float]


def histogram_json(histogram: Histogram) -> List[Dict[str, Any]]:
    """From the fullest down: ratios from which to which, and how many OSDs; `later_osds` is None
    where nothing is compared."""
    step, bins = _bins(histogram)
    now, later = _counts(histogram.now, step), _counts(histogram.later, step)
    return [{"from_ratio": step * index / 100.0, "to_ratio": step * (index + 1) / 100.0,
             "osds": now.get(index, 0),
             "later_osds": later.get(index, 0) if histogram.later else None} for index in bins]


def histogram_lines(histogram: Histogram, when: str) -> List[str]:
    """A line for each step of utilization, the fullest first. `when`: the head of `later`."""
    step, bins = _bins(histogram)
    now, later = _counts(histogram.now, step), _counts(histogram.later, step)
    most = max([1, *now.values(), *later.values()])
    right = f"  OSDS  {when[:_BAR]}" if histogram.later else ""
    lines = [f"  %USE  OSDS  {'now'.ljust(_BAR)}{right}".rstrip()]
    marked = None if histogram.bound is None else _index(histogram.bound, step)
    for index in bins:
        text = f"{step * index:6}  {_side(now.get(index, 0), most)}"
        if histogram.later:
            text += f"  {_side(later.get(index, 0), most)}"
        lines.append((text + ("  < bound" if index == marked else "")).rstrip())
    return lines


def _side(count: int, most: int) -> str:
    bar = "#" * max(1, round(_BAR * count / most)) if count else "."
    return f"{count or '':>4}  {bar.ljust(_BAR)}"


def _bins(histogram: Histogram) -> Tuple[int, List[int]]:
    """(points of a step, the steps from the highest to the lowest)."""
    known = [*histogram.now, *histogram.later]
    if not known:
        return _STEPS[0], []
    highest = max([*known, *([histogram.bound] if histogram.bound is not None else [])])
    lowest = min([*known, *([histogram.bound] if histogram.bound is not None else [])])
    step = next((step for step in _STEPS if _index(highest, step) - _index(lowest, step)
                 < _MOST_LINES), _STEPS[-1])
    return step, list(range(_index(highest, step), _index(lowest, step) - 1, -1))


def _counts(values: Sequence[float], step: int) -> Dict[int, int]:
    counts: Dict[int, int] = {}
    for value in values:
        index = _index(value, step)
        counts[index] = counts.get(index, 0) + 1
    return counts


def _index(value: float, step: int) -> int:
    return math.floor(100.0 * max(0.0, value) / step)

"""All OSDs or hosts of a device class, sorted by fill: a bar for now and a mark for later."""
from __future__ import annotations

from typing import List, Sequence, Tuple

from .axis import FONT, Axis, Drawing, Level, label, line
from ..facts.fill import Fill
from ..markup import Html, joined, shape
from .strip import LATER_COLOR, NOW_COLOR, WIDTH

_LEFT, _RIGHT = 38.0, 4.0
_HEIGHT = 150.0
_WIDEST_BAR = 24.0


def fill_profile(title: str, fills: Sequence[Fill], later_label: str,
                 levels: Sequence[Level]) -> Drawing:
    """Bars from zero, the fullest first; of a host its fullest OSD. `later_label`: empty where
    nothing is known of later."""
    ratios = [fill.max_now for fill in fills]
    high = 100.0 * max([1.0] + ratios)
    axis = Axis(0.0, min(high, 105.0), 0.0, _HEIGHT)
    top = FONT + 16.0
    base = top + _HEIGHT
    parts: List[Html] = [_scale(axis, base), _bars(fills, axis, base)]
    for number, level in enumerate(sorted(levels, key=lambda level: level.ratio)):
        y = base - axis.at(100.0 * level.ratio)
        x = _LEFT + 26.0 + number * (WIDTH - _LEFT) / 3.0
        parts += [line(_LEFT, y, WIDTH - _RIGHT, y, level.dashes),
                  line(x - 24.0, FONT - 4.0, x - 4.0, FONT - 4.0, level.dashes, 1.5),
                  label(level.text(), x, FONT)]
    parts.append(_marks(fills, axis, base))
    lowest = f"{100.0 * min(ratios):.1f}% to {100.0 * max(ratios):.1f}% now" if ratios else "none"
    later = [fill.max_later for fill in fills if fill.max_later is not None]
    if later:
        lowest += f", {100.0 * min(later):.1f}% to {100.0 * max(later):.1f}% {later_label}"
    return Drawing(WIDTH, base + 6.0, f"{title}, sorted by fill: {lowest}", parts)


def _scale(axis: Axis, base: float) -> Html:
    return joined([part for percent in (0.0, 25.0, 50.0, 75.0, 100.0) for part in (
        label(f"{percent:g}%", _LEFT - 5.0, base - axis.at(percent) + 4.0, "end"),
        line(_LEFT - 3.0, base - axis.at(percent), WIDTH - _RIGHT, base - axis.at(percent),
             width=0.3))])


def _bars(fills: Sequence[Fill], axis: Axis, base: float) -> Html:
    """Bars as one path: a rectangle for each would be ten times as long."""
    width, gap = _widths(fills)
    bars = [f"M{_LEFT + number * width:.1f} {base:.0f}v{-axis.at(100.0 * fill.max_now):.1f}"
            f"h{width - gap:.2f}V{base:.0f}z" for number, fill in enumerate(fills)]
    return shape("path", d="".join(bars), fill=NOW_COLOR)


def _marks(fills: Sequence[Fill], axis: Axis, base: float) -> Html:
    """A mark across each bar for later."""
    width, gap = _widths(fills)
    marks = [f"M{_LEFT + number * width:.1f} {base - axis.at(100.0 * fill.max_later):.1f}"
             f"h{max(width - gap, 1.0):.2f}"
             for number, fill in enumerate(fills) if fill.max_later is not None]
    return shape("path", d="".join(marks), stroke=LATER_COLOR, stroke_width=3, fill="none")


def _widths(fills: Sequence[Fill]) -> Tuple[float, float]:
    """(width of a bar with the gap after it, the gap)."""
    width = min((WIDTH - _LEFT - _RIGHT) / max(1, len(fills)), _WIDEST_BAR)
    return width, 0.15 * width if width > 4.0 else 0.0

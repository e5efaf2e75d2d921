"""The utilization of a device class as a strip: a row of marks, one per OSD, before and after."""
from __future__ import annotations

from typing import Dict, List, Mapping, NamedTuple, Sequence, Tuple

from .axis import FONT, Axis, Drawing, Level, axis_over, label, line, placed_labels
from ..markup import Html, joined, shape

#: Colors that differ for the color-blind, and in brightness in print.
NOW_COLOR, LATER_COLOR = "#e08214", "#08519c"
WIDTH = 520.0
_SIDE = 16.0
_BAND = 64.0          # most height of the marks of a row
_BIN_POINTS = (0.1, 0.2, 0.5, 1.0, 2.0)
_MOST_BINS = 70
_SMALLEST_MARK = 3.0  # in units of the drawing; columns of smaller ones are drawn as bars
_LINE_HEIGHT = FONT + 4


class Row(NamedTuple):
    """One moment's utilizations of all OSDs, as ratios."""

    label: str
    color: str
    ratios: Sequence[float]

    def title(self) -> str:
        """The label with the range of the values."""
        if not self.ratios:
            return f"{self.label}: no OSD"
        low, high = 100.0 * min(self.ratios), 100.0 * max(self.ratios)
        return f"{self.label}: {low:.1f}% to {high:.1f}%"


def utilization_strip(title: str, rows: Sequence[Row], levels: Sequence[Level]) -> Drawing:
    """The rows below each other over one axis, the levels as lines through all of them.

    The highest column of each row fills its band, so heights compare within a row.
    """
    axis = axis_over([ratio for row in rows for ratio in row.ratios], levels, _SIDE,
                     WIDTH - 2 * _SIDE)
    shown = sorted(levels, key=lambda level: level.ratio)
    places = placed_labels([(axis.at(100.0 * level.ratio), level.text()) for level in shown],
                           0.0, WIDTH)
    top = _LINE_HEIGHT * (1 + max((place.row for place in places), default=-1)) + 4.0
    parts: List[Html] = []
    titles: List[Html] = []   # drawn last, over the lines
    y = top
    for row in rows:
        titles.append(label(row.title(), _SIDE, y + FONT, weight="bold"))
        counts, column = _columns(row, axis)
        unit = min(column, _BAND / max(counts.values(), default=1))
        y += _LINE_HEIGHT + 4 + max(12.0, unit * max(counts.values(), default=0))
        parts += [_marks(row.color, counts, axis.start, column, unit, y),
                  line(_SIDE, y, WIDTH - _SIDE, y)]
        y += 6.0
    for level, place in zip(shown, places):
        under = _LINE_HEIGHT * (place.row + 1)
        parts.append(line(place.place, under, place.place, y - 6.0, level.dashes, 1.5))
    parts += [label(level.text(), place.begin + 4.0, _LINE_HEIGHT * (place.row + 1) - 4.0)
              for level, place in zip(shown, places)]
    parts += titles + [_tick(axis, percent, y) for percent in axis.ticks()]
    description = "; ".join([f"{title}: {rows[0].title()}" if rows else title]
                            + [row.title() for row in rows[1:]]
                            + [level.text() for level in shown])
    return Drawing(WIDTH, y + FONT + 6.0, description, parts)


def _columns(row: Row, axis: Axis) -> Tuple[Dict[int, int], float]:
    """(number of a column from the left → OSDs in it, width of a column)."""
    points = next((width for width in _BIN_POINTS
                   if (axis.high - axis.low) / width <= _MOST_BINS), _BIN_POINTS[-1])
    counts: Dict[int, int] = {}
    for ratio in row.ratios:
        number = int((min(max(100.0 * ratio, axis.low), axis.high) - axis.low) / points + 1e-9)
        counts[number] = counts.get(number, 0) + 1
    return counts, points / (axis.high - axis.low) * axis.length


def _marks(color: str, counts: Mapping[int, int], left: float, column: float, unit: float,
           base: float) -> Html:
    """Columns that stand on `base`: a mark of height `unit` for each OSD, or a bar where those
    would be too small to be told apart."""
    single = unit >= _SMALLEST_MARK
    shapes: List[Html] = []
    for number, count in sorted(counts.items()):
        x, width = left + number * column + 0.4, column - 0.8
        height = unit - 0.8 if single else max(1.5, unit * count)
        shapes += [shape("rect", x=f"{x:.1f}", y=f"{base - unit * step - height:.1f}",
                         width=f"{width:.1f}", height=f"{height:.1f}", fill=color)
                   for step in range(count if single else 1)]
    return joined(shapes)


def _tick(axis: Axis, percent: float, y: float) -> Html:
    x = axis.at(percent)
    return joined([line(x, y - 6.0, x, y - 2.0),
                   label(f"{percent:g}%", x, y + FONT - 1.0, "middle")])

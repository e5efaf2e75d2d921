"""Axes of drawings in per cent, and the lines across them with labels that do not overlap."""
from __future__ import annotations

import math
from typing import List, NamedTuple, Sequence, Tuple

from ..markup import Html, element, shape

FONT = 12
#: Width of a character of the labels, on average, in units of the drawing.
_CHARACTER = 6.4
_INK = "#1a1a1a"
_STEPS = (0.5, 1, 2, 5, 10, 20, 25, 50, 100)


class Level(NamedTuple):
    """A utilization that is marked in a drawing."""

    label: str        # such as "bound"
    ratio: float
    dashes: str       # as SVG has them; empty for a solid line

    def text(self) -> str:
        """The label with the value."""
        return f"{self.label} {100.0 * self.ratio:.1f}%"


class Axis(NamedTuple):
    """Per cent from `low` to `high` over a length that begins at `start`."""

    low: float
    high: float
    start: float
    length: float

    def at(self, percent: float) -> float:
        """The place of a value; those outside stand at the ends."""
        inside = min(max(percent, self.low), self.high)
        return self.start + (inside - self.low) / (self.high - self.low) * self.length

    def ticks(self) -> List[float]:
        """Round values to be written at the axis, at most nine."""
        step = next((s for s in _STEPS if (self.high - self.low) / s <= 8), 100)
        first = math.ceil(self.low / step)
        return [number * step for number in range(first, int(self.high / step) + 1)]


def axis_over(ratios: Sequence[float], levels: Sequence[Level], start: float,
              length: float) -> Axis:
    """An axis of at least ten points that shows all values up to 105 %, and the levels."""
    values = [100.0 * ratio for ratio in ratios] + [100.0 * level.ratio for level in levels]
    low = 5.0 * math.floor((min(values, default=0.0) - 1.0) / 5.0)
    high = 5.0 * math.ceil((max(values, default=100.0) + 1.0) / 5.0)
    high = min(max(high, 10.0), 105.0)
    return Axis(max(0.0, min(low, high - 10.0)), high, start, length)


def label(text: str, x: float, y: float, anchor: str = "start", weight: str = "") -> Html:
    """Text in a drawing, readable where it is over a line."""
    return element("text", text, x=f"{x:.1f}", y=f"{y:.1f}", font_size=FONT, fill=_INK,
                   stroke="#ffffff", stroke_width=3, paint_order="stroke",
                   text_anchor=None if anchor == "start" else anchor, font_weight=weight or None)


def line(x1: float, y1: float, x2: float, y2: float, dashes: str = "", width: float = 1.0,
         color: str = _INK) -> Html:
    """A straight line."""
    return shape("line", x1=f"{x1:.1f}", y1=f"{y1:.1f}", x2=f"{x2:.1f}", y2=f"{y2:.1f}",
                 stroke=color, stroke_width=width, stroke_dasharray=dashes or None)


class PlacedLabel(NamedTuple):
    """A label above a line that goes down from it."""

    begin: float
    end: float
    place: float   # of the line
    row: int       # from the top

    def meets(self, other: PlacedLabel) -> bool:
        """True where one is over the other, or over the other's line."""
        upper, lower = sorted((self, other), key=lambda label: label.row)
        if upper.row == lower.row:
            return upper.begin < lower.end and lower.begin < upper.end
        return lower.begin <= upper.place <= lower.end


def placed_labels(wanted: Sequence[Tuple[float, str]], left: float,
                  right: float) -> List[PlacedLabel]:
    """Labels centered on their places or left of them, in as few rows as keep them apart.
    `wanted`: (place, text)."""
    placed: List[PlacedLabel] = []
    for place, text in sorted(wanted, reverse=True):
        width = _CHARACTER * len(text) + 8.0
        ends = [max(left + width, min(place + overhang, right)) for overhang in (width / 2, 4.0)]
        tries = [PlacedLabel(end - width, end, place, row)
                 for row in range(len(wanted)) for end in ends]
        placed.append(next((one for one in tries if not any(map(one.meets, placed))), tries[-1]))
    return placed[::-1]


class Drawing(NamedTuple):
    """Shapes on a ground, with a description for those who cannot see them."""

    width: float
    height: float
    description: str
    shapes: List[Html]

    def svg(self, standalone: bool = False) -> Html:
        """The SVG; `standalone`: for a file of its own, with a white ground."""
        ground = (shape("rect", width=f"{self.width:g}", height=f"{self.height:.0f}",
                        fill="#ffffff"),)
        return element(
            "svg", *(ground if standalone else ()), *self.shapes,
            xmlns="http://www.w3.org/2000/svg" if standalone else None,
            viewBox=f"0 0 {self.width:g} {self.height:.0f}", role="img",
            aria_label=self.description,
            font_family="system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif")

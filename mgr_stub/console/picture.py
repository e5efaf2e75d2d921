"""`sim picture`: the OSDs' utilization and the misplaced copies since the start, as SVG.

One thin line an OSD, in the color of its device class; dashed lines for the bound of each class, by
the module's present answer, and for nearfull. Below it the misplaced ratio and its limit.
"""

from __future__ import annotations

import json
import math
from html import escape
from typing import Any, Dict, List, Sequence, Tuple

from ..host.module_host import ModuleHost
from ..mgr.handlers import find_handler

#: Of device classes in light and in dark: they differ for the color-blind, and in brightness in
#: print.
_COLORS = (("#08519c", "#7ab8f5"), ("#e08214", "#fdae61"), ("#1b7837", "#7fd98c"),
           ("#762a83", "#c9a0dc"))
_STROKES = "".join(f".c{n}{{stroke:{light}}}" for n, (light, _) in enumerate(_COLORS))
_DARK_STROKES = "".join(f".c{n}{{stroke:{dark}}}" for n, (_, dark) in enumerate(_COLORS))
_STYLE = "".join((
    "text{fill:#1a1a1a}.b{fill:#fff}.a{fill:none;stroke:#999}.g{stroke:#e2e2e2}"
    ".m{stroke:#1a1a1a}path,line{fill:none}.d{stroke-dasharray:5 3;stroke-width:1.5}"
    ".o{stroke-width:.8}text.h{paint-order:stroke;stroke:#fff;stroke-width:3px}",
    _STROKES,
    "@media screen and (prefers-color-scheme:dark){text{fill:#e6e6e6}.b{fill:#16181d}"
    ".a{stroke:#777}.g{stroke:#33363d}.m{stroke:#e6e6e6}text.h{stroke:#16181d}",
    _DARK_STROKES, "}"))

#: Of the picture; its units are pixels if it is as wide as a telephone.
_WIDTH, _LEFT, _RIGHT, _HEIGHT, _LOW_HEIGHT = 420, 40.0, 404.0, 220.0, 56.0
#: Most parts of the axis of time, and the largest error by leaving a point out, in pixels.
_MOST_PARTS = 6
_NEAR = 0.25
_UNITS = (("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0))

def picture(host: ModuleHost) -> str:
    """Returns the picture; with the bounds and the limit if the module reports them."""
    host.course.sample(host.cluster, host.clock.elapsed(), is_last=True)
    course = host.course
    classes = host.cluster.crush.classes
    told = _told(host)
    bounds = {row["device_class"]: row["bound_utilization"] for row in told.get("classes", ())
              if row["bound_utilization"] is not None}
    limit = told.get("limits", {}).get("max_misplaced_ratio")
    of_class = {osd: classes.get(osd, "") for osd in course.used}
    colors = {name: f"c{number % len(_COLORS)}" for number, name in enumerate(
        sorted({*of_class.values(), *bounds}))}   # a bound may be of several classes
    nearfull = host.cluster.map.ratio("nearfull_ratio")
    span = max(course.times[-1], 1.0)
    unit = _unit(span)

    shapes = [_text(0.0, 16.0, "Utilization of each OSD over time", ' font-weight="600"')]
    y = 34.0
    for name, color in colors.items():
        shapes += [_line(color, 0.0, y - 4.0, 20.0, y - 4.0, ' stroke-width="2"'),
                   _text(26.0, y, f"{name or 'no class'}: {[*of_class.values()].count(name)} OSDs")]
        if name in bounds:
            shapes += [_line(f"{color} d", 200.0, y - 4.0, 220.0, y - 4.0),
                       _text(226.0, y, f"bound {bounds[name]:.2%}")]
        y += 17.0

    levels = [nearfull, *bounds.values()]
    for values in course.used.values():
        levels += [value for value in values if value == value]
    low = math.floor(10.0 * min(levels)) / 10.0
    high = math.ceil(20.0 * max(levels) + 0.2) / 20.0
    upper = _Panel(y + 2.0, _HEIGHT, low, high, span)
    shapes += upper.frame(unit[1], [low + 0.1 * part for part in range(
        int(10.0 * (high - low) + 0.01) + 1)])
    # single lines of many are fainter, so that the densest range and the bound stay visible
    shapes += [f'<g stroke-opacity="{min(0.75, max(0.2, 30.0 / len(course.used))):.2g}">', *[
        upper.curve(f"o {colors[of_class[osd]]}", course.times, values)
        for osd, values in sorted(course.used.items())], "</g>"]
    shapes += [*[upper.level(f"{colors[name]} d", bound) for name, bound in bounds.items()],
               upper.level("m d", nearfull, f"nearfull {100.0 * nearfull:.3g}%")]

    most = max([*course.misplaced, limit or 0.0, 0.001])
    y = y + _HEIGHT + 42.0
    lower = _Panel(y, _LOW_HEIGHT, 0.0, 1.5 * most, span)
    shapes += [_text(0.0, y - 8.0, "Misplaced object copies"), *lower.frame(unit[1], [0.0, most]),
               lower.curve("m", course.times, course.misplaced)]
    if limit is not None:
        shapes.append(lower.level("m d", limit, f"limit {100.0 * limit:.3g}%"))
    y += _LOW_HEIGHT + 34.0
    shapes.append(_text((_LEFT + _RIGHT) / 2.0, y - 4.0, f"{unit[0]} of virtual time",
                        ' text-anchor="middle"'))
    width = _WIDTH + 6
    height = f"{y + 8:g}"
    drawn = "\n".join(shapes)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-6 -4 {width} {height}"'
            ' role="img" aria-label="Utilization of each OSD and misplaced object copies over time"'
            ' font-size="12" font-family="system-ui, -apple-system, Roboto, sans-serif">'
            f'<style>{_STYLE}</style><rect class="b" x="-6" y="-4" width="{width}"'
            f' height="{height}"/>\n{drawn}</svg>\n')


def _told(host: ModuleHost) -> Dict[str, Any]:
    """Returns the module's status; nothing without a module, or of one that has none."""
    handler = find_handler(host.handlers, ["equilibrium", "status"])
    if handler is None or host.module is None:
        return {}
    told: Dict[str, Any] = json.loads(host.call_handler(handler, {"format": "json"})[1])
    return told


def _unit(span: float) -> Tuple[str, float]:
    """Returns the largest unit that a span has at least two of, else the smallest."""
    for unit in _UNITS:
        if span >= 2.0 * unit[1]:
            break
    return unit


def _step(span: float) -> float:
    """Returns the smallest round step that divides a span into few enough parts."""
    steps = [0.5]
    for power in range(9):
        steps += [digit * 10.0 ** power for digit in (1, 2, 5)]
    return next(step for step in steps if span / step <= _MOST_PARTS)


class _Panel:
    """A plot over the whole time; ratios become percent."""

    def __init__(self, top: float, height: float, low: float, high: float, span: float) -> None:
        self._top = top
        self._height = height
        self._span = span
        self._low = low
        self._high = high

    def _y(self, value: float) -> float:
        return self._top + self._height * (self._high - value) / (self._high - self._low)

    def _x(self, seconds: float) -> float:
        return _LEFT + (_RIGHT - _LEFT) * seconds / self._span

    def frame(self, seconds: float, values: Sequence[float]) -> List[str]:
        """Axes with ticks at these values, and at round times in a unit of so many seconds."""
        shapes: List[str] = []
        for value in values:
            text = _text(_LEFT - 5.0, self._y(value) + 4.0, f"{100.0 * value:.3g}%",
                         ' text-anchor="end"')
            shapes += [self.level("g", value), text]
        part = _step(self._span / seconds)
        for number in range(int(self._span / seconds / part) + 1):
            x = self._x(number * part * seconds)
            shapes += [_line("g", x, self._top, x, self._top + self._height),
                       _text(x, self._top + self._height + 14.0, f"{number * part:g}",
                             ' text-anchor="middle"')]
        return shapes + [f'<rect class="a" x="{_LEFT:g}" y="{self._top:g}"'
                         f' width="{_RIGHT - _LEFT:g}" height="{self._height:g}"/>']

    def level(self, kind: str, value: float, text: str = "") -> str:
        """Returns a line over the whole time, with its name above its end."""
        y = self._y(value)
        line = _line(kind, _LEFT, y, _RIGHT, y)
        if not text:
            return line
        return line + _text(_RIGHT - 4.0, y - 4.0, text, ' class="h" text-anchor="end"')

    def curve(self, kind: str, times: Sequence[float], values: Sequence[float]) -> str:
        """Returns a line through the values; NaN is a missing one."""
        points = [(self._x(time), self._y(value)) for time, value in zip(times, values)
                  if value == value]
        return (f'<path class="{kind}" d="M'
                + "L".join([f"{x:.1f} {y:.1f}" for x, y in _thinned(points)]) + '"/>')


def _thinned(points: Sequence[Tuple[float, float]]) -> List[Tuple[float, float]]:
    """Returns the points without those that a line between their neighbors shows as well."""
    kept = list(points[:1])
    steepest, flattest = math.inf, -math.inf   # of lines from the last kept one that are near
    for (x, y), (next_x, next_y) in zip(points[1:], points[2:]):
        width = x - kept[-1][0]
        steepest = min(steepest, (y + _NEAR - kept[-1][1]) / width)
        flattest = max(flattest, (y - _NEAR - kept[-1][1]) / width)
        if not flattest <= (next_y - kept[-1][1]) / (next_x - kept[-1][0]) <= steepest:
            kept.append((x, y))
            steepest = math.inf
            flattest = -math.inf
    return kept + list(points[1:][-1:])


def _line(kind: str, x: float, y: float, to_x: float, to_y: float, more: str = "") -> str:
    return f'<line class="{kind}" x1="{x:g}" y1="{y:.4g}" x2="{to_x:g}" y2="{to_y:.4g}"{more}/>'


def _text(x: float, y: float, text: str, more: str = "") -> str:
    return f'<text x="{x:.4g}" y="{y:.4g}"{more}>{escape(text)}</text>'

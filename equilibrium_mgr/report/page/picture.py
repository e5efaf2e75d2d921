"""OSDs of each device class by utilization, before and after: one SVG, for the page, for tickets
and for the README."""
from __future__ import annotations

from typing import Any, List, Mapping, Sequence

from ...runtime.formatting import format_bytes, format_percent, plural
from .template import Markup, escaped

_WIDTH, _SIDE = 420.0, 14.0
_LENGTH = _WIDTH - 2 * _SIDE   # of the axis from 0 to 100%
_HEIGHT = 52.0                 # of the highest column
_FONT = 12
#: Colors that differ for the color-blind, and in brightness in print.
_NOW, _LATER = "#e08214", "#08519c"
#: Lines across the columns: (label, where that begins, dashes as SVG has them).
_LEVELS = (("bound", _SIDE, "none"), ("nearfull", _SIDE + 128.0, "6 3"),
           ("backfillfull", _SIDE + 254.0, "2 3"))
_MOST_CLASSES = 8

Row = Mapping[str, Any]   # of a device class in `eval`, or of an OSD in `osds`


def picture(classes: Sequence[Row], osds: Sequence[Row], full: Sequence[float], prefix: str,
            when: str) -> Markup:
    """`full`: the ratios nearfull and backfillfull. `prefix`: of the keys of later figures, and
    `when` that is; both empty where nothing is to change. Empty without OSDs; nothing in it depends
    on the time."""
    shapes: List[str] = []
    about: List[str] = []
    y = 0.0
    for row in classes[:_MOST_CLASSES]:
        members = [osd for osd in osds if osd["device_class"] == row["device_class"] and osd["in"]]
        levels = [(*level, ratio) for level, ratio in zip(_LEVELS, (
            row["bound_utilization"], *full)) if ratio is not None]
        shapes.append(_text(f"{row['device_class']}: {plural(row['osds'], 'OSD')},"
                            f" {format_bytes(row['size_bytes'])}", _SIDE, y + 16.0, "bold"))
        for name, x, dashes, ratio in levels:
            shapes += [_line(x, y + 30.0, x + 18.0, y + 30.0, dashes),
                       _text(f"{name} {format_percent(ratio)}%", x + 22.0, y + 34.0)]
        y += 40.0
        rows = [("now", "", _NOW)] + ([(when, prefix, _LATER)] if prefix else [])
        for name, key, color in rows:
            highest = format_percent(row[f"{key}max_utilization"])
            label = f"{name}: at most {highest}%" if highest else name
            about.append(f"{row['device_class']} {label}")
            shapes.append(_text(label, _SIDE, y + _FONT))
            y += _FONT + 6.0 + _HEIGHT
            shapes += [_columns([osd[f"{key}utilization"] for osd in members], y, color),
                       _line(_SIDE, y, _WIDTH - _SIDE, y)]
            shapes += [_line(_at(ratio), y - _HEIGHT, _at(ratio), y, dashes)
                       for _, _, dashes, ratio in levels]
            y += 4.0
        shapes += [_text(f"{percent}%", _at(percent / 100.0), y + _FONT, anchor="middle")
                   for percent in (10, 30, 50, 70, 90)]
        y += _FONT + 18.0
    if not shapes:
        return Markup("")
    return Markup(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH:g} {y:g}" role="img"'
        f" aria-label=\"Utilization of OSDs: {escaped('; '.join(about))}\" font-size=\"{_FONT}\""
        ' font-family="system-ui, -apple-system, Roboto, sans-serif">'
        f'<rect width="{_WIDTH:g}" height="{y:g}" fill="#ffffff"/>{"".join(shapes)}</svg>')


def _columns(ratios: Sequence[Any], base: float, color: str) -> str:
    """A column for each point of utilization, as high as OSDs have it; what is above 100% stands
    there. One path: a shape for each would be ten times as long."""
    counts = [0] * 100
    for ratio in ratios:
        if ratio is not None:
            counts[min(max(int(100.0 * ratio), 0), 99)] += 1
    unit, width = _HEIGHT / max(1, *counts), _LENGTH / 100.0
    path = "".join([f"M{_SIDE + width * percent:.1f} {base:g}v{-unit * count:.1f}h{width:.1f}"
                    f"V{base:g}z" for percent, count in enumerate(counts) if count])
    return f'<path d="{path}" fill="{color}"/>'


def _at(ratio: float) -> float:
    return _SIDE + _LENGTH * min(max(ratio, 0.0), 1.0)


def _line(x1: float, y1: float, x2: float, y2: float, dashes: str = "none") -> str:
    return (f'<line x1="{x1:.1f}" y1="{y1:g}" x2="{x2:.1f}" y2="{y2:g}" stroke="#1a1a1a"'
            f' stroke-dasharray="{dashes}"/>')


def _text(text: str, x: float, y: float, weight: str = "normal", anchor: str = "start") -> str:
    return (f'<text x="{x:.1f}" y="{y:g}" font-weight="{weight}" text-anchor="{anchor}"'
            f' fill="#1a1a1a">{escaped(text)}</text>')

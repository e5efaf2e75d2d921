"""The strips of all device classes as one SVG file: for tickets, slides and the README."""
from __future__ import annotations

from typing import List

from .drawings.axis import FONT, Drawing, label
from .markup import Html, element
from .facts.sources import PageFacts
from .drawings.strip import WIDTH
from .utilization import class_strip, class_title

_SIDE = 16.0
_TITLE = FONT + 10.0
_GAP = 14.0


def picture(facts: PageFacts) -> str:
    """The SVG; empty without OSDs. Nothing in it depends on the time."""
    shapes: List[Html] = []
    descriptions: List[str] = []
    y = 0.0
    for name, osds in facts.by_class().items():
        strip = class_strip(facts, name, osds)
        shapes += [label(class_title(name, osds), _SIDE, y + FONT + 2.0, weight="bold"),
                   element("g", *strip.shapes, transform=f"translate(0 {y + _TITLE:.0f})")]
        descriptions.append(strip.description)
        y += _TITLE + strip.height + _GAP
    return Drawing(WIDTH, y, ". ".join(descriptions), shapes).svg(True) if shapes else ""

"""Drawings: nothing overlaps, every OSD has its mark, and text is text."""
from __future__ import annotations

import random
from typing import List

import pytest

from equilibrium_mgr.report.page.drawings.axis import Level, axis_over, placed_labels
from equilibrium_mgr.report.page.drawings.strip import Row, utilization_strip
from equilibrium_mgr.report.page.markup import Html, element, joined

LEVELS = [Level("bound", 0.655, ""), Level("nearfull", 0.85, "6 3"),
          Level("backfillfull", 0.9, "2 3")]


@pytest.mark.parametrize("seed", range(20))
def test_labels_are_on_the_ground_and_not_over_each_other(seed: int) -> None:
    rng = random.Random(seed)
    wanted = [(rng.uniform(0, 520), text)
              for text in ("bound 65.5%", "nearfull 85.0%", "backfillfull 90.0%")]
    placed = placed_labels(wanted, 0.0, 520.0)
    assert all(0.0 <= one.begin <= one.end <= 520.0 for one in placed)
    places = sorted(place for place, _ in wanted)
    if min(b - a for a, b in zip(places, places[1:])) > 5.0 and places[0] > 130.0:
        assert not any(one.meets(other) for i, one in enumerate(placed) for other in placed[:i])


@pytest.mark.parametrize("ratios", [[], [0.0], [0.5] * 3, [0.01, 1.2], [0.65, 0.651]])
def test_an_axis_holds_what_it_shows(ratios: List[float]) -> None:
    axis = axis_over(ratios, LEVELS, 16.0, 488.0)
    assert 0.0 <= axis.low < axis.high <= 105.0 and axis.high - axis.low >= 10.0
    assert 2 <= len(axis.ticks()) <= 9
    for percent in [100.0 * ratio for ratio in ratios] + axis.ticks():
        assert 16.0 <= axis.at(percent) <= 504.0


def test_each_osd_has_a_mark() -> None:
    rng = random.Random(1)
    row = Row("now", "#123456", [rng.uniform(0.4, 0.9) for _ in range(60)])
    strip = utilization_strip("Class hdd", [row], LEVELS).svg()
    assert strip.count('fill="#123456"') == 60
    assert "bound 65.5%" in strip and "now: " in strip


def test_a_large_class_has_bars() -> None:
    row = Row("now", "#123456", [0.5] * 1000)
    strip = utilization_strip("Class hdd", [row, Row("with p", "#654321", [])], LEVELS).svg()
    assert strip.count('fill="#123456"') == 1 and "with p: no OSD" in strip


def test_text_is_escaped_wherever_it_stands() -> None:
    hostile = "<b>&\"'\x00\u202e"
    assert element("p", hostile, title=hostile) == (
        '<p title="&lt;b&gt;&amp;&quot;&#x27;\ufffd\ufffd">&lt;b&gt;&amp;&quot;&#x27;'
        '\ufffd\ufffd</p>')
    assert joined([Html("<b>"), "<b>"]) == "<b>&lt;b&gt;"

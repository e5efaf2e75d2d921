"""`sim picture`: what is kept of a run, and what is drawn of it."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple

import pytest

from mgr_stub.simulation.course import Course
from tests.support.clusters import stub_states as clusters

_LEFT, _RIGHT, _SVG = 40.0, 404.0, "{http://www.w3.org/2000/svg}"


@pytest.fixture
def session(make_session: Callable[..., Any]) -> Any:
    return make_session(clusters.state([clusters.pg("2.0", [0, 1, 2])]))


def drawn(session: Any, tmp_path: Path) -> Tuple[List[List[Tuple[float, float]]], List[str]]:
    """The points of each curve, those of the misplaced ratio last, and the texts."""
    path = tmp_path / "run.svg"
    assert session.command(f"sim picture {path}") == (0, "", "")
    root = xml.etree.ElementTree.fromstring(path.read_text(encoding="utf-8"))
    curves = [[(float(x), float(y)) for x, y in re.findall(r"([\d.]+) ([\d.]+)", one.get("d", ""))]
              for one in root.iter(f"{_SVG}path")]
    return curves, [str(one.text) for one in root.iter(f"{_SVG}text")]


def test_each_osd_has_a_line_over_the_whole_run(session: Any, tmp_path: Path) -> None:
    for line in ("sim backfill rate 10M", "sim run 5m", "osd pg-upmap-items 2.0 2 4", "sim run 3h",
                 "sim host add new 1 1T", "sim run 61m"):
        assert session.command(line)[0] == 0
    curves, texts = drawn(session, tmp_path)
    assert len(curves) == len(session.cluster.usage) + 1 == 8
    starts = [curve[0][0] for curve in curves]
    assert starts.count(_LEFT) == 7 and _LEFT < max(starts) < _RIGHT   # the new one comes later
    assert {curve[-1][0] for curve in curves} == {_RIGHT}
    heights = [curve[-1][1] - curve[0][1] for curve in curves[:-1]]
    assert heights[2] > 0.0 > heights[4] and heights[0] == 0.0         # y goes down
    assert len(curves[0]) == 2                          # what is straight has two points
    assert min(y for _, y in curves[-1]) < curves[-1][0][1] == curves[-1][-1][1]
    assert {"hours of virtual time", "0", "4", "nearfull 85%", "0%"} <= set(texts)
    assert any("7 OSDs" in text for text in texts)


def test_a_picture_at_the_start_and_names_that_are_markup(session: Any, tmp_path: Path) -> None:
    classes: Dict[int, str] = session.cluster.crush.classes
    classes[0] = '<&">'
    curves, texts = drawn(session, tmp_path)
    assert {len(curve) for curve in curves} == {1}
    assert '<&">: 1 OSDs' in texts
    assert session.command(f"sim picture {tmp_path}")[0] == -21   # EISDIR
    assert session.command("sim picture")[2] == "sim picture needs one file name"


def test_a_long_run_is_thinned_out_evenly(session: Any) -> None:
    course, cluster = Course(), session.cluster
    for minute in range(10000):
        course.sample(cluster, 60.0 * minute)
    distances = {after - before for before, after in zip(course.times, course.times[1:])}
    assert 180 <= len(course.times) <= 360 and distances == {60.0 * 32}
    assert course.times[0] == 0.0
    assert {len(values) for values in course.used.values()} == {len(course.times)}
    cluster.usage.pop(5)
    course.sample(cluster, 60.0 * 10000, is_last=True)
    assert math.isnan(course.used[5][-1]) and course.times[-1] == 60.0 * 10000

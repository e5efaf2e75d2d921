"""`sim picture`: what is kept of a run, and what is drawn of it."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree
from pathlib import Path
from typing import Any, Dict, List, Tuple

from mgr_stub.simulation.course import Course
from tests.support.clusters.crush_cluster import run

from .test_session import session

__all__ = ["session"]   # the fixture

_LEFT, _RIGHT, _SVG = 40.0, 404.0, "{http://www.w3.org/2000/svg}"
Curve = Tuple[List[float], List[float]]


def drawn(session: Any, path: Path) -> Tuple[List[Curve], List[str]]:
    """The x and y of each curve, those of the misplaced ratio last, and the texts."""
    assert session.command(f"sim picture {path}") == (0, "", "")
    root = xml.etree.ElementTree.fromstring(path.read_text(encoding="utf-8"))
    curves: List[Curve] = []
    for one in root.iter(f"{_SVG}path"):
        numbers = list(map(float, re.findall(r"[\d.]+", one.get("d", ""))))
        curves.append((numbers[::2], numbers[1::2]))
    return curves, [str(one.text) for one in root.iter(f"{_SVG}text")]


def test_each_osd_has_a_line_over_the_whole_run(session: Any, tmp_path: Path) -> None:
    run(session, "sim backfill rate 10M", "sim run 5m", "osd pg-upmap-items 2.0 2 4",
        "sim run 3h", "sim host add new 1 1T", "sim run 61m")
    curves, texts = drawn(session, tmp_path / "run.svg")
    assert len(curves) == len(session.cluster.usage) + 1 == 8
    *old, new, misplaced = curves
    for xs, _ in old + [misplaced]:
        assert (xs[0], xs[-1]) == (_LEFT, _RIGHT)
    assert _LEFT < new[0][0] < new[0][-1] == _RIGHT    # the new one comes later
    rises = [ys[-1] - ys[0] for _, ys in old]
    assert rises[2] > 0.0 > rises[4] and rises[0] == 0.0         # y goes down
    assert len(old[0][0]) == 2                          # what is straight has two points
    ratio = misplaced[1]
    assert min(ratio) < ratio[0] == ratio[-1]
    assert {"hours of virtual time", "0", "4", "nearfull 85%", "0%"} <= set(texts)
    assert "7 OSDs" in " ".join(texts)


def test_a_picture_at_the_start_and_names_that_are_markup(session: Any, tmp_path: Path) -> None:
    classes: Dict[int, str] = session.cluster.crush.classes
    classes[0] = '<&">'
    curves, texts = drawn(session, tmp_path / "run.svg")
    assert {len(xs) for xs, _ in curves} == {1}
    assert '<&">: 1 OSDs' in texts
    assert session.command(f"sim picture {tmp_path}")[0] == -21   # EISDIR
    assert session.command("sim picture")[2] == "sim picture needs one file name"


def test_a_long_run_is_thinned_out_evenly(session: Any) -> None:
    course, cluster, end = Course(), session.cluster, 60.0 * 10000
    for minute in range(10000):
        course.sample(cluster, 60.0 * minute)
    count = len(course.times)
    assert 180 <= count <= 360
    assert course.times == [60.0 * 32 * number for number in range(count)]
    for values in course.used.values():
        assert len(values) == count
    cluster.usage.pop(5)
    course.sample(cluster, end, is_last=True)
    assert math.isnan(course.used[5][-1]) and course.times[-1] == end

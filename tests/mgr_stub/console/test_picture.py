"""`sim picture`: what is kept of a long run, and names that are markup.

The pictures of the handbook show the rest (tests/readme).
"""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree
from pathlib import Path
from typing import Any, Dict, List, Tuple

from mgr_stub.simulation.course import Course

from .test_session import session

__all__ = ["session"]   # the fixture

_SVG = "{http://www.w3.org/2000/svg}"


def drawn(session: Any, path: Path) -> Tuple[List[int], List[str]]:
    """How many points each curve has, and the texts."""
    assert session.command(f"sim picture {path}") == (0, "", "")
    root = xml.etree.ElementTree.fromstring(path.read_text(encoding="utf-8"))
    points: List[int] = []
    for one in root.iter(f"{_SVG}path"):
        points.append(len(re.findall(r"[\d.]+", one.get("d", ""))) // 2)
    return points, [str(one.text) for one in root.iter(f"{_SVG}text")]


def test_a_picture_at_the_start_and_names_that_are_markup(session: Any, tmp_path: Path) -> None:
    classes: Dict[int, str] = session.cluster.crush.classes
    classes[0] = '<&">'
    points, texts = drawn(session, tmp_path / "run.svg")
    assert set(points) == {1}
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

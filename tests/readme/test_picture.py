"""The pictures of the demo are what the program draws today.

`python3 -m tests.readme.picture` draws them anew.
"""

from __future__ import annotations

import xml.etree.ElementTree
from pathlib import Path

import pytest

from .blocks import README
from .picture import PICTURE, PICTURES

_MOST_BYTES = 60 << 10


@pytest.mark.parametrize("place", PICTURES, ids=lambda place: str(place.stem))
def test_a_picture_is_what_the_program_draws_today(place: Path) -> None:
    assert place.read_text(encoding="utf-8") == PICTURES[place]()


@pytest.mark.parametrize("place", PICTURES, ids=lambda place: str(place.stem))
def test_a_picture_stands_alone(place: Path) -> None:
    text = place.read_text(encoding="utf-8")
    root = xml.etree.ElementTree.fromstring(text)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert text.count("http") == 1 and "<script" not in text and "url(" not in text
    assert len(text) <= _MOST_BYTES


def test_the_picture_is_in_the_readme() -> None:
    assert f"]({PICTURE.relative_to(README.parent)})" in README.read_text(encoding="utf-8")

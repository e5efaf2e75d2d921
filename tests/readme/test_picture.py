"""The README's picture is what the program draws today.

`python3 -m tests.readme.picture` draws it anew.
"""

from __future__ import annotations

import xml.etree.ElementTree

from .blocks import README
from .picture import PICTURE, drawn


def test_the_picture_is_what_the_program_draws_today() -> None:
    assert PICTURE.read_text(encoding="utf-8") == drawn()


def test_the_picture_stands_alone_and_in_the_readme() -> None:
    text = PICTURE.read_text(encoding="utf-8")
    root = xml.etree.ElementTree.fromstring(text)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert text.count("http") == 1 and "<script" not in text and "url(" not in text
    assert f"]({PICTURE.relative_to(README.parent)})" in README.read_text(encoding="utf-8")

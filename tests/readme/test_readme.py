"""What the README shows is what the program prints; `python3 -m tests.readme` prints it anew."""

from __future__ import annotations

import pytest

from tests.readme.blocks import README, rendered

WIDTH = 80


@pytest.fixture(scope="module")
def text() -> str:
    return README.read_text(encoding="utf-8")


def test_blocks_are_what_the_program_prints(text: str) -> None:
    assert rendered(text) == text

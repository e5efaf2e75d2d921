"""What the README shows is what the program prints; `python3 -m tests.readme` prints it anew."""

from __future__ import annotations

import re

import pytest

from tests.readme.blocks import README, BlockError, rendered, shown_commands

WIDTH = 80


@pytest.fixture(scope="module")
def text() -> str:
    return README.read_text(encoding="utf-8")


def test_blocks_are_what_the_program_prints(text: str) -> None:
    assert rendered(text) == text


def test_the_first_hour_shows_the_main_commands(text: str) -> None:
    shown = {line.split()[1] for line in shown_commands(text) if line.startswith("equilibrium ")}
    assert {"status", "eval", "optimize", "show", "explain", "on", "history"} <= shown


def test_blocks_fit_a_terminal(text: str) -> None:
    blocks = re.findall(r"<!-- show[^\n]*-->\n```\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert blocks
    wide = [line for block in blocks for line in block.splitlines() if len(line) > WIDTH]
    assert wide == []


def test_a_command_that_fails_is_not_shown() -> None:
    with pytest.raises(BlockError):
        rendered("<!-- show: equilibrium show nothing -->\n```\n```\n")


def test_long_output_is_cut_where_the_comment_says() -> None:
    made = rendered("<!-- show 1: equilibrium eval -->\n<!-- run: sim run 1m -->\nrest\n")
    lines = made.splitlines()
    assert lines[1:3] == ["```", "# ceph equilibrium eval"]
    assert lines[4:] == ["...", "```", "<!-- run: sim run 1m -->", "rest"]

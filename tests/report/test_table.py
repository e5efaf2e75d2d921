"""Tables fit in 80 columns, and are sorted and limited by what a command says."""
from __future__ import annotations

import errno
from typing import List

import pytest

from equilibrium_mgr.report.answer import (
    CommandError, Row, SortKeys, limited_rows, render_table, rest_line, sorted_rows)

ROWS: List[Row] = [{"osd": 1, "use": 0.5}, {"osd": 2, "use": None}, {"osd": 3, "use": 0.7}]
KEYS: SortKeys = {"id": lambda row: row["osd"], "use": lambda row: row["use"]}


def test_names_are_left_numbers_right_and_unknown_is_empty() -> None:
    text = render_table("POOL<|ID|FREE", [["rbd", "1", "9.5 TiB"], ["longer", "10", ""]])
    assert text.split("\n") == ["POOL    ID     FREE",
                                "rbd      1  9.5 TiB",
                                "longer  10"]


def test_a_table_that_is_too_wide_has_one_space() -> None:
    assert render_table("POOL<|A|B", [["x" * 10, "1" * 5, "2" * 5]], 23).split("\n")[1] == (
        "xxxxxxxxxx 11111 22222")


def test_rows_are_sorted_both_ways_and_unknown_comes_last() -> None:
    assert [row["osd"] for row in sorted_rows(ROWS, "use", KEYS)] == [1, 3, 2]
    assert [row["osd"] for row in sorted_rows(ROWS, "-use", KEYS)] == [3, 1, 2]
    with pytest.raises(CommandError) as caught:
        sorted_rows(ROWS, "weight", KEYS)
    assert caught.value.errno == -errno.EINVAL and "id, use" in caught.value.sentence


def test_rows_are_limited() -> None:
    assert limited_rows(ROWS, None) == ROWS and len(limited_rows(ROWS, 2)) == 2
    with pytest.raises(CommandError):
        limited_rows(ROWS, 0)
    assert rest_line(2, 3, "OSD") == "... 1 more OSD" and rest_line(3, 3, "OSD") == ""
    assert rest_line(1, 3, "OSD") == "... 2 more OSDs"

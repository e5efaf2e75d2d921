"""Tables fit in 80 columns, and are sorted and limited by what a command says."""
from __future__ import annotations

import errno
from typing import List

import pytest

from equilibrium_mgr.report.answer import CommandError, Row, SortKeys, sorted_rows

ROWS: List[Row] = [{"osd": 1, "use": 0.5}, {"osd": 2, "use": None}, {"osd": 3, "use": 0.7}]
KEYS: SortKeys = {"id": lambda row: row["osd"], "use": lambda row: row["use"]}


def test_rows_are_sorted_both_ways_and_unknown_comes_last() -> None:
    assert [row["osd"] for row in sorted_rows(ROWS, "use", KEYS)] == [1, 3, 2]
    assert [row["osd"] for row in sorted_rows(ROWS, "-use", KEYS)] == [3, 1, 2]
    with pytest.raises(CommandError) as caught:
        sorted_rows(ROWS, "weight", KEYS)
    assert caught.value.errno == -errno.EINVAL
    assert "id, use" in caught.value.sentence

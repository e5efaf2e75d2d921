"""What the measures of plainness count."""

from __future__ import annotations

from pathlib import Path

import pytest

from .code import Figures, measure
from .prose import odd_per_thousand


def _measured(folder: Path, source: str) -> Figures:
    (folder / "one.py").write_text(source, encoding="utf-8")
    return measure(folder)


@pytest.mark.parametrize("source, operations", [
    ("a = b", 0),
    ("a = b + 1", 2),
    ("a: Dict[str, int] = f(b)", 1),
    ("if a: f()", 2),
    ("a = f'{b}'", 0)])
def test_operations_are_counted_however_they_are_laid_out(
        tmp_path: Path, source: str, operations: int) -> None:
    assert _measured(tmp_path, source).operations == operations


@pytest.mark.parametrize("source", [
    "a = b and c and d and e", "a = (b if c else d) if e else (f or g)",
    "a = [b for c in d if e for f in g for h in i]", "a = 's' * b + 't' * c + 'u' * d"])
def test_an_expression_of_three_branches_is_dense(tmp_path: Path, source: str) -> None:
    assert len(_measured(tmp_path, source).dense) == 1


def test_the_fields_of_a_record_count_one_by_one(tmp_path: Path) -> None:
    fields = ", ".join(f"'{key}': b or c" for key in "abcdefgh")
    assert _measured(tmp_path, f"a = {{{fields}}}").dense == []


def test_a_long_function_is_named(tmp_path: Path) -> None:
    source = "def long():\n" + "    pass\n" * 60
    found = _measured(tmp_path, source).long_functions
    assert [line.split()[-1] for line in found] == ["long"]


def test_branches_inside_are_a_share_of_all(tmp_path: Path) -> None:
    assert _measured(tmp_path, "if a:\n    b = c or d").inside_percent == 50.0


def test_odd_constructions_are_counted_in_docstrings_and_comments(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text('"""Four words of which."""\na = 1   # beyond it\n')
    odd, places = odd_per_thousand(tmp_path, ".py")
    assert len(places) == 2
    assert odd == pytest.approx(1000.0 * 2 / 6)


def test_code_in_a_page_is_no_prose(tmp_path: Path) -> None:
    (tmp_path / "one.md").write_text("Two words.\n\n```\nanew beyond\n```\n")
    assert odd_per_thousand(tmp_path, ".md")[1] == []

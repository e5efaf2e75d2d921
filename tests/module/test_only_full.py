"""A run with `--only-full` has all that one without `--full` leaves out."""
from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Set

from tests.conftest import _COUNTS

_ROOT = Path(__file__).parents[2]
#: Tests marked `full`, tests with random cases, and tests that are neither.
_SOME = ("tests/undo/test_undo_everything.py", "tests/threads/test_storm.py",
         "tests/snapshot/test_pg_cache.py", "tests/properties/test_plan_repeats.py",
         "tests/plan/test_usage.py")


def collected(*options: str) -> Set[str]:
    said = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *options,
         *_SOME], cwd=_ROOT, stdout=subprocess.PIPE, check=True, encoding="utf-8").stdout
    return {line for line in said.splitlines() if "::" in line}


def test_both_together_are_a_full_run() -> None:
    plain, rest, full = collected(), collected("--only-full"), collected("--full")
    assert plain | rest == full
    assert plain - rest and rest - plain
    # what every run has too is not run twice, but for random cases
    assert {line.split("::")[0] for line in plain & rest} == {
        "tests/threads/test_storm.py", "tests/snapshot/test_pg_cache.py",
        "tests/properties/test_plan_repeats.py"}


def test_the_number_of_cases_is_asked_only_where_cases_are_made() -> None:
    names = re.compile("|".join(f"{count.name}\\b|option.{count.attribute}\\b"
                                for count in _COUNTS))
    askers = [path for path in (_ROOT / "tests").rglob("*.py")
              if path.name != "test_only_full.py" and path != _ROOT / "tests" / "conftest.py"
              and re.search(r"getoption\(|\.option\.", path.read_text())
              and names.search(path.read_text())]
    assert len(askers) > 5
    assert [path for path in askers
            if "def pytest_generate_tests" not in path.read_text()] == []

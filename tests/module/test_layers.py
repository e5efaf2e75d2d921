"""The folders of the module import downwards only, no files import each other in a circle, and what
plans knows neither the mgr nor a clock.

Reads the code; imports nothing of it.
"""
from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.layers import Package

ROOT = Path(__file__).resolve().parents[2] / "equilibrium_mgr"

#: From the lowest to the highest; a file may import what is in its own folder or in a lower one.
#: Files that stand in no folder are folders of their own here.
LAYERS = (
    "version", "runtime", "crush", "snapshot", "plan", "drain", "what_if",
    "planner.objective", "planner.bound", "planner.state", "planner.search",
    "planner", "freeze", "upmap_cleanup", "settings",
    "option_values", "gateway", "plan_service", "execution", "observation", "undo", "control",
    "report", "metrics_endpoint", "commands", "compat", "old_python", "cli", "module", "__init__")
PURE = ("crush", "snapshot", "plan", "drain", "what_if", "planner", "freeze", "upmap_cleanup")
#: Nothing of these makes a plan another one.
OUTSIDE = {"mgr_module", "time", "datetime", "random", "threading"}
#: The one exception: they give way to other threads, and may be told to end. Which clock and which
#: thread that is about only those know that bind a slice to a thread (runtime/time_slice.py).
GIVING_WAY = {"give_way", "piecewise", "release", "sorted_piecewise", "told_to_end"}
#: Kept by several threads: the store of plans, and what is known of other aims.
NOT_PURE = {"plan/store.py"}

MODULE = Package(ROOT, LAYERS)


@pytest.mark.parametrize("name", sorted(MODULE.imports))
def test_files_import_downwards_only(name: str) -> None:
    assert MODULE.upward_imports(name) == []


def test_no_files_import_each_other_in_a_circle() -> None:
    assert MODULE.circle() == ()


@pytest.mark.parametrize("path", [path for path in MODULE.files
                                  if path.relative_to(ROOT).parts[0] in PURE
                                  and str(path.relative_to(ROOT)) not in NOT_PURE],
                         ids=lambda path: str(path.relative_to(ROOT)))
def test_what_plans_knows_neither_the_mgr_nor_a_clock(path: Path) -> None:
    assert not {name[1:] for name in MODULE.imports_of(path) if name.startswith("!")} & OUTSIDE
    assert MODULE.taken_from(path, "runtime.time_slice") <= GIVING_WAY


def test_every_folder_says_what_lives_there() -> None:
    assert MODULE.undocumented_folders() == []

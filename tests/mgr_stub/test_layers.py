"""The folders of the stub import downwards only, and no files import each other in a circle."""
from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.layers import Package

#: From the lowest to the highest.
LAYERS = ("errors", "clock", "frozen", "garbage_collection", "crush", "osdmap", "cluster",
          "monitor", "simulation", "events", "state", "demo", "mgr", "host", "console", "__main__",
          "__init__")
STUB = Package(Path(__file__).resolve().parents[2] / "mgr_stub", LAYERS)


@pytest.mark.parametrize("name", sorted(STUB.imports))
def test_files_import_downwards_only(name: str) -> None:
    assert STUB.upward_imports(name) == []


def test_no_files_import_each_other_in_a_circle() -> None:
    assert STUB.circle() == ()


def test_every_folder_says_what_lives_there() -> None:
    assert STUB.undocumented_folders() == []

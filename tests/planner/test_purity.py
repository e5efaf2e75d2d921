"""The planner, the snapshot and the CRUSH rooms know neither the mgr nor a clock."""
from __future__ import annotations

import ast
from pathlib import Path
from typing import Iterator, List

import pytest

import equilibrium_mgr

_ROOT = Path(equilibrium_mgr.__file__).parent
_FORBIDDEN = {"mgr_module", "time", "datetime", "random", "threading"}
_PURE_FILES = sorted(path for room in ("planner", "snapshot", "crush")
                     for path in (_ROOT / room).glob("*.py"))


def imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = (node.module or "").split(".")[0]
            yield "%s%s" % ("." * node.level, module)


def test_there_are_files_to_look_at() -> None:
    rooms: List[str] = sorted({path.parent.name for path in _PURE_FILES})
    assert rooms == ["crush", "planner", "snapshot"]


@pytest.mark.parametrize("path", _PURE_FILES, ids=lambda p: "%s/%s" % (p.parent.name, p.name))
def test_pure_rooms_import_nothing_of_the_outside(path: Path) -> None:
    names = set(imported(ast.parse(path.read_text(encoding="utf-8"))))
    assert not names & _FORBIDDEN
    outside = {name for name in names if name.startswith("..")} - {"..crush", "..snapshot"}
    assert not outside, "a pure room imports %s" % outside

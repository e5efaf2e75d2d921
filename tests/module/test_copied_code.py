"""Test code that runs inside a real mgr names files of the module that are there.

It is not imported here: `hook.py` becomes a file of a copy of the package, and the module
`planner_load` imports the package by the name that it has in a mgr.
"""
from __future__ import annotations

import ast
from pathlib import Path
from typing import Iterator, Tuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "equilibrium_mgr"
CEPH = ROOT / "tests" / "ceph"


def imported(path: Path) -> Iterator[Tuple[str, str]]:
    """(file or folder of the package, dotted, and a name imported from it) of one file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and path.name == "hook.py" and node.level:
            assert node.level == 1, "the hook lies at the top of the package"
            yield from ((node.module or "", alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("equilibrium."):
            yield from (((node.module or "")[len("equilibrium."):], alias.name)
                        for alias in node.names)


@pytest.mark.parametrize("path", [CEPH / "harness" / "hook.py",
                                  *sorted((CEPH / "planner_load").glob("*.py"))],
                         ids=lambda path: path.name)
def test_what_it_imports_is_there(path: Path) -> None:
    for module, name in imported(path):
        place = PACKAGE / module.replace(".", "/")
        source = place.with_suffix(".py") if place.with_suffix(".py").exists() else (
            place / "__init__.py")
        assert source.exists(), module
        defined = {node.name for node in ast.parse(source.read_text(encoding="utf-8")).body
                   if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
        assert name in defined or (place / f"{name}.py").exists() or (
            f"\n{name}" in source.read_text(encoding="utf-8")), f"{module}.{name}"

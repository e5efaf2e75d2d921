"""Test code that runs inside a real mgr names files of the module that are there.

It is not imported here: `hook.py` becomes a file of a copy of the package.
"""
from __future__ import annotations

import ast
from pathlib import Path
from typing import Iterator, Tuple

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "equilibrium_mgr"
HOOK = ROOT / "tests" / "ceph" / "harness" / "hook.py"


def imported() -> Iterator[Tuple[str, str]]:
    """(file or folder of the package, dotted, and a name imported from it)."""
    for node in ast.walk(ast.parse(HOOK.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            assert node.level == 1, "the hook lies at the top of the package"
            yield from ((node.module or "", alias.name) for alias in node.names)


def test_what_the_hook_imports_is_there() -> None:
    for module, name in imported():
        place = PACKAGE / module.replace(".", "/")
        source = place.with_suffix(".py") if place.with_suffix(".py").exists() else (
            place / "__init__.py")
        assert source.exists(), module
        defined = {node.name for node in ast.parse(source.read_text(encoding="utf-8")).body
                   if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
        assert name in defined or (place / f"{name}.py").exists() or (
            f"\n{name}" in source.read_text(encoding="utf-8")), f"{module}.{name}"

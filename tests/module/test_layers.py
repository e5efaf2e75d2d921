"""The folders of the module import downwards only, no files import each other in a circle, and what
plans knows neither the mgr nor a clock.

Reads the code; imports nothing of it.
"""
from __future__ import annotations

import ast
from pathlib import Path
from typing import Dict, Iterator, List, Set, Tuple

import pytest

ROOT = Path(__file__).resolve().parents[2] / "equilibrium_mgr"

#: From the lowest to the highest; a file may import what is in its own folder or in a lower one.
#: Files that stand in no folder are folders of their own here.
LAYERS = (
    "runtime", "crush", "snapshot", "plan", "planner.objective", "planner.bound",
    "planner.state", "planner.search",
    "planner", "settings", "removed_options", "gateway", "plan_service", "execution", "observation",
    "control", "report", "compat", "old_python", "cli", "module", "__init__")
PURE = ("crush", "snapshot", "plan", "planner")
#: Nothing of these makes a plan another one.
OUTSIDE = {"mgr_module", "time", "datetime", "random", "threading"}
#: Kept by several threads: the store of plans, and what is known of other aims.
NOT_PURE = {"plan/store.py", "plan/aim_comparison.py"}

FILES = sorted(ROOT.rglob("*.py"))


def name_of(path: Path) -> str:
    """Dotted, relative to the module; a folder's __init__ is the folder."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


def layer_of(name: str) -> str:
    """The longest layer that a file's dotted name begins with."""
    fitting = [layer for layer in LAYERS if name == layer or name.startswith(layer + ".")]
    assert fitting, f"{name} belongs to no layer"
    return max(fitting, key=len)


NAMES = {name_of(path) for path in FILES}


def imports_of(path: Path) -> Iterator[str]:
    """Dotted names of the module's own files that a file imports; other modules with a leading '!'."""
    package = list(path.relative_to(ROOT).parts[:-1])
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ("!" + alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield "!" + (node.module or "").split(".")[0]
        elif isinstance(node, ast.ImportFrom):
            base = package[:len(package) - (node.level - 1)]
            target = ".".join(base + (node.module.split(".") if node.module else []))
            for alias in node.names:
                inner = (target + "." if target else "") + alias.name
                yield inner if inner in NAMES else target


IMPORTS: Dict[str, Set[str]] = {name_of(path): set(imports_of(path)) for path in FILES}


@pytest.mark.parametrize("name", sorted(IMPORTS))
def test_files_import_downwards_only(name: str) -> None:
    own = LAYERS.index(layer_of(name))
    upwards = [target for target in IMPORTS[name] if not target.startswith("!")
               and LAYERS.index(layer_of(target)) > own]
    assert upwards == []


def test_no_files_import_each_other_in_a_circle() -> None:
    state: Dict[str, int] = {}
    path: List[str] = []

    def visit(name: str) -> Tuple[str, ...]:
        state[name] = 1
        path.append(name)
        for target in sorted(IMPORTS.get(name, ())):
            if state.get(target) == 1:
                return tuple(path[path.index(target):])
            if target in IMPORTS and target not in state:
                circle = visit(target)
                if circle:
                    return circle
        state[name] = 2
        path.pop()
        return ()
    for name in sorted(IMPORTS):
        if name not in state:
            assert visit(name) == ()


@pytest.mark.parametrize("path", [path for path in FILES
                                  if path.relative_to(ROOT).parts[0] in PURE
                                  and str(path.relative_to(ROOT)) not in NOT_PURE],
                         ids=lambda path: str(path.relative_to(ROOT)))
def test_what_plans_knows_neither_the_mgr_nor_a_clock(path: Path) -> None:
    assert not {name[1:] for name in imports_of(path) if name.startswith("!")} & OUTSIDE


def test_every_folder_says_what_lives_there() -> None:
    for folder in sorted({path.parent for path in FILES} - {ROOT}):
        said = ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8")))
        assert said and "import" in said.lower(), folder


def test_no_folder_is_a_drawer() -> None:
    for folder in sorted({path.parent for path in FILES}):
        assert len(list(folder.glob("*.py"))) <= 16, folder

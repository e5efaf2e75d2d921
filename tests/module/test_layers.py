"""The folders of the module and of the stub import downwards only, no files import each other in a
circle, and what plans knows neither the mgr nor a clock.

Reads the code; imports nothing of it.
"""
from __future__ import annotations

import ast
from pathlib import Path
from typing import Dict, Iterator, List, Sequence, Set, Tuple

import pytest

_TOP = Path(__file__).resolve().parents[2]
ROOT = _TOP / "equilibrium_mgr"

#: From the lowest to the highest; a file may import what is in its own folder or in a lower one.
#: Files that stand in no folder are folders of their own here.
LAYERS = (
    "version", "runtime", "crush", "snapshot", "plan", "drain", "what_if",
    "planner.objective", "planner.bound", "planner.state", "planner.search",
    "planner", "freeze", "settings",
    "gateway", "plan_service", "execution", "observation", "undo", "control",
    "report", "metrics_endpoint", "commands", "compat", "old_python", "cli", "module", "__init__")
STUB_LAYERS = (
    "errors", "clock", "frozen", "garbage_collection", "crush", "osdmap", "cluster", "monitor",
    "simulation", "events", "state", "demo", "mgr", "host", "console", "gather",
    "__main__", "__init__")
PURE = ("crush", "snapshot", "plan", "drain", "what_if", "planner", "freeze")
#: Nothing of these makes a plan another one.
OUTSIDE = {"mgr_module", "time", "datetime", "random", "threading"}
#: The one exception: they give way to other threads, and may be told to end. Which clock and which
#: thread that is about only those know that bind a slice to a thread (runtime/time_slice.py).
GIVING_WAY = {"give_way", "grouped", "piecewise", "release", "sorted_piecewise", "told_to_end"}
#: Kept by several threads: the store of plans.
NOT_PURE = {"plan/store.py"}


class Package:
    """The Python files below `root` and what they import from one another.

    `layers` names folders and single files, dotted and relative to the package, from the lowest
    to the highest. A file may import what is in its own layer or in a lower one. Imports inside
    functions and under TYPE_CHECKING count as well.
    """

    def __init__(self, root: Path, layers: Sequence[str]) -> None:
        self.root = root
        self.layers = layers
        self.files = sorted(root.rglob("*.py"))
        self._names = {self.name_of(path) for path in self.files}
        #: Dotted name of a file → the package's files that it imports.
        self.imports: Dict[str, Set[str]] = {
            self.name_of(path): {name for name in self.imports_of(path) if name[:1] != "!"}
            for path in self.files}

    def name_of(self, path: Path) -> str:
        """Dotted, relative to the package; a folder's __init__ is the folder."""
        parts = path.relative_to(self.root).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)

    def layer_of(self, name: str) -> int:
        """Number of the longest layer that a file's dotted name begins with."""
        fitting = [layer for layer in self.layers
                   if name == layer or name.startswith(layer + ".")]
        assert fitting, f"{name} belongs to no layer"
        return self.layers.index(max(fitting, key=len))

    def imports_of(self, path: Path) -> Iterator[str]:
        """Dotted names of the package's own files that a file imports; others begin with '!'."""
        package = list(path.relative_to(self.root).parts[:-1])
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
                    yield inner if inner in self._names else target

    def taken_from(self, path: Path, name: str) -> Set[str]:
        """What a file imports from another one, which is given by its dotted name, or that file."""
        return {alias.name for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
                if isinstance(node, ast.ImportFrom) for alias in node.names
                if name in (node.module, f"{node.module}.{alias.name}")}

    def upward_imports(self, name: str) -> List[str]:
        """What a file imports from higher layers."""
        own = self.layer_of(name)
        return sorted(target for target in self.imports[name] if self.layer_of(target) > own)

    def circle(self) -> Tuple[str, ...]:
        """Files that import one another in a circle; empty if there are none."""
        state: Dict[str, int] = {}
        path: List[str] = []

        def visit(name: str) -> Tuple[str, ...]:
            state[name] = 1
            path.append(name)
            for target in sorted(self.imports.get(name, ())):
                if state.get(target) == 1:
                    return tuple(path[path.index(target):])
                if target in self.imports and target not in state:
                    circle = visit(target)
                    if circle:
                        return circle
            state[name] = 2
            path.pop()
            return ()

        for name in sorted(self.imports):
            circle = visit(name) if name not in state else ()
            if circle:
                return circle
        return ()

    def folders(self) -> List[Path]:
        """All folders with Python files, the package's own first."""
        return sorted({path.parent for path in self.files})

    def undocumented_folders(self) -> List[str]:
        """Folders whose __init__ does not say what lives there and what it may import."""
        found = []
        for folder in self.folders():
            init = folder / "__init__.py"
            text = ast.get_docstring(ast.parse(init.read_text(encoding="utf-8"))) if (
                init.exists()) else None
            if folder != self.root and not (text and "import" in text.lower()):
                found.append(str(folder.relative_to(self.root)))
        return found


MODULE = Package(ROOT, LAYERS)
PACKAGES = [MODULE, Package(_TOP / "mgr_stub", STUB_LAYERS)]


@pytest.mark.parametrize("package, name", [
    (package, name) for package in PACKAGES for name in sorted(package.imports)],
    ids=lambda value: value if isinstance(value, str) else value.root.name)
def test_files_import_downwards_only(package: Package, name: str) -> None:
    assert package.upward_imports(name) == []


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.root.name)
def test_no_circles_and_every_folder_says_what_lives_there(package: Package) -> None:
    assert package.circle() == ()
    assert package.undocumented_folders() == []


@pytest.mark.parametrize("path", [path for path in MODULE.files
                                  if path.relative_to(ROOT).parts[0] in PURE
                                  and str(path.relative_to(ROOT)) not in NOT_PURE],
                         ids=lambda path: str(path.relative_to(ROOT)))
def test_what_plans_knows_neither_the_mgr_nor_a_clock(path: Path) -> None:
    assert not {name[1:] for name in MODULE.imports_of(path) if name.startswith("!")} & OUTSIDE
    assert MODULE.taken_from(path, "runtime.time_slice") <= GIVING_WAY

"""The folders of the module and of the stub import downwards only, no files import each other in a
circle, and what plans knows neither the mgr nor a clock.

Reads the code; imports nothing of it.
"""
from __future__ import annotations

import ast
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Dict, Iterator, Sequence, Set

import pytest

from tests.plain.code import parsed

_TOP = Path(__file__).resolve().parents[2]
ROOT = _TOP / "equilibrium_mgr"

#: From the lowest to the highest; a file may import what is in its own folder or in a lower one.
#: Files that stand in no folder are folders of their own here.
LAYERS = (
    "version runtime crush snapshot plan drain what_if planner.objective planner.bound "
    "planner.state planner.search planner freeze settings gateway plan_service execution "
    "observation undo control report metrics_endpoint commands compat old_python cli module "
    "__init__").split()
STUB_LAYERS = (
    "errors clock frozen garbage_collection crush osdmap cluster monitor simulation events state "
    "demo mgr host console gather __main__ __init__").split()
PURE = {"crush", "snapshot", "plan", "drain", "what_if", "planner", "freeze"}
#: Nothing of these makes a plan another one.
OUTSIDE = {"mgr_module", "time", "datetime", "random", "threading"}
#: The one exception: they give way to other threads, and may be told to end. Which clock and which
#: thread that is about only those know that bind a slice to a thread (runtime/time_slice.py).
GIVING_WAY = {"give_way", "grouped", "piecewise", "release", "sorted_piecewise", "told_to_end"}
#: Kept by several threads: the store of plans.
NOT_PURE = {"plan.store"}


def imports_in(path: Path) -> Iterator[ast.ImportFrom]:
    """Every import of a file, in functions and under TYPE_CHECKING too; `import a` as from a."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.ImportFrom):
            yield node
        elif isinstance(node, ast.Import):
            for alias in node.names:
                yield ast.ImportFrom(alias.name, [], 0)


class Package:
    """The Python files below `root` and what they import from one another.

    `layers` names folders and single files, dotted and relative to the package, from the lowest
    to the highest. A file may import what is in its own layer or in a lower one.
    """

    def __init__(self, root: Path, layers: Sequence[str]) -> None:
        self.root = root
        self.layers = layers
        #: By dotted names, relative to the package; a folder's __init__ is the folder.
        self.files = {self._name_of(path): path for path in sorted(root.rglob("*.py"))}
        #: Of each file, which of the package's files it imports.
        self.imports: Dict[str, Set[str]] = {
            name: set(self._imports_of(path)) for name, path in self.files.items()}

    def _name_of(self, path: Path) -> str:
        name = ".".join(path.relative_to(self.root).with_suffix("").parts)
        return name.replace(".__init__", "")

    def layer_of(self, name: str) -> int:
        """Number of the longest layer that a file's dotted name begins with."""
        fitting = [layer for layer in self.layers if f"{name}.".startswith(f"{layer}.")]
        assert fitting, f"{name} belongs to no layer"
        return self.layers.index(max(fitting, key=len))

    def _imports_of(self, path: Path) -> Iterator[str]:
        for node in imports_in(path):
            if not node.level:
                continue
            folder = path.parents[node.level - 1].relative_to(self.root)
            target = ".".join([*folder.parts, *(node.module or "").split()])
            for alias in node.names:
                inner = f"{target}.{alias.name}".strip(".")
                yield inner if inner in self.files else target

    def upward_imports(self, name: str) -> Set[str]:
        """What a file imports from higher layers."""
        own = self.layer_of(name)
        return {target for target in self.imports[name] if self.layer_of(target) > own}


MODULE = Package(ROOT, LAYERS)
PACKAGES = [MODULE, Package(_TOP / "mgr_stub", STUB_LAYERS)]
EACH = pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.root.name)


@EACH
def test_files_import_downwards_only(package: Package) -> None:
    for name in package.imports:
        assert not package.upward_imports(name), name


@EACH
def test_no_files_import_each_other_in_a_circle(package: Package) -> None:
    TopologicalSorter(package.imports).prepare()


@EACH
def test_every_folder_says_what_lives_there_and_what_it_may_import(package: Package) -> None:
    for folder in {path.parent for path in package.files.values()} - {package.root}:
        text = ast.get_docstring(parsed(folder / "__init__.py"))
        assert "import" in str(text).lower(), folder


@pytest.mark.parametrize("name", [
    name for name in MODULE.files if name.split(".")[0] in PURE and name not in NOT_PURE])
def test_what_plans_knows_neither_the_mgr_nor_a_clock(name: str) -> None:
    for node in imports_in(MODULE.files[name]):
        names = {alias.name for alias in node.names}
        assert node.level or str(node.module).split(".")[0] not in OUTSIDE
        assert "time_slice" not in names
        if "runtime.time_slice" in str(node.module):
            assert names <= GIVING_WAY

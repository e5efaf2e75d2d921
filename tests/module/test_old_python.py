"""On a Python that is too old the package can still be imported, and says what it needs."""
from __future__ import annotations

import ast
import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List, Tuple

import pytest

_PACKAGE = Path(__file__).resolve().parents[2] / "equilibrium_mgr"
#: All that an old Python compiles and runs.
_FOR_OLD_PYTHON = ("__init__.py", "old_python.py")
#: What there is of `mgr_module` in Ceph 16: its own needs more than an old Python.
_MGR_MODULE = """
class MgrModule(object):
    COMMANDS = []
    MODULE_OPTIONS = []
    @staticmethod
    def can_run():
        return True, ""
"""
#: Finds the module class as ceph-mgr does, and asks it what ceph-mgr asks.
_AS_A_MGR_LOADS_IT = """
import json, sys
sys.path[:0] = [%r, %r]
import mgr_module, equilibrium_mgr
found = [value for value in vars(equilibrium_mgr).values() if isinstance(value, type)
         and issubclass(value, mgr_module.MgrModule) and value is not mgr_module.MgrModule]
print(json.dumps([len(found), found[0].can_run(), found[0].COMMANDS, found[0].MODULE_OPTIONS]))
"""


def _old_pythons() -> List[str]:
    """Interpreters of 3.6 to 3.8 on this machine that start."""
    found: Dict[str, str] = {}
    places = sorted(Path.home().glob(".pyenv/versions/3.[678]*/bin/python3"))
    for path in [*places, *(Path(f"/usr/bin/python3.{minor}") for minor in (6, 7, 8))]:
        if not path.exists():
            continue
        said = subprocess.run([str(path), "-c",
                               "import sys; print('%d.%d' % sys.version_info[:2])"],
                              stdout=subprocess.PIPE, text=True, check=False).stdout.strip()
        if said in ("3.6", "3.7", "3.8"):
            found.setdefault(said, str(path))
    return [found[version] for version in sorted(found)]


def _check(can_run: Tuple[bool, str], version: str) -> None:
    runs, sentence = can_run
    assert runs is False
    assert "3.9" in sentence
    assert version in sentence
    assert "\n" not in sentence


@pytest.mark.parametrize("python", _old_pythons() or [None])
def test_an_old_python_loads_it_and_is_told_in_one_sentence(python: Any, tmp_path: Path) -> None:
    if python is None:
        pytest.skip("no Python older than 3.9 on this machine")
    (tmp_path / "mgr_module.py").write_text(_MGR_MODULE)
    script = _AS_A_MGR_LOADS_IT % (str(tmp_path), str(_PACKAGE.parent))
    done = subprocess.run([python, "-B", "-c", script], capture_output=True,
                          text=True, check=False)
    assert done.returncode == 0, done.stderr
    count, can_run, commands, options = json.loads(done.stdout)
    assert (count, commands, options) == (1, [], [])
    _check(can_run, "has 3.")


@pytest.mark.parametrize("name", _FOR_OLD_PYTHON)
def test_what_an_old_python_reads_is_in_its_language(name: str) -> None:
    tree = ast.parse((_PACKAGE / name).read_text(), feature_version=(3, 6))
    imported = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert all(node.module != "__future__" for node in imported)
    # before the version is known nothing is imported but sys
    first = next(node for node in tree.body if not isinstance(node, ast.Expr))
    assert isinstance(first, ast.Import)
    assert [alias.name for alias in first.names] == ["sys"]


def test_the_version_decides_what_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 8, 18, "final", 0))
    name = "equilibrium_for_old_python"
    spec = importlib.util.spec_from_file_location(
        name, str(_PACKAGE / "__init__.py"), submodule_search_locations=[str(_PACKAGE)])
    assert spec is not None
    assert spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, package)
    spec.loader.exec_module(package)
    loaded = [module for module in sys.modules if module.startswith(name + ".")]
    for module in loaded:
        monkeypatch.delitem(sys.modules, module)
    assert loaded == [name + ".old_python"]
    _check(package.Module.can_run(), "3.8")

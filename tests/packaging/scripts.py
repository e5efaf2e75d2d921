"""Runs the scripts of the packaging folder, on copies of the module and in roots of their own."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Dict, List

ROOT = Path(__file__).resolve().parents[2]
MODULE = ROOT / "equilibrium_mgr"
MODULE_PATH = Path("usr/share/ceph/mgr")


def run(script: str, *arguments: object, module: Path = MODULE,
        **environment: str) -> subprocess.CompletedProcess[str]:
    """One of the packaging scripts with these arguments; never raises for its exit code."""
    kept: Dict[str, str] = {name: value for name, value in os.environ.items()
                            if name != "SOURCE_DATE_EPOCH"}
    argv = ["sh", str(module / "packaging" / script), *map(str, arguments)]
    return subprocess.run(argv, env={**kept, **environment}, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=60)


def said(*arguments: object, code: int = 0, module: Path = MODULE, **environment: str) -> str:
    """The output of `install.sh`, of stderr if it fails; it ends with this exit code."""
    answer = run("install.sh", *arguments, module=module, **environment)
    assert answer.returncode == code, answer.stderr
    return answer.stderr if code else answer.stdout


def with_tool(folder: Path, name: str, text: str) -> str:
    """A PATH with a command that prints a text."""
    folder.mkdir()
    (folder / "text").write_text(text)
    (folder / name).write_text(f"#!/bin/sh\ncat {folder}/text\n")
    (folder / name).chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


def fake_root(folder: Path) -> Path:
    """A system on which Ceph's mgr is installed, as far as the script looks."""
    (folder / MODULE_PATH / "balancer").mkdir(parents=True)
    (folder / MODULE_PATH / "mgr_module.py").write_text("")
    (folder / "usr" / "bin").mkdir(parents=True)
    (folder / "usr" / "bin" / "ceph-mgr").write_text("")
    return folder


def source_copy(folder: Path, version: str) -> Path:
    """A copy of the module outside any checkout, with that version."""
    module = folder / "equilibrium_mgr"
    shutil.copytree(MODULE, module, ignore=shutil.ignore_patterns("__pycache__"))
    (module / "version.py").write_text(f'"""The version."""\nVERSION = "{version}"\n')
    return module


def files_below(folder: Path) -> List[str]:
    """Relative paths of all files below a folder."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())

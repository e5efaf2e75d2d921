"""`install.sh` puts what a mgr needs into its module path, again or in place, and removes it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.packaging.scripts import (
    MODULE, MODULE_PATH, fake_root, files_below, said, source_copy, with_tool)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return fake_root(tmp_path / "root")


@pytest.fixture
def installed(root: Path) -> Path:
    """The folder of the installed module."""
    return root / MODULE_PATH / "equilibrium"


def test_what_a_mgr_needs_is_installed_and_nothing_else(root: Path, installed: Path) -> None:
    said("--root", root)
    found = files_below(installed)
    python = [name for name in files_below(MODULE) if name.endswith(".py")]
    assert [name for name in found if name.endswith(".py")] == python
    for name in found:
        assert name.endswith((".py", ".json", ".yml", ".yaml"))
        assert "__pycache__" not in name and not name.startswith("packaging")


def test_what_is_installed_can_be_imported_under_its_name(root: Path) -> None:
    said("--root", root)
    program = ("import sys; sys.path[:0] = [sys.argv[1], sys.argv[2]]\n"
               "from mgr_stub.mgr.install import install; install(18)\n"
               "import equilibrium; print(equilibrium.Module.__module__)")
    answer = subprocess.run(
        [sys.executable, "-B", "-c", program, str(root / MODULE_PATH), str(MODULE.parent)],
        capture_output=True, text=True)
    assert answer.stdout.strip() == "equilibrium.module", answer.stderr


def test_again_changes_nothing(root: Path) -> None:
    said("--root", root)
    before = files_below(root)
    assert "already" in said("--root", root)
    assert files_below(root) == before
    assert os.listdir(root / "usr/share/ceph") == ["mgr"]


def test_an_upgrade_leaves_no_file_of_the_old_version(root: Path, installed: Path,
                                                      tmp_path: Path) -> None:
    old, new = (source_copy(tmp_path / version, version) for version in ("1.0.0", "1.1.0"))
    (old / "gone.py").write_text('"""Gone in 1.1.0."""\n')
    assert "1.0.0 is installed" in said("--root", root, module=old)
    (installed / "__pycache__").mkdir()
    told = said("--root", root, module=new)
    assert "upgraded from 1.0.0 to 1.1.0" in told and "ceph mgr fail" in told
    assert not (installed / "gone.py").exists()
    assert not (installed / "__pycache__").exists()
    assert 'VERSION = "1.1.0"' in (installed / "version.py").read_text()


def test_a_link_into_a_checkout_is_replaced_and_the_checkout_stays(
        root: Path, installed: Path, tmp_path: Path) -> None:
    checkout = source_copy(tmp_path / "checkout", "1.0.0")
    installed.symlink_to(checkout)
    said("--root", root)
    assert not installed.is_symlink() and installed.is_dir()
    assert (checkout / "module.py").exists()


def test_remove_leaves_the_rest(root: Path) -> None:
    before = files_below(root)
    said("--root", root)
    assert "What stays" in said("--root", root, "--remove")
    assert files_below(root) == before
    assert "not installed" in said("--root", root, "--remove")


def test_without_ceph_it_refuses_in_a_sentence(tmp_path: Path) -> None:
    assert "no Ceph mgr from packages here" in said("--root", tmp_path, code=1)
    assert files_below(tmp_path) == []


def test_an_old_python_of_the_mgr_is_refused(root: Path, installed: Path, tmp_path: Path) -> None:
    path = with_tool(tmp_path / "tools", "ldd", "libpython3.6m.so.1.0 => /lib64/libpython3.6m\n")
    assert "Python 3.6; equilibrium needs 3.9 or newer" in said(
        "--root", root, code=1, PATH=path)
    assert not installed.exists()


def test_a_folder_of_an_rpm_package_is_left_to_rpm(root: Path, installed: Path,
                                                   tmp_path: Path) -> None:
    said("--root", root)
    (root / "var/lib/rpm").mkdir(parents=True)
    path = with_tool(tmp_path / "tools", "rpm", "ceph-mgr-equilibrium")
    for arguments in ((), ("--remove",)):
        assert "belongs to the package ceph-mgr-equilibrium:" in said(
            "--root", root, *arguments, code=1, PATH=path)
    assert (installed / "module.py").exists()


def test_a_copy_for_a_mount_needs_no_ceph(tmp_path: Path) -> None:
    mounted = tmp_path / "mounted"
    for _ in range(2):
        said("--to", mounted)
        assert (mounted / "module.py").exists()
    assert os.listdir(tmp_path) == ["mounted"]


ENABLED = """{"always_on_modules": ["balancer"],
 "enabled_modules": [
"iostat", "equilibrium"], "disabled_modules": []}
"""
DISABLED = """{"enabled_modules": ["iostat"], "disabled_modules": [{"name": "equilibrium"}]}
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="without --root the script needs root")
def test_an_enabled_module_is_not_removed(root: Path, installed: Path, tmp_path: Path) -> None:
    """`ceph mgr module ls` tells."""
    said("--root", root)
    arguments = ["--module-path", root / MODULE_PATH, "--remove"]
    assert "ceph mgr module disable equilibrium" in said(
        *arguments, code=1, PATH=with_tool(tmp_path / "on", "ceph", ENABLED))
    assert installed.exists()
    said(*arguments, PATH=with_tool(tmp_path / "off", "ceph", DISABLED))
    assert not installed.exists()

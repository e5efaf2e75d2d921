"""`install.sh` puts what a mgr needs into its module path, anew or in place, and removes it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.packaging.scripts import MODULE, MODULE_PATH, fake_root, files_below, run, source_copy


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return fake_root(tmp_path / "root")


def installed(root: Path) -> Path:
    return root / MODULE_PATH / "equilibrium"


def test_what_a_mgr_needs_is_installed_and_nothing_else(root: Path) -> None:
    answer = run("install.sh", "--root", root)
    assert answer.returncode == 0, answer.stderr
    found = files_below(installed(root))
    python = sorted(str(path.relative_to(MODULE)) for path in MODULE.rglob("*.py"))
    assert [name for name in found if name.endswith(".py")] == python
    assert {Path(name).suffix for name in found} <= {".py", ".json", ".yml", ".yaml"}
    assert not [name for name in found if "__pycache__" in name or name.startswith("packaging")]


def test_what_is_installed_can_be_imported_under_its_name(root: Path) -> None:
    run("install.sh", "--root", root)
    program = ("import sys; sys.path[:0] = [sys.argv[1], sys.argv[2]]\n"
               "from mgr_stub.mgr.install import install; install(18)\n"
               "import equilibrium; print(equilibrium.Module.__module__)")
    answer = subprocess.run(
        [sys.executable, "-B", "-c", program, str(root / MODULE_PATH), str(MODULE.parent)],
        capture_output=True, text=True)
    assert answer.stdout.strip() == "equilibrium.module", answer.stderr


def test_again_changes_nothing(root: Path) -> None:
    run("install.sh", "--root", root)
    before = files_below(root)
    answer = run("install.sh", "--root", root)
    assert answer.returncode == 0 and "already" in answer.stdout
    assert files_below(root) == before
    assert sorted(path.name for path in (root / "usr/share/ceph").iterdir()) == ["mgr"]


def test_an_upgrade_leaves_no_file_of_the_old_version(root: Path, tmp_path: Path) -> None:
    old, new = (source_copy(tmp_path / version, version) for version in ("1.0.0", "1.1.0"))
    (old / "gone.py").write_text('"""Gone in 1.1.0."""\n')
    assert "1.0.0 is installed" in run("install.sh", "--root", root, module=old).stdout
    (installed(root) / "__pycache__").mkdir()
    answer = run("install.sh", "--root", root, module=new)
    assert "upgraded from 1.0.0 to 1.1.0" in answer.stdout
    assert "ceph mgr fail" in answer.stdout
    assert not (installed(root) / "gone.py").exists()
    assert not (installed(root) / "__pycache__").exists()
    assert 'VERSION = "1.1.0"' in (installed(root) / "version.py").read_text()


def test_a_link_into_a_checkout_is_replaced_and_the_checkout_stays(
        root: Path, tmp_path: Path) -> None:
    checkout = source_copy(tmp_path / "checkout", "1.0.0")
    installed(root).symlink_to(checkout)
    assert run("install.sh", "--root", root).returncode == 0
    assert not installed(root).is_symlink() and installed(root).is_dir()
    assert (checkout / "module.py").exists()


def test_remove_leaves_the_rest(root: Path) -> None:
    before = files_below(root)
    run("install.sh", "--root", root)
    answer = run("install.sh", "--root", root, "--remove")
    assert answer.returncode == 0 and "What stays" in answer.stdout
    assert files_below(root) == before
    again = run("install.sh", "--root", root, "--remove")
    assert again.returncode == 0 and "not installed" in again.stdout


def test_without_ceph_it_refuses_in_a_sentence(tmp_path: Path) -> None:
    answer = run("install.sh", "--root", tmp_path)
    assert answer.returncode == 1
    assert "no Ceph mgr from packages here" in answer.stderr
    assert files_below(tmp_path) == []


def test_an_old_python_of_the_mgr_is_refused(root: Path, tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "ldd").write_text("#!/bin/sh\necho 'libpython3.6m.so.1.0 => /lib64/libpython3.6m'\n")
    (tools / "ldd").chmod(0o755)
    answer = run("install.sh", "--root", root, PATH=f"{tools}:{os.environ['PATH']}")
    assert answer.returncode == 1
    assert "Python 3.6; equilibrium needs 3.9 or newer" in answer.stderr
    assert not installed(root).exists()


def test_a_folder_of_an_rpm_package_is_left_to_rpm(root: Path, tmp_path: Path) -> None:
    run("install.sh", "--root", root)
    tools = tmp_path / "tools"
    for folder in (root / "var" / "lib" / "rpm", tools):
        folder.mkdir(parents=True)
    (tools / "rpm").write_text("#!/bin/sh\nprintf ceph-mgr-equilibrium\n")
    (tools / "rpm").chmod(0o755)
    for arguments in ((), ("--remove",)):
        answer = run("install.sh", "--root", root, *arguments,
                     PATH=f"{tools}:{os.environ['PATH']}")
        assert answer.returncode == 1
        assert "belongs to the package ceph-mgr-equilibrium:" in answer.stderr
    assert (installed(root) / "module.py").exists()


def test_a_copy_for_a_mount_needs_no_ceph(tmp_path: Path) -> None:
    answer = run("install.sh", "--to", tmp_path / "mounted")
    assert answer.returncode == 0, answer.stderr
    assert (tmp_path / "mounted" / "module.py").exists()
    assert run("install.sh", "--to", tmp_path / "mounted").returncode == 0
    assert [path.name for path in tmp_path.iterdir()] == ["mounted"]


def enabled_cluster(folder: Path, modules: str) -> str:
    """A PATH on which `ceph` answers `mgr module ls`."""
    folder.mkdir()
    (folder / "ceph").write_text(f"#!/bin/sh\ncat <<'E'\n{modules}\nE\n")
    (folder / "ceph").chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


@pytest.mark.skipif(os.geteuid() != 0, reason="without --root the script needs root")
def test_an_enabled_module_is_not_removed(root: Path, tmp_path: Path) -> None:
    run("install.sh", "--root", root)
    path = ["--module-path", root / MODULE_PATH]
    enabled = enabled_cluster(
        tmp_path / "on", '{"always_on_modules": ["balancer"],\n "enabled_modules": [\n'
        '"iostat", "equilibrium"], "disabled_modules": []}')
    answer = run("install.sh", *path, "--remove", PATH=enabled)
    assert answer.returncode == 1 and "ceph mgr module disable equilibrium" in answer.stderr
    assert installed(root).exists()
    disabled = enabled_cluster(
        tmp_path / "off", '{"enabled_modules": ["iostat"],'
        ' "disabled_modules": [{"name": "equilibrium"}]}')
    assert run("install.sh", *path, "--remove", PATH=disabled).returncode == 0
    assert not installed(root).exists()

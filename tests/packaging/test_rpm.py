"""The RPM package holds the files of the Debian one, and says the same; built where rpm is."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.packaging.scripts import MODULE, MODULE_PATH, ROOT, fake_root, files_below, run

pytestmark = pytest.mark.skipif(shutil.which("rpmbuild") is None, reason="needs rpmbuild")

SPEC = MODULE / "packaging" / "ceph-mgr-equilibrium.spec"


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rpm")
    built = subprocess.run(
        ["rpmbuild", "-bb", f"--define=_topdir {folder}", f"--define=_rpmdir {folder}", str(SPEC)],
        cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert built.returncode == 0, built.stderr
    return next(folder.glob("noarch/ceph-mgr-equilibrium-*.rpm"))


def asked(package: Path, *arguments: str) -> str:
    return subprocess.run(["rpm", "-qp", *arguments, str(package)], capture_output=True, text=True,
                          check=True).stdout


def test_files_are_those_of_an_installation(package: Path, tmp_path: Path) -> None:
    run("install.sh", "--root", fake_root(tmp_path))
    installed = tmp_path / MODULE_PATH / "equilibrium"
    listed = asked(package, "--qf", "[%{FILEMODES:perms} %{FILEUSERNAME} %{FILENAMES}\\n]")
    rows = [line.split() for line in listed.splitlines()]
    assert {(mode[1:], owner) for mode, owner, _ in rows} == {
        ("rwxr-xr-x", "root"), ("rw-r--r--", "root")}
    prefix = f"/{MODULE_PATH}/equilibrium/"
    assert sorted(name[len(prefix):] for mode, _, name in rows
                  if name.startswith(prefix) and mode[0] == "-") == files_below(installed)
    assert "ceph-mgr >= 2:16" in asked(package, "--requires").splitlines()


def test_scripts_say_what_those_of_the_debian_package_say(package: Path) -> None:
    def said(script: str, count: int) -> str:
        text = asked(package, "--qf", f"%{{{script}}}")
        return subprocess.run(["sh", "-c", text, "sh", str(count)], capture_output=True, text=True,
                              check=True).stdout
    assert "ceph mgr module enable equilibrium" in said("POSTIN", 1)
    assert "keeps the old code" in said("POSTIN", 2)
    assert "keeps the old code" not in said("POSTIN", 1) and said("PREIN", 2) == ""
    assert "ceph mgr module disable equilibrium" in said("PREUN", 0) and said("PREUN", 1) == ""

"""The Debian package holds what a mgr needs, is the same at each build, and has sound scripts."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Dict, List

import pytest

from tests.packaging.scripts import MODULE, run, source_copy

pytestmark = pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="needs dpkg-deb")


def build(folder: Path, *arguments: str, module: Path = MODULE, **environment: str) -> Path:
    answer = run("build_deb.sh", "--output", folder, *arguments, module=module, **environment)
    assert answer.returncode == 0, answer.stderr
    return Path(answer.stdout.strip())


PLACES = ("./usr/share/ceph/mgr/equilibrium/", "./usr/share/doc/ceph-mgr-equilibrium/",
          "./usr/share/lintian/overrides/ceph-mgr-equilibrium")


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("deb"))


def output(*argv: object) -> str:
    return subprocess.run([*map(str, argv)], capture_output=True, text=True, check=True).stdout


def control(package: Path) -> Dict[str, str]:
    lines = output("dpkg-deb", "--field", package).splitlines()
    return dict(line.split(": ", 1) for line in lines if not line.startswith(" "))


def listed(package: Path) -> List[List[str]]:
    return [line.split() for line in output("dpkg-deb", "--contents", package).splitlines()]


def test_control_says_what_it_needs(package: Path) -> None:
    fields = control(package)
    assert fields["Package"] == "ceph-mgr-equilibrium"
    assert fields["Depends"] == "ceph-mgr (>= 16)"
    assert fields["Architecture"] == "all"


def test_files_stand_where_a_mgr_looks_and_belong_to_root(package: Path) -> None:
    names = set()
    for mode, owner, _, _, _, path in listed(package):
        names.add(path)
        assert owner == "root/root"
        assert mode == ("drwxr-xr-x" if path.endswith("/") else "-rw-r--r--"), path
        # a folder that leads there, or what is in it
        assert any(place.startswith(path) or path.startswith(place) for place in PLACES), path
        assert "__pycache__" not in path and "packaging" not in path
    assert "./usr/share/ceph/mgr/equilibrium/module.py" in names
    assert "./usr/share/doc/ceph-mgr-equilibrium/copyright" in names


def test_the_version_is_the_modules_and_stands_in_the_package(tmp_path: Path) -> None:
    built = build(tmp_path, module=source_copy(tmp_path / "source", "3.2.1"))
    assert control(built)["Version"] == "3.2.1"
    output("dpkg-deb", "--extract", built, tmp_path / "files")
    text = (tmp_path / "files/usr/share/ceph/mgr/equilibrium/version.py").read_text()
    assert 'VERSION = "3.2.1"' in text


@pytest.mark.full
def test_a_build_of_a_later_commit_is_a_newer_version(tmp_path: Path) -> None:
    module = source_copy(tmp_path, "3.2.1")
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b"]
    output(*git, "init", "-q")
    versions = []
    for number in (1, 2):
        (module / "more.py").write_text(f'"""{number}."""\n')
        output(*git, "add", "equilibrium_mgr")
        date = f"2026-01-0{number}T00:00:00Z"
        subprocess.run([*git, "commit", "-qm", "a"], check=True,
                       env={"PATH": "/usr/bin:/bin", "GIT_COMMITTER_DATE": date})
        versions.append(control(build(tmp_path / str(number), module=module))["Version"])
    for lower, higher in (("3.2.1", versions[0]), versions, (versions[1], "3.2.2")):
        assert subprocess.run(["dpkg", "--compare-versions", lower, "lt", higher]).returncode == 0
    output(*git, "tag", "v3.2.1")
    assert control(build(tmp_path / "tagged", module=module))["Version"] == "3.2.1"


@pytest.mark.full
def test_a_build_is_reproducible(package: Path, tmp_path: Path) -> None:
    again = build(tmp_path / "again")
    assert again.name == package.name
    assert again.read_bytes() == package.read_bytes()
    other = [build(tmp_path / name, SOURCE_DATE_EPOCH="1767225600",
                   module=source_copy(tmp_path / name, "1.0.0")) for name in ("a", "b")]
    assert other[0].read_bytes() == other[1].read_bytes()


def test_checksums_cover_every_file(package: Path, tmp_path: Path) -> None:
    output("dpkg-deb", "--raw-extract", package, tmp_path / "raw")
    sums = (tmp_path / "raw/DEBIAN/md5sums").read_text()
    files = {line[-1][2:] for line in listed(package) if not line[-1].endswith("/")}
    assert {line.split("  ", 1)[1] for line in sums.splitlines()} == files
    check = subprocess.run(["md5sum", "--check", "--quiet", "DEBIAN/md5sums"],
                           cwd=tmp_path / "raw", capture_output=True, text=True)
    assert check.returncode == 0, check.stdout


@pytest.mark.parametrize("name", ["preinst", "postinst", "prerm"])
def test_scripts_of_the_package_restart_nothing(name: str) -> None:
    """A mgr is restarted when the operator says so; a package may not ask the cluster either."""
    script = MODULE / "packaging" / "debian" / name
    assert subprocess.run(["sh", "-n", str(script)]).returncode == 0
    lines = script.read_text().splitlines()
    inside = False
    for line in lines:
        if inside or line.startswith("#"):
            inside = inside and line != "EOF"
            continue
        inside = "<<'EOF'" in line
        assert not {"systemctl", "service", "ceph"} & set(line.split()), line


def test_after_an_upgrade_it_says_what_a_running_mgr_needs() -> None:
    script = MODULE / "packaging" / "debian" / "postinst"
    fresh, upgraded = output(script, "configure", ""), output(script, "configure", "0.1.0")
    assert "ceph mgr module enable equilibrium" in fresh
    assert "keeps the old code" in upgraded and "ceph mgr fail" in upgraded
    assert output(script, "abort-remove") == ""


def test_on_removal_it_says_what_comes_first() -> None:
    script = MODULE / "packaging" / "debian" / "prerm"
    said = output("sh", script, "remove")
    assert said.index("ceph equilibrium off") < said.index("ceph mgr module disable equilibrium")
    assert "upmap items" in said
    assert output("sh", script, "upgrade", "2.0") == ""


@pytest.mark.skipif(shutil.which("lintian") is None, reason="needs lintian")
def test_lintian_has_nothing_to_say(tmp_path: Path) -> None:
    built = build(tmp_path, DEBEMAIL="maintainer@example.com")
    done = subprocess.run(["lintian", "--allow-root", "--pedantic", str(built)],
                          capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("", 0)

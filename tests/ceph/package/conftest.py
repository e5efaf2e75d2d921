"""A cluster whose mgr loads its modules from where Ceph's packages put them, and built packages.

The system's module folder is shared with nobody here: the other clusters link each module of Ceph
into a folder of their own. Whatever happens, the package is gone at the end.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Dict, Iterator

import pytest

from ..cluster import DaemonCluster
from ..conftest import PACKAGE
from ..harness import workload
from ..release import RELEASES

NAME = "ceph-mgr-equilibrium"
OLD, NEW = "0.0.1+test", "0.0.2+test"
HOSTS = {"h0": (1.5,), "h1": (2.0,), "h2": (1.5,), "h3": (2.5,)}
MEBIBYTES = 900


class SystemCluster(DaemonCluster):
    """A cluster whose mgr_module_path is the system's."""

    def _fill_module_folder(self, folder: Path) -> None:
        folder.symlink_to(self.release.module_path)


def dpkg(*arguments: object) -> str:
    """`dpkg` with these arguments; what it and the package's scripts said."""
    done = subprocess.run(["dpkg", *map(str, arguments)], stdin=subprocess.DEVNULL, timeout=120,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout
    return done.stdout


def script(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """`install.sh` of this checkout with these arguments, whatever its exit code."""
    argv = ["sh", str(PACKAGE / "packaging" / "install.sh"), *map(str, arguments)]
    return subprocess.run(argv, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", **environment},
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)


def installed_version() -> str:
    """The version that dpkg has installed, empty if none is."""
    done = subprocess.run(["dpkg-query", "-W", "-f", "${db:Status-Abbrev}${Version}", NAME],
                          capture_output=True, text=True)
    return done.stdout[3:].strip() if done.stdout.startswith("ii ") else ""


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dict[str, Path]]:
    """Two builds of this checkout's module, by version; uninstalled at the end."""
    assert installed_version() in ("", OLD, NEW), f"{NAME} is installed on this machine"
    folder = tmp_path_factory.mktemp("packages")
    builder = PACKAGE / "packaging" / "build_deb.sh"
    built = {}
    for version in (OLD, NEW):
        done = subprocess.run(["sh", str(builder), "--output", str(folder), "--version", version],
                              check=True, capture_output=True, text=True)
        built[version] = Path(done.stdout.strip())
    dpkg("--purge", NAME)
    yield built
    dpkg("--purge", NAME)


@pytest.fixture(scope="package")
def cluster(request: pytest.FixtureRequest,
            packages: Dict[str, Path]) -> Iterator[DaemonCluster]:
    """Small and unequally full, one mgr, the module not there yet."""
    release = RELEASES[request.param]
    if release.root is not None:
        pytest.skip("the package is installed into the system, and this release is not its own")
    with SystemCluster(release, PACKAGE, request.config.getoption("--ceph-keep"), HOSTS,
                       {"osd recovery sleep": "0.2"}) as made:
        made.mgr("balancer off")
        workload.make_pool(made, "data", pgs=64)
        workload.set_pool(made, "data", "size", 2)
        workload.write(made, "data", MEBIBYTES)
        workload.wait_clean(made)
        yield made

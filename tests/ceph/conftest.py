"""Real-Ceph tests: only with `--ceph=16,18,20`, one cluster per release, figures at the end.

    python -m pytest tests/ceph --ceph=16 [--ceph-keep]

Without the option nothing here is collected. A release that cannot be had on this machine ends the
run with exit code 69 and one sentence.
"""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Tuple

import pytest

from .cluster import HOSTS, DaemonCluster
from .harness import workload
from .harness.commands import ready_plan
from .release import EXIT_UNAVAILABLE, RELEASES, ReleaseUnavailable

PACKAGE = Path(__file__).resolve().parents[2] / "equilibrium_mgr"
SLEEP_INTERVAL = 2
MAX_MISPLACED = 0.2
FIGURES = pytest.StashKey[List[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("real Ceph")
    group.addoption("--ceph", default="", metavar="MAJORS",
                    help="run the tests on real daemons of these releases, such as 16,18,20")
    group.addoption("--ceph-every", action="store_true",
                    help="run every test on each of these releases, however long it takes")
    group.addoption("--ceph-long", action="store_true",
                    help="run the tests that take many minutes each, too")
    group.addoption("--thrash-minutes", type=float, default=2.5, metavar="N",
                    help="how long a cluster is thrashed")
    group.addoption("--conformance-steps", type=int, default=0, metavar="N",
                    help="play N steps of random events beside the simulator, not a short stream")
    group.addoption("--conformance-seed", type=int, default=1, metavar="SEED",
                    help="which events those are")
    group.addoption("--ceph-keep", action="store_true", help="leave the clusters' files behind")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "releases(*majors): Ceph releases a test runs on")
    config.addinivalue_line("markers", "long: takes many minutes; runs with --ceph-long alone")
    config.stash[FIGURES] = []
    if _wanted(config):  # a terminated run clears up as an interrupted one does
        signal.signal(signal.SIGTERM, signal.default_int_handler)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> Optional[bool]:
    here = Path(__file__).resolve().parent
    if not _wanted(config) and here in collection_path.resolve().parents:
        return True
    return None


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "cluster" in metafunc.fixturenames:
        majors = _wanted(metafunc.config)
        metafunc.parametrize("cluster", majors, indirect=True,
                             ids=[f"ceph{major}" for major in majors])


def pytest_collection_modifyitems(config: pytest.Config, items: List[pytest.Item]) -> None:
    here: List[pytest.Item] = []
    elsewhere: List[pytest.Item] = []
    for item in items:
        if _runs_there(item):
            here.append(item)
        else:
            elsewhere.append(item)
    if elsewhere:
        config.hook.pytest_deselected(items=elsewhere)
        items[:] = here


def _runs_there(item: pytest.Item) -> bool:
    """Whether an item is for the release that it was parametrized with."""
    if item.get_closest_marker("long") and not item.config.getoption("--ceph-long", False):
        return False
    mark = item.get_closest_marker("releases")
    if mark is None or item.config.getoption("--ceph-every"):
        return True
    callspec = getattr(item, "callspec", None)
    major = callspec.params.get("cluster") if callspec else None
    return major is None or major in mark.args


def pytest_collection_finish(session: pytest.Session) -> None:
    if session.config.option.collectonly:
        return
    for major in _wanted(session.config):
        try:
            RELEASES[major].prepare()
        except ReleaseUnavailable as error:
            pytest.exit(str(error), returncode=EXIT_UNAVAILABLE)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    outcome: Any = yield
    report = outcome.get_result()
    cluster = getattr(item, "funcargs", {}).get("cluster")
    if report.failed and cluster is not None:
        report.sections.append(("mgr log", cluster.module_log()))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    figures = config.stash.get(FIGURES, [])
    if figures:
        terminalreporter.section("figures")
        for line in figures:
            terminalreporter.write_line(line)


def _wanted(config: pytest.Config) -> List[int]:
    text = str(config.getoption("--ceph", "") or "")
    majors = [int(part) for part in text.split(",") if part.strip().isdigit()]
    unknown = sorted(set(majors) - set(RELEASES))
    if unknown or (text and not majors):
        raise pytest.UsageError(f"--ceph={text}: known releases are {sorted(RELEASES)}")
    return majors


def new_cluster(request: pytest.FixtureRequest, hosts: Mapping[str, Tuple[float, ...]] = HOSTS,
                osd_options: Mapping[str, str] = {}) -> DaemonCluster:
    """Of the release that a fixture is asked for; not begun."""
    keep = request.config.getoption("--ceph-keep")
    return DaemonCluster(RELEASES[request.param], PACKAGE, keep, hosts, osd_options)


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest) -> Iterator[DaemonCluster]:
    """A filled, visibly unequal cluster of one release, two mgrs, the module enabled."""
    release = RELEASES[request.param]
    figures = request.config.stash[FIGURES]
    started = time.monotonic()
    with new_cluster(request) as made:
        made.start_mgr("y")
        workload.make_pools(made)
        before = workload.fill(made)
        made.enable("equilibrium")
        made.set_option("sleep_interval", SLEEP_INTERVAL)
        made.set_option("max_misplaced_ratio", MAX_MISPLACED)
        made.hurry()
        filled = time.monotonic() - started
        figures.append(f"Ceph {release.version}: cluster of {len(made.osds)} OSDs filled after "
                       f"{filled:.0f} s: {before}")
        yield made
        failures, alarms = made.module_failures(), made.mispredictions()
    took = time.monotonic() - started
    figures.append(f"Ceph {release.version}: all its tests took {took:.0f} s")
    assert not failures, f"the module raised exceptions on Ceph {release.version}:\n{failures}"
    assert not alarms, f"sizes are known here, yet on Ceph {release.version}: {alarms}"


@pytest.fixture
def figure(request: pytest.FixtureRequest, cluster: DaemonCluster) -> Callable[[str], None]:
    """Notes a measured figure for the end of the run."""
    def note(text: str) -> None:
        request.config.stash[FIGURES].append(f"Ceph {cluster.release.version}: {text}")
        print(text)
    return note


@pytest.fixture
def unbalanced(cluster: DaemonCluster) -> workload.Usage:
    """The cluster without upmap items, all of it clean; its usage."""
    cluster.ceph("equilibrium off")
    cluster.ceph("equilibrium reset")
    workload.clear_upmaps(cluster)
    return workload.settled_usage(cluster)


@pytest.fixture
def plan(cluster: DaemonCluster) -> Dict[str, Any]:
    """A ready plan named `kept`; its `dump`."""
    return ready_plan(cluster, "kept")

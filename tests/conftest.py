"""Makes the package importable without Ceph, and says how much of the tests a run is to have.

The simulated mgr stands in for `mgr_module`.
"""
from __future__ import annotations

import sys
import time
from types import ModuleType
from typing import Iterator, List, NamedTuple

import pytest

from mgr_stub.frozen import collect_less_often
from mgr_stub.mgr import mgr_module_old
from mgr_stub.mgr.install import install
from tests.support.shared_run import SharedRun

install(18)
collect_less_often()

_STARTED = time.monotonic()
_RELOADED = ("mgr_module", "equilibrium_mgr")


class _Count(NamedTuple):
    """An option for the number of random cases: its value without and with `--full`."""

    name: str
    small: int
    full: int
    help: str

    @property
    def attribute(self) -> str:
        return self.name[2:].replace("-", "_")


_COUNTS = (
    _Count("--random-clusters", 4, 200, "check the properties of plans on N random clusters"),
    _Count("--cached-looks", 40, 500, "hold N snapshots against those made without a cache"),
    _Count("--event-streams", 1, 60, "play N random event streams"),
    _Count("--failures", 1, 20, "let OSDs of N random clusters fail, with steering and without"),
    _Count("--drift-streams", 1, 30, "play N random streams of drift"),
    _Count("--asked-streams", 1, 20, "play N random streams once more while commands read"),
    _Count("--operation-streams", 1, 12, "play N random streams of drains, undo and freeze"),
    _Count("--calls-apart", 15, 20, "let the mgr die at every Nth call of some stories"),
    _Count("--undo-stories", 1, 4, "undo what N random stories have changed, in nine ways each"),
    _Count("--thread-moments", 1, 12,
           "let something happen in the middle of a round at N random moments"),
    _Count("--off-moments", 1, 12, "switch the module off at N random moments of a round"),
    _Count("--storms", 1, 2, "give N random series of commands while rounds run"),
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true",
                     help="all tests, those marked `full` too, and the full number of random cases")
    parser.addoption("--only-full", action="store_true",
                     help="of --full, what a run without it leaves out")
    for count in _COUNTS:
        parser.addoption(count.name, type=int, metavar="N",
                         help=f"{count.help} (default: {count.small}, {count.full} with --full)")
    parser.addoption("--most-seconds", type=float, metavar="N",
                     help="skip the tests that would begin later than N seconds after the start")
    parser.addoption("--rewrite-scenarios", action="store_true",
                     help="write the outcome of every scenario into its file")
    parser.addoption("--rewrite-screens", action="store_true",
                     help="record the answers of all commands anew, see tests/screens")
    parser.addoption("--share", metavar="FOLDER", help="run only the tests that no other process "
                     "with the same folder has begun; tests/run starts two")
    parser.addoption("--from-end", action="store_true", help="with --share: begin with the last")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "full: needs --full, unless it is named by its node id")
    config.option.full |= config.option.only_full
    for count in _COUNTS:
        if getattr(config.option, count.attribute) is None:
            setattr(config.option, count.attribute,
                    count.full if config.option.full else count.small)
    if config.option.share:
        config.pluginmanager.register(SharedRun(config.option.share, config.option.from_end))


def pytest_collection_modifyitems(config: pytest.Config, items: List[pytest.Item]) -> None:
    left: List[pytest.Item] = []
    named = [arg.rpartition("/")[2] for arg in config.args if "::" in arg]
    for item in items:
        is_full = item.get_closest_marker("full") is not None
        if config.option.only_full:
            leaves = not is_full and not _has_cases(item)
        else:
            leaves = is_full and not config.option.full and not _is_named(item, named)
        if leaves:
            left.append(item)
    if left:
        config.hook.pytest_deselected(items=left)
        gone = set(left)
        items[:] = [item for item in items if item not in gone]


def pytest_runtest_setup(item: pytest.Item) -> None:
    most = item.config.option.most_seconds
    if most is not None and time.monotonic() - _STARTED > most:
        pytest.skip(f"not begun within {most:.0f} seconds")


def _has_cases(item: pytest.Item) -> bool:
    """True where the number of random cases decides what is run, the sum of all cases too."""
    names = set(getattr(item, "fixturenames", ()))
    if names & {"corpus", "story"} or [name for name in names if name.endswith("_seed")]:
        return True
    return "case" in names and item.path.parent.name == "properties"


def _is_named(item: pytest.Item, names: List[str]) -> bool:
    """Compares a node id with the last parts of some, with or without parameters."""
    nodeid = f"/{item.nodeid}"
    for name in names:
        if nodeid.endswith(f"/{name}") or f"/{name}[" in nodeid:
            return True
    return False


@pytest.fixture(autouse=True)
def nobody_else_wants_the_interpreter(request: pytest.FixtureRequest,
                                      monkeypatch: pytest.MonkeyPatch) -> None:
    """The module sleeps for a moment once a millisecond: a third of the time of some tests, more
    beside other processes. Where a test has threads, or is about that, it gives way still. What a
    failure leads to is computed to its end, whatever else the machine does."""
    where = "equilibrium_mgr.runtime.time_slice."
    is_about_it = request.path.parent.name in ("threads", "runtime")

    def wait_for_nobody() -> None:
        monkeypatch.setattr("equilibrium_mgr.plan_service.plan_service._MOST_SECONDS", 600.0)
        if is_about_it:
            monkeypatch.setattr(where + "_YIELD_SECONDS", 0.0)
        else:
            monkeypatch.setattr(where + "TimeSlice.__init__.__defaults__",
                                (time.monotonic, lambda seconds: None))

    def installed(release: int) -> ModuleType:
        """The package of a session of another release is imported again."""
        module = install(release)
        wait_for_nobody()
        return module
    wait_for_nobody()
    monkeypatch.setattr("mgr_stub.console.session.install", installed)


@pytest.fixture(autouse=True)
def own_mgr_module() -> Iterator[None]:
    """Sessions of another release import the package again; other tests do not see that. Before
    Ceph 20 commands are registered with `mgr_module`, which stays."""
    before = dict(sys.modules)
    registry = mgr_module_old.CLICommand.COMMANDS
    commands = dict(registry)
    yield
    if all(sys.modules.get(name) is before.get(name) for name in _RELOADED):
        return
    registry.clear()
    registry.update(commands)
    for name in [name for name in sys.modules if _is_reloaded(name)]:
        del sys.modules[name]
    sys.modules.update({name: module for name, module in before.items() if _is_reloaded(name)})


def _is_reloaded(name: str) -> bool:
    return name.partition(".")[0] in _RELOADED

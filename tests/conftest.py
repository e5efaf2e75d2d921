"""Makes the package importable without Ceph: the simulated mgr stands in for `mgr_module`."""
from __future__ import annotations

import sys
from typing import Iterator

import pytest

from mgr_stub.garbage_collection import collect_less_often
from mgr_stub.mgr.install import install

install(18)
collect_less_often()

_RELOADED = ("mgr_module", "equilibrium_mgr")


@pytest.fixture(autouse=True)
def own_mgr_module() -> Iterator[None]:
    """Sessions of another release import the package anew; other tests do not see that."""
    before = dict(sys.modules)
    yield
    if all(sys.modules.get(name) is before.get(name) for name in _RELOADED):
        return
    for name in [name for name in sys.modules if _is_reloaded(name)]:
        del sys.modules[name]
    sys.modules.update({name: module for name, module in before.items() if _is_reloaded(name)})


def _is_reloaded(name: str) -> bool:
    return name.partition(".")[0] in _RELOADED


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite-scenarios", action="store_true",
                     help="write the outcome of every scenario into its file")
    parser.addoption("--random-clusters", type=int, default=200, metavar="N",
                     help="check the properties of plans on N random clusters")
    parser.addoption("--event-streams", type=int, default=60, metavar="N",
                     help="how many random event streams to play, of 1 to 2 s of processor each")
    parser.addoption("--thread-moments", type=int, default=12, metavar="N",
                     help="let something happen in the middle of a round at N random moments")
    parser.addoption("--off-moments", type=int, default=12, metavar="N",
                     help="switch the module off at N random moments of a round")
    parser.addoption("--storms", type=int, default=2, metavar="N",
                     help="give N random series of commands while rounds run")
    parser.addoption("--spoilt-stores", type=int, default=4, metavar="N",
                     help="start on N random contents of the store, of 6 s of processor each")

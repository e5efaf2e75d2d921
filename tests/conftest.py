"""Makes the package importable without Ceph: the simulated mgr stands in for `mgr_module`."""
from __future__ import annotations

import sys
from pathlib import Path

import pytest

_REPOSITORY = str(Path(__file__).resolve().parent.parent)
if _REPOSITORY not in sys.path:
    sys.path.insert(0, _REPOSITORY)

from mgr_stub.garbage import search_seldom  # noqa: E402
from mgr_stub.install import install  # noqa: E402

install(18)
search_seldom()


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

"""Every test that takes `case` runs on all random clusters, or with @every(n) on each n-th.

    python -m pytest tests/properties --random-clusters 5000

The clusters are planned one after the other: all tests of one share its plan, and it is forgotten
before the next.
"""
from __future__ import annotations

from typing import Any, Iterator, List

import pytest

from tests.properties.corpus import Corpus
from tests.properties.planned import Planned

_CORPUS = pytest.StashKey[Corpus]()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "every(n): run on each n-th random cluster")
    config.stash[_CORPUS] = Corpus()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case" not in metafunc.fixturenames:
        return
    marker = metafunc.definition.get_closest_marker("every")
    step = marker.args[0] if marker is not None else 1
    seeds = range(0, metafunc.config.getoption("--random-clusters"), step)
    metafunc.parametrize("case", seeds, indirect=True, scope="session",
                         ids=[f"cluster{seed}" for seed in seeds])


def pytest_collection_modifyitems(items: List[pytest.Item]) -> None:
    """What is said of all clusters together comes when all have been seen."""
    items.sort(key=lambda item: "corpus" in getattr(item, "fixturenames", ())
               and "case" not in getattr(item, "fixturenames", ()))


@pytest.fixture(scope="session")
def case(request: pytest.FixtureRequest) -> Iterator[Planned]:
    yield Planned(request.param)


@pytest.fixture(scope="session")
def corpus(request: pytest.FixtureRequest) -> Corpus:
    """Figures of all clusters so far."""
    return request.config.stash[_CORPUS]


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    for line in config.stash[_CORPUS].lines():
        terminalreporter.write_line(line)

"""Fixtures for the tests of the stub: they need neither Ceph nor equilibrium_mgr."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterator, List

import pytest

from mgr_stub.console.session import Session
from mgr_stub.mgr import install
from mgr_stub.simulation.simulation import Simulation
from mgr_stub.state.cluster_builder import build_cluster
from tests.support.clusters.crush_cluster import crush_state
from tests.support.clusters.stub_states import load_fake


@pytest.fixture
def make_session() -> Iterator[Callable[..., Session]]:
    """A function of (state, release=16) that opens a Session with the fake module."""
    opened: List[Session] = []

    def make(state: Dict[str, Any], release: int = 16, **arguments: Any) -> Session:
        cluster = build_cluster(state, release)
        install.install(release)
        session = Session(Simulation(cluster), load_module=load_fake, **arguments)
        opened.append(session)
        return session

    yield make
    for session in opened:
        session.close()


@pytest.fixture(scope="module")
def state() -> Dict[str, Any]:
    """A cluster whose raw mappings are what CRUSH gives; modules with another have their own."""
    return crush_state()


@pytest.fixture
def session(make_session: Callable[..., Session], state: Dict[str, Any]) -> Session:
    return make_session(state, release=18)

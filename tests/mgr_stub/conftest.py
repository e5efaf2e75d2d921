"""Fixtures for the tests of the stub: they need neither Ceph nor equilibrium_mgr."""

from __future__ import annotations

import os
import sys
from typing import Any, Callable, Dict, Iterator, List

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [path for path in (HERE, os.path.dirname(os.path.dirname(HERE)))
                if path not in sys.path]

from crush_cluster import crush_state  # noqa: E402
from mgr_stub import install  # noqa: E402
from mgr_stub.build import build_cluster  # noqa: E402
from mgr_stub.session import Session  # noqa: E402
from mgr_stub.simulation import Simulation  # noqa: E402
from stub_states import load_fake  # noqa: E402


@pytest.fixture(autouse=True)
def own_mgr_module() -> Iterator[None]:
    """Every test leaves sys.modules as it found it."""
    saved = {name: module for name, module in sys.modules.items()
             if name.partition(".")[0] in ("mgr_module", "equilibrium_mgr")}
    yield
    for name in [n for n in sys.modules
                 if n.partition(".")[0] in ("mgr_module", "equilibrium_mgr", "fake_module")]:
        del sys.modules[name]
    sys.modules.update(saved)


@pytest.fixture
def make_session() -> Iterator[Callable[..., Session]]:
    """make_session(state, release=16): a Session that runs the fake module."""
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

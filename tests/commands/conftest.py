"""Fixtures: sessions on the demo cluster or on a state derived from it."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional

import pytest

from mgr_stub.console.session import Session
from mgr_stub.demo import DEMO_STATE
from mgr_stub.state.state_file import read_state
from tests.support.releases import RELEASES
from tests.support.remembered_plans import plans_are_made_once  # noqa: F401

_DEMO = read_state(DEMO_STATE)
#: Devices are so many times as fast here: fewer rounds to the end, quicker tests.
_HASTE = 5


@pytest.fixture
def demo_state() -> Dict[str, Any]:
    """The demo's state file as a dictionary, free to be changed."""
    return copy.deepcopy(_DEMO)


@pytest.fixture
def open_session(tmp_path: Path) -> Iterator[Callable[..., Session]]:
    """Opens a Session of a release on a state file; None is the demo cluster."""
    opened: List[Session] = []

    def make(release: int = 18, state: Optional[Dict[str, Any]] = None,
             **arguments: Any) -> Session:
        path = None
        if state is not None:
            path = str(tmp_path / (f"state{len(opened)}.json"))
            Path(path).write_text(json.dumps(state))
        session = Session.from_state(path, release=release, **arguments)
        speeds = session.simulation.backfill.bytes_per_second
        speeds.update({name: _HASTE * speed for name, speed in speeds.items()})
        session.command("config set mgr mgr/equilibrium/start_delay 0")
        opened.append(session)
        return session

    yield make
    for session in opened:
        session.close()


@pytest.fixture
def session(open_session: Callable[..., Session]) -> Session:
    """The demo on Ceph 18, looked at once."""
    session = open_session(18)
    look(session)
    return session


@pytest.fixture(params=RELEASES)
def any_session(request: Any, open_session: Callable[..., Session]) -> Session:
    """The demo on each release, observed once."""
    session = open_session(request.param)
    look(session)
    return session


def look(session: Session) -> None:
    """Switched off, the module looks at the cluster when somebody asks."""
    session.command("sim run 1s")
    session.command("equilibrium eval")

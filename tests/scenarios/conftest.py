"""How many random streams of each kind are played, and from which seed on; a balanced cluster."""
from __future__ import annotations

from pathlib import Path
from typing import Dict, Tuple

import pytest
from tests.support.remembered_plans import plans_are_made_once  # noqa: F401

from mgr_stub.console.session import Session

from . import drive

#: Argument of a test → the option, the first seed, and for how many of the option there is one.
_SEEDS: Dict[str, Tuple[str, int, int]] = {
    "stream_seed": ("--event-streams", 0, 1), "steered_seed": ("--event-streams", 0, 1),
    "failure_seed": ("--failures", 1, 1), "quiet_seed": ("--event-streams", 0, 5),
    "any_upmaps_seed": ("--event-streams", 0, 15), "operation_seed": ("--operation-streams", 0, 1),
    "drift_seed": ("--drift-streams", 3, 1), "asked_seed": ("--asked-streams", 7, 1),
    "asked_events_seed": ("--asked-streams", 1, 1)}


@pytest.fixture(scope="session")
def balanced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo cluster once it is balanced: hdd and ssd OSDs."""
    path = tmp_path_factory.mktemp("balanced") / "demo.json"
    session = Session.from_state(release=18)
    for line in ("balancer off", "equilibrium on", "sim run 10h", f"sim save {path}"):
        drive.command(session, line)
    session.close()
    return path


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    for name in _SEEDS.keys() & metafunc.fixturenames:
        option, first, share = _SEEDS[name]
        count = -(-metafunc.config.getoption(option) // share)
        metafunc.parametrize(name, range(first, first + count))

"""R1 a rest is deserved, over random streams of drift (`--drift-streams N`)."""
from __future__ import annotations

from pathlib import Path

import pytest

from . import drift



def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "drift_seed" in metafunc.fixturenames:
        metafunc.parametrize("drift_seed",
                             range(3, 3 + metafunc.config.getoption("--drift-streams")))


def test_drift_is_acted_on(drift_seed: int, tmp_path: Path,
                           request: pytest.FixtureRequest) -> None:
    steps = 4 if request.config.getoption("--full") else 2
    played = drift.play(drift_seed, tmp_path / "state", steps=steps)
    assert not played.watch.broken, [phase.step for phase in played.phases]

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


@pytest.mark.full
def test_drift_moves_little_more_than_a_plan_a_day_and_leaves_no_point() -> None:
    weeks = [drift.week(seed, 5, is_continuous=True) for seed in range(2)]
    daily = sum(drift.week(seed, 5, is_continuous=False).moved_bytes for seed in range(2))
    assert sum(one.moved_bytes for one in weeks) <= 1.3 * daily
    assert max(one.worst for one in weeks) < 0.01

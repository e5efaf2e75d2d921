"""Random streams of drains, undo and freeze, held against the rules of safety and of rest.

`--operation-streams N` plays more or fewer of them.
"""
from __future__ import annotations

from pathlib import Path

import pytest

from .. import drive
from ..test_event_streams import hold
from ..watch.at_rest import Rest
from . import random_operations


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "operation_seed" in metafunc.fixturenames:
        metafunc.parametrize("operation_seed",
                             range(metafunc.config.getoption("--operation-streams")))


def test_operation_stream(operation_seed: int, tmp_path: Path) -> None:
    played, rest = random_operations.scenario(operation_seed), Rest()
    result = drive.run(played, tmp_path, rest.before_event)
    hold(played, result, result.watch.broken + rest.broken)

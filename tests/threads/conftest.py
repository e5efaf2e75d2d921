"""Fixtures: a running mgr, and what its threads log."""
from __future__ import annotations

import importlib
import logging
from pathlib import Path
from typing import Callable, Iterator, List

import pytest

from .running import Running
from .stand_ins import HeldPlanner


class _Errors(logging.Handler):
    """Keeps what the module logs as errors."""

    def __init__(self, errors: List[str]) -> None:
        super().__init__(logging.ERROR)
        self._errors = errors

    def emit(self, record: logging.LogRecord) -> None:
        self._errors.append(logging.Formatter().format(record))


@pytest.fixture
def run_mgr(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Running]]:
    """Starts a mgr on the small cluster."""
    planning = importlib.import_module("equilibrium_mgr.plan_service.plan_service")
    make_plan = planning.make_plan
    started: List[Running] = []
    errors: List[str] = []
    handler = _Errors(errors)
    logger = logging.getLogger("equilibrium")
    logger.addHandler(handler)

    def start(balanced: bool = False) -> Running:
        planner = HeldPlanner(make_plan)
        monkeypatch.setattr(planning, "make_plan", planner)
        errors.clear()
        folder = tmp_path / str(len(started))
        folder.mkdir()
        started.append(Running(folder, planner, errors, balanced))
        return started[-1]
    yield start
    for running in started:
        running.close()
    logger.removeHandler(handler)

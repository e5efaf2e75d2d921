"""Whatever happens in whatever state: no thread raises, spins, or sends what it must not.

An event comes between two rounds, and in the middle of one, between two lines of the module
(`--thread-moments N`).
"""
from __future__ import annotations

import random
from pathlib import Path
from typing import Callable

import pytest

import equilibrium_mgr

from .running import EVENTS, OF_PLANS, OPERATING, OPERATIONS, STATES, Running, reach
from .stand_ins import FILES, BetweenLines

#: Lines of the module in a round, roughly.
_LINES = 400
_ENDS_WITHIN_SECONDS = 1.0


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "moment_seed" in metafunc.fixturenames:
        metafunc.parametrize("moment_seed",
                             range(metafunc.config.getoption("--thread-moments")))


def begin(run_mgr: Callable[..., Running], state: str, event: str) -> Running:
    running = run_mgr(state == "balanced")
    if event in OF_PLANS:
        running.command("equilibrium optimize p")
    reach(running, state)
    return running


def go_on_and_hold(running: Running) -> None:
    """A few minutes with a plan that is held, then with what comes of it."""
    running.run(300.0)
    running.planner.let_go()
    running.run(600.0)
    assert not running.broken()
    running.session.close()
    assert running.session.host.shutdown_seconds < _ENDS_WITHIN_SECONDS


#: Without --full each event in two or three states, and each state with three or four events.
@pytest.mark.parametrize("state, event", [
    pytest.param(state, event, marks=[pytest.mark.full] * ((number + turn) % 3 > 0))
    for number, state in enumerate(STATES) for turn, event in enumerate(EVENTS)])
def test_between_two_rounds(state: str, event: str, run_mgr: Callable[..., Running]) -> None:
    running = begin(run_mgr, state, event)
    EVENTS[event](running, False)
    go_on_and_hold(running)


def test_the_files_to_come_between_are_there() -> None:
    package = Path(equilibrium_mgr.__file__).parent
    paths = [f"/{path.relative_to(package)}" for path in package.rglob("*.py")]
    assert not [name for name in FILES if not any(name in path for path in paths)]


def test_in_the_middle_of_a_round(moment_seed: int, run_mgr: Callable[..., Running]) -> None:
    rng = random.Random(f"moment {moment_seed}")
    events = {**EVENTS, **OPERATING}
    state, event = rng.choice([*STATES, *OPERATIONS, *OPERATIONS]), rng.choice(list(events))
    running = begin(run_mgr, state, event)
    moment = BetweenLines(running.session)
    moment.arm(rng.randrange(_LINES), lambda: events[event](running, True))
    running.run(60.0)
    where = moment.where or f"none of {moment.disarm()} lines"
    print(f"{event} while {state}, at {where}")
    go_on_and_hold(running)

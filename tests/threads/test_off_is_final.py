"""`off` between any two lines of a round that plans or sends: nothing is sent after its answer.

Not by the mgr that has answered, and not by another one that takes over at once
(`--off-moments N`).
"""
from __future__ import annotations

import random
from typing import Callable, Dict

import pytest

from .running import Running
from .stand_ins import BetweenLines

#: Until the round to be disturbed has come, virtual seconds.
SOON = 70.0


def _planned(running: Running) -> None:
    """The automatic plan has just been made."""
    running.planner.hold()
    running.command("equilibrium on")
    running.planner.let_go()


def _executed(running: Running) -> None:
    running.command("equilibrium optimize p")
    running.post("equilibrium execute p").result()


def _later(running: Running) -> None:
    """Some of the first batch has arrived."""
    running.command("equilibrium on")
    running.run(120.0)


BEGINNINGS: Dict[str, Callable[[Running], None]] = {
    "planned": _planned, "executed": _executed, "later": _later}
#: beginning → lines of the module that its rounds run through
_LINES: Dict[str, int] = {}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "off_seed" in metafunc.fixturenames:
        metafunc.parametrize("off_seed", range(metafunc.config.getoption("--off-moments")))


def lines_of(beginning: str, run_mgr: Callable[..., Running]) -> int:
    """How many lines of the module there are to come between."""
    if beginning not in _LINES:
        running = run_mgr()
        moment = BetweenLines(running.session)
        moment.arm(1 << 30, lambda: None)
        BEGINNINGS[beginning](running)
        running.run(SOON)
        _LINES[beginning] = moment.disarm()
    return _LINES[beginning]


@pytest.mark.parametrize("beginning", BEGINNINGS)
def test_nothing_is_sent_after_its_answer(beginning: str, off_seed: int,
                                          run_mgr: Callable[..., Running]) -> None:
    rng = random.Random(f"off {off_seed}")
    line = rng.randrange(lines_of(beginning, run_mgr))
    fails = rng.random() < 0.7
    running = run_mgr()
    moment = BetweenLines(running.session)

    def off() -> None:
        running.in_between("equilibrium off")
        if fails:
            running.session.mgr.process.kill()
    moment.arm(line, off)
    BEGINNINGS[beginning](running)
    running.run(SOON)
    running.command("sim backfill rate 1G")
    running.run(900.0)
    assert not running.broken(), f"off at {moment.where}{', the mgr dies' if fails else ''}"
    assert running.session.module.balancer.execution is None or not running.is_off()

"""`off` between any two lines of a round that plans or sends: nothing is sent after its answer.

Not by the mgr that has answered, and not by another one that takes over at once
(`--off-moments N`).

`drain add` between any two lines of a round that plans or sends: from its answer on nothing goes
to the OSDs, be it of automatic balancing or of a kept plan (`--off-moments N`).
"""
from __future__ import annotations

import pytest
import random
from concurrent.futures import TimeoutError as Late
from typing import Any, Callable, Dict, List, Set, Tuple

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

    def off() -> None:
        running.in_between("equilibrium off")
        if fails:
            running.session.mgr.process.kill()
    where = disturb(running, beginning, line, off)
    assert not running.broken(), f"off at {where}, the mgr dies: {fails}"
    assert running.session.module.balancer.execution is None or not running.is_off()


def disturb(running: Running, beginning: str, line: int, action: Callable[[], None]) -> str:
    """Calls `action` at a line of the rounds and runs until all data has arrived; returns where."""
    moment = BetweenLines(running.session)
    moment.arm(line, action)
    BEGINNINGS[beginning](running)
    running.run(SOON)
    running.command("sim backfill rate 1G")
    running.run(900.0)
    return moment.where


_DRAINED = frozenset((2, 3))   # host h1
_GRACE_SECONDS = 0.05


def pairs_of(command: Dict[str, Any]) -> Set[Tuple[int, int]]:
    flat: List[int] = command.get("id", [])
    return set(zip(flat[::2], flat[1::2]))


def brought(running: Running, answered: int) -> List[str]:
    """PGs that got a pair to the drained OSDs by a command that was sent after the answer."""
    known: Dict[str, Set[Tuple[int, int]]] = {}
    found = []
    for number, entry in enumerate(list(running.session.command_log)):
        if "upmap-items" not in entry.prefix:
            continue
        pgid, pairs = str(entry.command["pgid"]), pairs_of(entry.command)
        new = {target for _, target in pairs - known.get(pgid, set())}
        if number >= answered and new & _DRAINED:
            found.append(pgid)
        known[pgid] = pairs
    return found


@pytest.mark.parametrize("beginning", BEGINNINGS)
def test_nothing_goes_to_them_after_its_answer(beginning: str, off_seed: int,
                                               run_mgr: Callable[..., Running]) -> None:
    line = random.Random(f"drain {off_seed}").randrange(lines_of(beginning, run_mgr))
    running, answered = run_mgr(), []

    def add() -> None:
        answer = running.post("equilibrium drain add h1")
        answer.add_done_callback(
            lambda _: answered.append(len(running.session.command_log)))
        try:
            assert answer.result(_GRACE_SECONDS)[0] == 0
        except Late:   # it waits for this very thread
            pass
    where = disturb(running, beginning, line, add)
    assert answered
    assert not running.broken()
    assert brought(running, answered[0]) == [], f"drain add at {where}"

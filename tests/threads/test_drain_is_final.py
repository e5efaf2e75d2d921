"""`drain add` between any two lines of a round that plans or sends: from its answer on nothing goes
to the OSDs, be it of automatic balancing or of a kept plan (`--off-moments N`).
"""
from __future__ import annotations

import random
from concurrent.futures import TimeoutError as Late
from typing import Any, Callable, Dict, List, Set, Tuple

import pytest

from .running import Running
from .stand_ins import BetweenLines
from .test_off_is_final import BEGINNINGS, SOON, lines_of

_DRAINED = frozenset((2, 3))   # host h1
_GRACE_SECONDS = 0.05


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "drain_seed" in metafunc.fixturenames:
        metafunc.parametrize("drain_seed", range(metafunc.config.getoption("--off-moments")))


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
def test_nothing_goes_to_them_after_its_answer(beginning: str, drain_seed: int,
                                               run_mgr: Callable[..., Running]) -> None:
    line = random.Random(f"drain {drain_seed}").randrange(lines_of(beginning, run_mgr))
    running, answered = run_mgr(), []
    moment = BetweenLines(running.session)

    def add() -> None:
        answer = running.post("equilibrium drain add h1")
        answer.add_done_callback(
            lambda _: answered.append(len(running.session.command_log)))
        try:
            assert answer.result(_GRACE_SECONDS)[0] == 0
        except Late:   # it waits for this very thread
            pass
    moment.arm(line, add)
    BEGINNINGS[beginning](running)
    running.run(SOON)
    running.command("sim backfill rate 1G")
    running.run(900.0)
    assert answered and not running.broken()
    assert brought(running, answered[0]) == [], f"drain add at {moment.where}"

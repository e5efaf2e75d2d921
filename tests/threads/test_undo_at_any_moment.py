"""`undo` between any two lines of a round that sends a plan: each PG gets what it had, or is named
(`--off-moments N`)."""
from __future__ import annotations

import errno
import json
import random
from concurrent.futures import Future, TimeoutError as Late
from typing import Any, Callable, Dict, List

from .running import Running
from .stand_ins import BetweenLines
from .test_off_is_final import BEGINNINGS, SOON, lines_of, pytest_generate_tests

__all__ = ["pytest_generate_tests"]   # for `off_seed`

_PLAN = "executed"
_SECONDS = 0.05
#: What an operator is told who is too early: p has sent nothing, or a look is needed first.
_TOO_EARLY = (-errno.EAGAIN, -errno.ENOENT)


def test_undo_gives_back_what_was_sent(off_seed: int, run_mgr: Callable[..., Running]) -> None:
    rng = random.Random(f"undo {off_seed}")
    line = rng.randrange(lines_of(_PLAN, run_mgr))
    running = run_mgr()
    before = items(running)
    moment = BetweenLines(running.session)
    answers: List[Future[Any]] = []

    def undo() -> None:
        answers.append(running.post("equilibrium undo p --format json"))
        try:
            answers[0].result(_SECONDS)
        except Late:
            pass   # it waits for this very thread
    moment.arm(line, undo)
    BEGINNINGS[_PLAN](running)
    running.run(SOON)
    code, out, _ = answers[0].result(SOON)
    assert code == 0 or code in _TOO_EARLY
    running.command("sim backfill rate 1G")
    running.run(86400.0)
    assert not running.broken(), f"undo at {moment.where}"
    if code == 0:
        named = {row["pgid"] for row in json.loads(out)["not_restored"]}
        after = items(running)
        lost = {pgid for pgid in {*before, *after} if before.get(pgid) != after.get(pgid)} - named
        assert not lost, f"undo at {moment.where}: {json.loads(out)}"


def items(running: Running) -> Dict[str, Any]:
    return dict(running.session.cluster.map.upmap_items)

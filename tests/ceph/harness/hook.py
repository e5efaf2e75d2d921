"""Test hook: copied into a copy of the package in a test cluster's module folder, imported last.

While the file `slow.seconds` lies beside it, every planning job first burns that many seconds of
CPU in Python, as a long search would. While `grow.moves` does, a plan is kept with that many moves.
"""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any, Callable

# those of the package that this file is copied into
from .plan import store
from .runtime import job_thread

HERE = Path(__file__).resolve().parent
_submit = job_thread.JobThread.submit
_put = store.PlanStore.put


def _number(name: str) -> float:
    try:
        return float((HERE / name).read_text())
    except OSError:
        return 0.0


def _slowed(self: job_thread.JobThread, name: str, job: Callable[[], None],
            first: bool = False) -> None:
    def run() -> None:
        until = time.monotonic() + _number("slow.seconds")
        while time.monotonic() < until:
            sum(i * i for i in range(1000))
        job()
    _submit(self, name, run, first)


def _grown(self: store.PlanStore, name: str, plan: Any, created_at: float) -> Any:
    wanted = int(_number("grow.moves"))
    if wanted:
        noise = random.Random(0)  # digits that do not compress away
        moves = [plan.moves[i % len(plan.moves)]._replace(
            source_before=noise.random(), target_after=noise.random()) for i in range(wanted)]
        plan = plan._replace(moves=tuple(moves))
    return _put(self, name, plan, created_at)


job_thread.JobThread.submit = _slowed
store.PlanStore.put = _grown

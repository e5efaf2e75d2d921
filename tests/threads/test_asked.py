"""A mgr that is asked and scraped all the time, from threads of others, stays awake.

Each step is asked for while rounds run: nothing waits for an answer before time goes on.
"""
from __future__ import annotations

import random
from typing import Callable

import pytest
from tests.metrics_endpoint.client import free_port, get
from tests.scenarios.awake.asking import READS

from .running import Running

_STEPS, _STEP_SECONDS = 60, 20.0
_SET = "config set mgr mgr/equilibrium/"


@pytest.mark.full
def test_upmaps_that_somebody_removes_are_made_up_for(run_mgr: Callable[..., Running]) -> None:
    rng, port, running = random.Random("asked"), free_port(), run_mgr(True)
    running.command("sim backfill rate 1G")
    for option in ("metrics_addr 127.0.0.1", f"metrics_port {port}"):
        running.command(_SET + option)
    running.command("equilibrium on")
    running.run(900.0)
    assert running.status()["state"] == "balanced"
    for pgid in sorted(running.session.cluster.map.upmap_items):
        running.command(f"osd rm-pg-upmap-items {pgid}")
    before = len(running.sent())
    for _ in range(_STEPS):
        answer = running.post(rng.choice(READS))
        running.run(_STEP_SECONDS)
        with get(port) as scraped:
            assert scraped.status == 200
        answer.result(30.0)
    assert len(running.sent()) > before
    assert running.status()["state"] == "balanced"
    assert not running.broken()

"""Figures that a screen compares are of one moment: a plan without moves changes none of them.

Whatever clients write, and OSDs report, between a look at the cluster and a command.
"""
from __future__ import annotations

import random
from typing import Any, Callable, Iterator

import pytest

from mgr_stub.console.session import Session
from tests.support.few import few

from .asking import ask, run

_EVENTS = ("sim write vms 200G", "sim delete backup 300G", "sim stats noise 0.005",
           "sim stats noise 0", "sim osd allocation 1.01 3", "sim osd allocation 1 3",
           "sim write fast 20G", "sim osd out 16", "sim osd in 16", "equilibrium off",
           "equilibrium on", "sim delete vms 100G")


def _differences(answer: Any) -> Iterator[str]:
    """Figures of an empty plan, and of when all has arrived, that are others than now."""
    for row in answer["classes"]:
        for key in ("max_utilization", "stddev", "min_utilization", "fullest_osd"):
            for moment in ("soon", "planned"):
                if row[f"{moment}_{key}"] != pytest.approx(row[key], abs=1e-6):
                    yield f"{moment}: {key} of {row}"
    for row in answer["pools"]:
        if row["planned_free_bytes"] != pytest.approx(row["free_bytes"], rel=1e-5):
            yield f"FREE of {row}"


@pytest.mark.parametrize("seed", few(range(4), 1))
def test_a_plan_without_moves_changes_no_figure(open_session: Callable[..., Session],
                                                seed: int) -> None:
    rng, session, moments, at_rest = random.Random(seed), open_session(18), 0, 0
    run(session, "sim backfill rate 1G", "equilibrium on", "sim run 12h", "equilibrium optimize z")
    assert ask(session, "dump z")["moves"] == []
    for _ in range(12):
        run(session, rng.choice(_EVENTS), f"sim run {rng.choice((1, 1, 5, 9, 30))}m")
        view = session.module.balancer.status.view   # the one that is shown
        answer = ask(session, "eval z")
        if not view.misplaced_ratio and all(   # nothing comes, goes or is deleted
                osd.target_bytes == osd.used_bytes for osd in view.snapshot.osds.values()):
            at_rest += 1
            found = list(_differences(answer))
            assert not found, (moments, found)
        moments += 1
    assert at_rest > 2

"""How long a plan is likely to take, as `eval` and the page say it."""
from __future__ import annotations

from collections import Counter
from typing import Callable, Counter as Counts

import pytest
from mgr_stub.console.session import Session
from tests.commands.asking import ask, optimize, run

from equilibrium_mgr.runtime.formatting import format_duration


def test_before_anything_was_measured_the_assumption_is_said(session: Session) -> None:
    plan = optimize(session)
    to_come: Counts[int] = Counter()
    for move in plan["moves"]:
        to_come[move["to"]] += move["bytes"]
    found = ask(session, "eval p")
    assert found["expected_seconds"] == pytest.approx(max(to_come.values()) / (50 << 20), rel=0.01)
    assert found["expected_from"] == "if each OSD takes 50 MiB/s"
    about = f"about {format_duration(found['expected_seconds'])} ({found['expected_from']})"
    assert about in " ".join(run(session, "equilibrium eval p").split())
    assert f"{about}:" in run(session, "equilibrium report p")


def test_what_was_measured_counts(open_session: Callable[..., Session]) -> None:
    session = open_session()
    optimize(session)
    run(session, "sim backfill rate 20M", "equilibrium execute p", "sim run 10m", "equilibrium off")
    for line in ("equilibrium eval p", "equilibrium report p"):
        assert "(at the rates last measured)" in " ".join(run(session, line).split())
    found = ask(session, "eval p")
    assert found["expected_seconds"] > 0 and found["expected_from"] == "at the rates last measured"


def test_of_a_plan_that_is_done_there_is_none(session: Session) -> None:
    optimize(session)
    run(session, "equilibrium execute p", "sim run 1d")
    found = ask(session, "eval p")
    assert (found["applicable_changes"], found["expected_seconds"], found["expected_from"]) == (
        0, None, None)
    assert "about" not in run(session, "equilibrium eval p").split("\n")[0]

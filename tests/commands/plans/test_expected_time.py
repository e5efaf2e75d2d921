"""How long a plan is likely to take, as `eval` and the page say it."""
from __future__ import annotations

from typing import Callable

from mgr_stub.console.session import Session
from tests.commands.asking import ask, optimize, run


def test_what_was_measured_counts(open_session: Callable[..., Session]) -> None:
    session = open_session()
    optimize(session)
    run(session, "sim backfill rate 20M", "equilibrium execute p", "sim run 10m", "equilibrium off")
    for line in ("equilibrium eval p", "equilibrium report p"):
        assert "(at the rates last measured)" in " ".join(run(session, line).split())
    found = ask(session, "eval p")
    assert found["expected_seconds"] > 0 and found["expected_from"] == "at the rates last measured"

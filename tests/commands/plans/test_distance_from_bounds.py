"""How far `eval PLAN` says that a plan ends from the best possible, while it is executed too."""
from __future__ import annotations

from typing import Any, Dict

import pytest
from mgr_stub.console.session import Session
from tests.commands.asking import ask, optimize, run


def ratio_of_bytes(entry: Dict[str, Any]) -> float:
    """The part of the bytes that another plan with this maximum could save at most."""
    moved, least = entry["moved_bytes"], entry["least_moved_bytes"]
    return max(0.0, 1.0 - least / moved) if moved else 0.0


@pytest.mark.full
def test_bytes_that_were_moved_are_not_held_against_what_is_left(session: Session) -> None:
    """Of an executed plan nothing is left: it is 0 % from the best possible, and not 100 %."""
    plan = optimize(session)
    fresh = ask(session, "eval p")["distance"]["classes"]
    assert sum(entry["moved_bytes"] for entry in fresh) == plan["bytes"]
    run(session, "sim backfill rate 20M", "equilibrium execute p", "sim run 10m")
    answer = ask(session, "eval p")
    assert 0 < answer["applicable_changes"] < answer["changes"]
    left = sum(entry["moved_bytes"] for entry in answer["distance"]["classes"])
    assert 0 < left < plan["bytes"]
    assert all(entry["moved_bytes"] >= entry["least_moved_bytes"]
               for entry in answer["distance"]["classes"])
    run(session, "sim run idle")
    for entry in ask(session, "eval p")["distance"]["classes"]:
        assert ratio_of_bytes(entry) == entry["moved_bytes"] == entry["least_moved_bytes"] == 0
    lines = run(session, "equilibrium eval p").split("\n")
    assert sum(" and 0% of the bytes from the best possible" in line for line in lines) == 2

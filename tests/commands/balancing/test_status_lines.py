"""What `status` must hold for an operator, on a simulated cluster."""
from __future__ import annotations

from typing import List

import pytest

from mgr_stub.console.session import Session

from ..asking import ask, run, words


@pytest.mark.parametrize("fault, ends", [
    ("reject 0.7", "; tried again by 2026-01-01 00:1"),
    ("drop 0.7", "; tried again by 2026-01-01 01:0")])
def test_when_what_was_not_kept_is_tried_again(session: Session, fault: str, ends: str) -> None:
    run(session, "equilibrium on", "sim run 1m", f"sim mon {fault}", "sim run 2m")
    assert ends in words(session, "status")


@pytest.mark.parametrize("begin", [
    [], ["equilibrium on", "sim osd down 3"]])
def test_limit_in_force_is_shown_in_every_state(session: Session, begin: List[str]) -> None:
    run(session, *begin, "sim run 20m")
    ask(session, "status")                      # the last look that a poll may ask for a while
    run(session, "config set mgr mgr/equilibrium/max_misplaced_ratio 0.03", "sim run 61s")
    assert ask(session, "status")["limits"]["max_misplaced_ratio"] == 0.03
    run(session, "config rm mgr mgr/equilibrium/max_misplaced_ratio", "sim run 61s")
    assert ask(session, "status")["limits"]["max_misplaced_ratio"] == 0.05

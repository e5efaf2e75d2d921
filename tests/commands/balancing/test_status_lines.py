"""What `status` must hold for an operator, on a simulated cluster."""
from __future__ import annotations

from typing import List

import pytest

from mgr_stub.console.session import Session

from ..asking import ask, run


def test_a_lost_monitor_shows_within_one_round(session: Session) -> None:
    run(session, "equilibrium on", "sim run 5m", "sim mon down")
    run(session, "sim run 61s")
    status = ask(session, "status")
    assert (status["state"], status["reason_code"]) == ("blocked", "no_monitor")
    assert [group["code"] for group in status["waiting"]] in ([], ["no_monitor"])
    # what is on its way goes on to arrive, which is not denied
    assert status["moving"]["states"][0]["state"] == "backfilling"
    assert status["progress"]["bytes_per_second"]
    assert status["progress"]["eta_unknown_reason"] is None


@pytest.mark.parametrize("fault, ends", [
    ("reject 0.7", "; tried again by 2026-01-01 00:1"), ("drop 0.7", "; tried again by 2026-01-01 01:0")])
def test_when_what_was_not_kept_is_tried_again(session: Session, fault: str, ends: str) -> None:
    run(session, "equilibrium on", "sim run 1m", f"sim mon {fault}", "sim run 2m")
    assert ends in " ".join(run(session, "equilibrium status").split())


def test_what_fits_below_the_misplaced_limit_by_now_waits_for_the_next_round(
        session: Session) -> None:
    """Each batch has arrived long before the next may go."""
    run(session, "config set mgr mgr/equilibrium/max_misplaced_ratio 0.01", "sim backfill rate 10G",
        "equilibrium optimize p", "equilibrium execute p", "sim run 65s")
    assert ask(session, "status")["waiting"][0]["code"] == "misplaced_limit"
    run(session, "sim run 40s")
    status = ask(session, "status")
    assert [group["code"] for group in status["waiting"]] == ["next_batch"]
    assert status["misplaced_ratio"] == 0.0 and "for the next round" in status["reason"]
    assert status["action"] == "nothing; it ends by itself with the next batch (sleep_interval)"
    assert "misplaced limit" not in run(session, "equilibrium explain")


@pytest.mark.parametrize("begin", [
    [], ["equilibrium on", "sim osd down 3"]])
def test_limit_in_force_is_shown_in_every_state(session: Session, begin: List[str]) -> None:
    run(session, *begin, "sim run 20m")
    ask(session, "status")                      # the last look that a poll may ask for a while
    run(session, "config set mgr mgr/equilibrium/max_misplaced_ratio 0.03", "sim run 61s")
    assert ask(session, "status")["limits"]["max_misplaced_ratio"] == 0.03
    run(session, "config rm mgr mgr/equilibrium/max_misplaced_ratio", "sim run 61s")
    assert ask(session, "status")["limits"]["max_misplaced_ratio"] == 0.05

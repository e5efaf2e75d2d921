"""A rest is not told beside what speaks against it, though the cluster is not looked at yet."""

from __future__ import annotations

from typing import List

import pytest

from mgr_stub.console.session import Session

from .asking import ask, run, state


@pytest.fixture
def at_rest(session: Session) -> Session:
    run(session, "equilibrium on", "sim run idle", "sim run 5m")
    assert state(session) in ("balanced", "stuck")
    return session


@pytest.mark.parametrize("events, told", [
    (["sim osd down 3"], "has degraded PGs now"), (["sim osd out 3"], "osd.3 is out now"),
    (["sim osd lose 6"], "has degraded PGs now"), (["sim osd reweight 3 0.5"], "osd.3 has another weight")])
def test_what_has_come_since_is_told_at_once(at_rest: Session, events: List[str],
                                             told: str) -> None:
    run(at_rest, *events, "sim run 30s")
    status = ask(at_rest, "status")
    assert status["state"] == "waiting"
    assert told in status["reason"]
    assert "before: " in status["reason"]
    looks = at_rest.module.gateway.counts.looks
    run(at_rest, "sim run 10s")
    ask(at_rest, "status")
    assert at_rest.module.gateway.counts.looks == looks   # to tell it costs none


def test_a_rest_is_a_rest_again_when_that_is_over(at_rest: Session) -> None:
    before = ask(at_rest, "status")
    run(at_rest, "sim osd down 3", "sim run 30s", "sim osd up 3", "sim run 90s")
    after = ask(at_rest, "status")
    assert after["state"] == before["state"]


def test_what_has_been_decided_on_is_no_news(at_rest: Session) -> None:
    run(at_rest, "sim osd out 3", "sim run 30s")
    assert state(at_rest) == "waiting"
    run(at_rest, "sim run idle", "sim run 30m", "sim run idle", "sim run 15m")
    assert state(at_rest) in ("balanced", "stuck")

"""What the screens advise while shards that Ceph copies are held, or cannot be yet."""
from __future__ import annotations

from typing import Callable

from mgr_stub.console.session import Session
from tests.commands.asking import ask, run

_NOW = "config set mgr mgr/equilibrium/start_delay 0"


def _screen(session: Session, line: str) -> str:
    return " ".join(run(session, f"equilibrium {line}").split())


def test_a_purge_needs_no_freeze_where_shards_are_held(
        open_session: Callable[..., Session]) -> None:
    session = open_session(18)
    run(session, _NOW, "sim backfill rate 1G", "equilibrium on", "equilibrium drain add 3",
        "sim run 90m")
    before = _screen(session, "drain ls")
    assert "safe to stop" in before and "keeps it where it is" in before
    assert "norebalance" not in before
    run(session, "osd crush reweight osd.3 0", "sim run 5s")
    while not ask(session, "drain ls")["safe_to_stop"]:
        run(session, "sim run 5s")
    early = _screen(session, "drain ls")
    assert "do not purge yet" in early and "moves no data" not in early
    run(session, "sim run 1m")
    assert "by 'ceph osd purge': that moves no data" in _screen(session, "drain ls")


def test_the_plan_that_keeps_shards_from_being_steered_is_to_end(
        open_session: Callable[..., Session]) -> None:
    session = open_session(18)
    run(session, _NOW, "equilibrium optimize p", "sim run 1m", "equilibrium on",
        "equilibrium execute p", "sim run 5m")
    assert not ask(session, "status")["steering_waits_for"]
    run(session, "sim host down host2", "sim run 12m")
    status = ask(session, "status")
    assert status["steering_waits_for"] == "p"
    for action in (status["action"], ask(session, "explain")["action"]):
        assert action.startswith("'ceph equilibrium rm p'")
    run(session, "equilibrium rm p", "sim run 1m")
    status = ask(session, "status")
    assert status["steered"]["elsewhere_shards"] and not status["steering_waits_for"]

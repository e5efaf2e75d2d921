"""What `status` must hold for an operator, on a simulated cluster."""
from __future__ import annotations

from typing import Any, Dict

from mgr_stub.console.session import Session

from ..asking import ask, by_class, optimize, run

_COUNTS = ("planned_moves", "sent_moves", "done_moves", "dropped_moves", "remaining_moves")


def counts(session: Session) -> Dict[str, Any]:
    execution = ask(session, "status")["execution"]
    return {key: execution[key] for key in _COUNTS}


def test_after_a_failover_the_totals_are_the_same(any_session: Session) -> None:
    session = any_session
    run(session, "config set mgr mgr/equilibrium/max_backfills_per_osd 2")
    optimize(session)
    run(session, "equilibrium execute p", "sim run 6m")
    before = counts(session)
    assert before["sent_moves"] and before["remaining_moves"]
    run(session, "sim failover", "sim run 1s")
    assert counts(session) == before
    run(session, "sim run 2m")
    after = counts(session)
    assert after["planned_moves"] == before["planned_moves"]
    assert after["done_moves"] == before["done_moves"]
    assert before["sent_moves"] <= after["sent_moves"]
    assert sum(after[key] for key in _COUNTS[1:]) == after["planned_moves"]


def test_a_lost_monitor_shows_within_one_round(session: Session) -> None:
    run(session, "equilibrium on", "sim run 5m", "sim mon down")
    for seconds in (0, 61):
        if seconds:
            run(session, f"sim run {seconds}s")
        status = ask(session, "status")
        assert (status["state"], status["reason_code"]) == ("blocked", "no_monitor")
        assert [group["code"] for group in status["waiting"]] in ([], ["no_monitor"])


def test_statistics_have_an_age(session: Session) -> None:
    run(session, "equilibrium on", "sim run 5m")
    assert ask(session, "status")["statistics_age_seconds"] < 10
    run(session, "sim stats freeze 3h", "sim run 1h")
    assert 3500 < ask(session, "status")["statistics_age_seconds"] < 3700
    assert "statistics 1h0" in " ".join(run(session, "equilibrium status").split())


def test_balanced_far_above_the_bound_says_what_is_left_out(session: Session) -> None:
    run(session, "equilibrium pool add fast", "equilibrium on", "sim run 6h")
    status = ask(session, "status")
    hdd = by_class(status)["hdd"]
    assert hdd["max_utilization"] - hdd["bound_utilization"] > 0.01
    assert status["state"] in ("balanced", "stuck")
    assert "pool_ids leaves out" in status["reason"]
    if status["state"] == "balanced":
        assert "above the bound of all pools" in status["reason"]

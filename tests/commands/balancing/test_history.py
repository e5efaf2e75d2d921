"""`history`: finished episodes and the one under way."""
from __future__ import annotations

from typing import Any, Dict

from equilibrium_mgr.report.history import report_history
from mgr_stub.console.session import Session

from ..asking import ask, optimize, run


def test_before_the_first_move(session: Session) -> None:
    assert ask(session, "history") == {"episodes": []}
    assert "nothing has been moved yet" in run(session, "equilibrium history")


def test_an_executed_plan_is_told_while_it_runs_and_afterwards(session: Session) -> None:
    plan = optimize(session)
    before = ask(session, "eval")["classes"]
    run(session, "equilibrium execute p", "sim run 2m")
    under_way, = ask(session, "history")["episodes"]
    assert (under_way["plan"], under_way["outcome"]) == ("p", "under way")
    assert 0 < under_way["moves"] <= len(plan["moves"]) and under_way["ended_at"] is None
    assert "under way" in run(session, "equilibrium history")

    run(session, "sim run idle")
    told, = ask(session, "history")["episodes"]
    assert (told["plan"], told["outcome"]) == ("p", "completed")
    assert told["moves"] == len(plan["moves"]) and told["bytes"] > 0
    assert told["started_at"] < told["ended_at"]
    after = ask(session, "eval")["classes"]
    for name, highest in told["max_before"].items():
        assert abs(highest - before[name]["max"]) < 1e-3
        assert abs(told["max_after"][name] - after[name]["max"]) < 1e-3
    plain = run(session, "equilibrium history")
    assert "'ceph equilibrium execute'" in plain and "->" in plain and f"{told['moves']}" in plain


def test_history_survives_the_mgr(session: Session) -> None:
    optimize(session)
    run(session, "equilibrium execute p", "sim run idle")
    told = ask(session, "history")
    run(session, "sim failover", "sim run 5m")
    assert ask(session, "history") == told


def test_entries_of_another_version_are_told_as_far_as_they_go() -> None:
    entries: list[Dict[str, Any]] = [
        {}, {"started_at": "yesterday", "max_before": [], "bytes": None},
        {"plan": "p", "started_at": 0.0, "ended_at": 3600.0,
         "max_before": {"hdd": 0.9, "ssd": None}, "max_after": {"hdd": 0.75},
         "moves": 3, "bytes": 1 << 40, "outcome": "completed"}]
    plain = report_history(entries, None, 7200.0).plain
    assert "1970-01-01 00:00" in plain and "1h" in plain and "1 TiB" in plain
    assert "hdd 0.900 -> 0.750, ssd ?" in plain

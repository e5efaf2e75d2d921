"""`history`: ended episodes and the one under way."""
from __future__ import annotations

from typing import Any, Dict, List

import pytest

from equilibrium_mgr.report.history import report_history
from mgr_stub.console.session import Session

from ..asking import ask, max_by_class, optimize, run


def episodes(session: Session) -> List[Dict[str, Any]]:
    return list(ask(session, "history")["episodes"])


def maxima(told: Dict[str, Any], key: str) -> Dict[str, float]:
    return {figures["device_class"]: figures[key] for figures in told["classes"]}


def test_an_executed_plan_is_told_while_it_runs_and_afterwards(session: Session) -> None:
    plan = optimize(session)
    before = max_by_class(session)
    predicted = {name: figures["max"] for name, figures in plan["after"]["classes"].items()}
    run(session, "equilibrium execute p", "sim run 2m")
    under_way, = episodes(session)
    assert (under_way["plan"], under_way["outcome"]) == ("p", "under way")
    assert 0 < under_way["shards"] <= len(plan["moves"])
    assert under_way["ended_at"] is None
    assert "under way" in run(session, "equilibrium history")

    run(session, "sim run idle", "sim run 5m")
    told, = episodes(session)
    assert (told["plan"], told["outcome"]) == ("p", "completed")
    assert told["shards"] == len(plan["moves"])
    assert told["bytes"] > 0
    assert told["started_at"] < told["measured_at"] <= told["ended_at"]
    assert told["measured"] == "arrived"
    assert maxima(told, "max_before") == pytest.approx(before, abs=1e-3)
    assert maxima(told, "max_after") == pytest.approx(max_by_class(session), abs=1e-4)
    assert maxima(told, "max_predicted") == pytest.approx(predicted, abs=1e-3)
    plain = run(session, "equilibrium history")
    assert "'ceph equilibrium execute'" in plain
    # it has: what is measured says it
    assert "predicted" not in plain
    assert "has arrived" not in plain


def test_what_stands_as_the_result_is_what_osds_reported_and_no_forecast(session: Session) -> None:
    """`off` while nobackfill holds everything up: nothing is gained, whatever is in flight."""
    run(session, "equilibrium on", "sim run 6m", "sim flag set nobackfill", "equilibrium off")
    told, = episodes(session)
    assert told["outcome"] == "stopped"
    assert told["measured"] == "interrupted"
    assert told["outcome_reason"] == "by 'ceph equilibrium off'"
    plain = run(session, "equilibrium history")
    assert "while data was still moving" in plain
    assert "%MAX when all has arrived: hdd " in plain
    assert maxima(told, "max_after") == pytest.approx(max_by_class(session), abs=0.005)
    run(session, "sim failover", "sim run 5m")
    assert episodes(session) == [told]


def test_limit_shows_the_newest() -> None:
    entries = [{"plan": f"p{i}", "started_at": 1e9 + i, "ended_at": 1e9 + i + 1,
                "outcome": "completed"} for i in range(30)]
    for limit, earlier in ((None, "... 10 earlier episodes;"), (2, "... 28 earlier episodes;"),
                           (29, "... 1 earlier episode;")):
        answer = report_history(entries, None, 2e9, limit)
        assert answer.data["total"] == 30
        assert [e["plan"] for e in answer.data["episodes"]] == [
            f"p{i}" for i in range(int(earlier.split()[1]), 30)]
        assert earlier in answer.plain

"""`history`: ended episodes and the one under way."""
from __future__ import annotations

from typing import Any, Dict, List

from equilibrium_mgr.report.history import report_history
from equilibrium_mgr.runtime.formatting import WIDTH
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
    assert 0 < under_way["shards"] <= len(plan["moves"]) and under_way["ended_at"] is None
    assert "under way" in run(session, "equilibrium history")

    run(session, "sim run idle", "sim run 5m")
    told, = episodes(session)
    assert (told["plan"], told["outcome"]) == ("p", "completed")
    assert told["shards"] == len(plan["moves"]) and told["bytes"] > 0
    assert told["started_at"] < told["measured_at"] <= told["ended_at"]
    assert told["measured"] == "arrived"
    after = max_by_class(session)
    for name, ratio in maxima(told, "max_before").items():
        assert abs(ratio - before[name]) < 1e-3
        assert abs(maxima(told, "max_after")[name] - after[name]) < 1e-4   # what OSDs report
        assert abs(maxima(told, "max_predicted")[name] - predicted[name]) < 1e-3
    plain = run(session, "equilibrium history")
    assert "'ceph equilibrium execute'" in plain and "->" in plain and f"{told['shards']}" in plain
    assert max(map(len, plain.split("\n"))) <= WIDTH
    # it has: what is measured says it
    assert "predicted" not in plain and "has arrived" not in plain


def test_what_stands_as_the_result_is_what_osds_reported_and_no_forecast(session: Session) -> None:
    """`off` while nobackfill holds everything up: nothing is gained, whatever is in flight."""
    run(session, "equilibrium on", "sim run 6m", "sim flag set nobackfill", "equilibrium off")
    told, = episodes(session)
    assert told["outcome"] == "stopped" and told["measured"] == "interrupted"
    assert told["outcome_reason"] == "by 'ceph equilibrium off'"
    plain = run(session, "equilibrium history")
    assert "while data was still moving" in plain
    for name, ratio in maxima(told, "max_after").items():
        assert abs(ratio - max_by_class(session)[name]) < 0.005
    run(session, "sim failover", "sim run 5m")
    assert episodes(session) == [told]


def test_limit_shows_the_newest(session: Session) -> None:
    entries = [{"plan": f"p{i}", "started_at": 1e9 + i, "ended_at": 1e9 + i + 1,
                "outcome": "completed"} for i in range(30)]
    shown = report_history(entries, None, 2e9).data
    assert [e["plan"] for e in shown["episodes"]] == [f"p{i}" for i in range(10, 30)]
    assert shown["total"] == 30
    answer = report_history(entries, None, 2e9, 2)
    assert [e["plan"] for e in answer.data["episodes"]] == ["p28", "p29"]
    assert "28 earlier episodes;" in answer.plain
    assert "... 1 earlier episode;" in report_history(entries, None, 2e9, 29).plain
    rc, _, err = session.command("equilibrium history --limit 0")
    assert rc == -22 and "--limit" in err

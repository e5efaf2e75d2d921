"""From an uneven cluster to an even one with status, eval, optimize, show and execute."""

from __future__ import annotations

import pytest

from mgr_stub.console.session import Session

from ..asking import ask, by, max_by_class, optimize, run, up_sets, upmap_items


def test_from_uneven_to_even(any_session: Session) -> None:
    session = any_session
    uneven = ask(session, "eval")
    plan = optimize(session)
    predicted = ask(session, "eval p")
    before = up_sets(session)

    run(session, "equilibrium execute p")
    assert [p["state"] for p in ask(session, "ls")["plans"]] == ["executing"]
    assert ask(session, "status")["state"] == "moving"
    run(session, "sim run idle")

    assert up_sets(session) == {**before, **plan["predicted_up"]}
    assert upmap_items(session) == {p: i for p, i in plan["upmap_items"].items() if i}
    status = ask(session, "status")
    assert status["state"] == "off"
    assert status["execution"] is None
    last = status["last_execution"]
    assert (last["plan"], last["outcome"]) == ("p", "completed")
    assert last["sent_moves"] == len(plan["moves"])
    assert last["dropped_moves"] == 0
    assert "completed" in run(session, "equilibrium status")
    even = ask(session, "eval")
    uneven, after, wanted = [by("device_class", answer["classes"])
                             for answer in (uneven, even, predicted)]
    for name, figures in after.items():
        for key in ("max_utilization", "stddev"):
            told = wanted[name][f"planned_{key}"]
            assert figures[key] == pytest.approx(told, abs=0.002)
            assert figures[key] < uneven[name][key]
    assert max_by_class(session) == pytest.approx(
        {name: row["planned_max_utilization"] for name, row in wanted.items()}, abs=0.002)
    free = by("name", even["pools"])
    for row in predicted["pools"]:
        told = row["planned_free_bytes"]
        assert free[row["name"]]["free_bytes"] == pytest.approx(told, rel=0.02)
    assert even["room"]["bytes"] == pytest.approx(predicted["planned_room"]["bytes"], rel=0.02)
    again = optimize(session, "q")
    assert len(again["moves"]) <= len(plan["moves"]) // 10
    assert session.mgr.health_checks == {}


def test_show_can_be_run_by_hand(session: Session) -> None:
    plan = optimize(session)
    before = up_sets(session)
    lines = run(session, "equilibrium show p").splitlines()
    comments = [line for line in lines if line.startswith("#")]
    commands = lines[len(comments):]
    assert comments
    assert "epoch 42" in comments[0]
    assert commands == ask(session, "show p")["commands"]
    assert commands
    assert all(line.startswith("ceph osd pg-upmap-items ") for line in commands)
    run(session, *commands)
    assert up_sets(session) == {**before, **plan["predicted_up"]}
    assert upmap_items(session) == plan["upmap_items"]

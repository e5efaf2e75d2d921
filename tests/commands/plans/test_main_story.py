"""From an uneven cluster to an even one with status, eval, optimize, show and execute."""

from __future__ import annotations

from typing import Callable

import pytest

from mgr_stub.console.session import Session

from ..asking import (
    ask, by, count_commands, max_by_class, optimize, run, until_all_have_peered, up_sets,
    upmap_items)
from ..conftest import look


def test_looking_moves_nothing(any_session: Session) -> None:
    sent = count_commands(any_session)
    before = any_session.cluster.map
    run(any_session, *("equilibrium " + line for line in (
        "status", "eval", "optimize p", "eval p", "show p", "dump p", "ls", "eval vms",
        "pool ls", "dump-state", "history")))
    run(any_session, "sim run 10m")
    assert sent == []
    assert any_session.cluster.map is before
    assert ask(any_session, "status")["state"] == "off"


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
    assert status["state"] == "off" and status["execution"] is None
    last = status["last_execution"]
    assert (last["plan"], last["outcome"]) == ("p", "completed")
    assert last["sent_moves"] == len(plan["moves"]) and last["dropped_moves"] == 0
    assert "completed" in run(session, "equilibrium status")
    even = ask(session, "eval")
    for name, after in by("device_class", predicted["classes"]).items():
        figures = by("device_class", even["classes"])[name]
        then = by("device_class", uneven["classes"])[name]
        highest = after["planned_max_utilization"]
        assert figures["max_utilization"] == pytest.approx(highest, abs=0.002)
        assert figures["stddev"] == pytest.approx(after["planned_stddev"], abs=0.002)
        assert max_by_class(session)[name] == pytest.approx(highest, abs=0.002)
        assert figures["max_utilization"] < then["max_utilization"]
        assert figures["stddev"] < then["stddev"]
    for name, space in by("name", even["pools"]).items():
        assert space["free_bytes"] == pytest.approx(
            by("name", predicted["pools"])[name]["planned_free_bytes"], rel=0.02)
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
    assert comments and "epoch 42" in comments[0]
    assert commands == ask(session, "show p")["commands"]
    assert commands and all(line.startswith("ceph osd pg-upmap-items ") for line in commands)
    run(session, *commands)
    assert up_sets(session) == {**before, **plan["predicted_up"]}
    assert upmap_items(session) == plan["upmap_items"]


def test_items_that_do_harm_are_removed(session: Session) -> None:
    optimize(session)
    run(session, "equilibrium execute p", "sim run idle")
    even = upmap_items(session)
    # six PGs from osd.8 to osd.13, which is on another host: the one gets too empty, the other full
    spoilt = [pgid for pgid, up in up_sets(session).items() if pgid.startswith("2.")
              and pgid not in even and 8 in up and not {12, 13, 14, 15} & set(up)][:6]
    run(session, *(f"osd pg-upmap-items {pgid} 8 13" for pgid in spoilt))
    run(session, "sim run idle")
    run(session, "config set mgr mgr/equilibrium/pg_cooldown 0")
    plan = optimize(session, "repair")
    removed = [pgid for pgid, items in plan["upmap_items"].items() if not items]
    assert removed and set(removed) <= set(spoilt)
    commands = ask(session, "show repair")["commands"]
    assert all("ceph osd rm-pg-upmap-items " + pgid in commands for pgid in removed)
    before = up_sets(session)
    run(session, "equilibrium execute repair", "sim run idle")
    assert not set(removed) & set(upmap_items(session))
    assert up_sets(session) == {**before, **plan["predicted_up"]}


def test_eval_foresees_what_is_under_way(session: Session) -> None:
    """While moves are under way, eval tells how full the OSDs will be when they have arrived."""
    optimize(session)
    run(session, "equilibrium execute p", "sim run 2m", "equilibrium off", "sim run 61s")
    until_all_have_peered(session)
    assert session.simulation.backfill.moving()
    look(session)
    predicted = ask(session, "eval")
    run(session, "sim run idle")
    look(session)
    even = ask(session, "eval")
    assert not predicted["look_started"] and not even["look_started"]
    for name, figures in by("device_class", even["classes"]).items():
        said = by("device_class", predicted["classes"])[name]
        assert said["soon_max_utilization"] == pytest.approx(figures["max_utilization"], abs=0.002)
        assert said["soon_stddev"] == pytest.approx(figures["stddev"], abs=0.002)

def test_a_plan_can_be_evaluated_once_it_is_made(open_session: Callable[..., Session]) -> None:
    """Switched off, the module has not looked at the cluster before somebody asks."""
    session = open_session()
    run(session, "equilibrium optimize p", "sim run 2s")
    run(session, "equilibrium show p", "equilibrium eval p")

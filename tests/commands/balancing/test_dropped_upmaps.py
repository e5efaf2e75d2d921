"""What the monitor refuses or clears away is reported, and the rest is carried out."""

from __future__ import annotations

from typing import Any, Dict, Set

from mgr_stub.console.session import Session

from ..asking import (
    ask, at_first_upmap, count_commands, health, mark_out, optimize, pools_of,
    refused, run, up_sets)


def last_execution(session: Session) -> Dict[str, Any]:
    status = ask(session, "status")
    assert status["execution"] is None
    last: Dict[str, Any] = status["last_execution"]
    assert last["outcome"].startswith("completed")
    assert last["sent_moves"] + last["done_moves"] + last["dropped_moves"] == last["planned_moves"]
    return last


def rest_is_done(session: Session, plan: Dict[str, Any], before: Dict[str, Any]) -> None:
    """Every PG that was not dropped is where the plan wanted it, all others where they were."""
    dropped = {entry["pgid"] for entry in last_execution(session)["dropped"]}
    for pgid, up in up_sets(session).items():
        wanted = plan["predicted_up"].get(pgid, before[pgid])
        if pgid not in dropped:
            assert up == wanted, pgid
        else:                                   # the monitor may have kept a part of its items
            assert all(now in (then, later)
                       for now, then, later in zip(up, before[pgid], wanted)), pgid


def on_osd(plan: Dict[str, Any], osd: int) -> Set[str]:
    """PGs of the plan that would be on the OSD; out as it is, the monitor keeps none of them."""
    return {pgid for pgid, up in plan["predicted_up"].items() if osd in up}


def test_the_monitor_clears_items_away(session: Session) -> None:
    """The target goes out while the commands are on their way: rc 0, and nothing in the map."""
    plan = optimize(session)
    before = up_sets(session)
    at_first_upmap(session, lambda: mark_out(session, 12))
    run(session, "equilibrium execute p")
    status = ask(session, "status")
    assert status["rejected"]
    assert {pgid for group in status["rejected"] for pgid in group["pgids"]} <= on_osd(plan, 12)
    assert all("monitor" in group["reason"] for group in status["rejected"])
    assert "rejected:" in run(session, "equilibrium status")
    run(session, "sim run 2m")
    assert "MGR_EQUILIBRIUM_APPLY_FAILED" in health(session)
    run(session, "sim run idle")
    assert {entry["pgid"] for entry in last_execution(session)["dropped"]} == on_osd(plan, 12)
    rest_is_done(session, plan, before)


def test_a_pool_is_deleted_before_execute(session: Session) -> None:
    plan = optimize(session)
    run(session, "sim pool rm backup")
    sent = count_commands(session)
    rc, text = refused(session, "equilibrium execute p")
    assert rc == -2 and "gone" in text
    assert ask(session, "dump p") == plan       # nothing is lost
    run(session, "equilibrium show p", "equilibrium eval p", "sim run 5m", "equilibrium rm p")
    assert sent == []
    assert "backup" not in pools_of(session, optimize(session))

"""What the monitor refuses or clears away is reported, and the rest is carried out."""

from __future__ import annotations

from typing import Any, Dict, Set

from mgr_stub.console.session import Session

from ..asking import (
    ask, at_first_upmap, count_commands, health, mark_out, misplaced_ratio, optimize, pools_of,
    refused, run, shards_in_flight, up_sets, upmap_items)


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


def moved_to(plan: Dict[str, Any], osd: int) -> Set[str]:
    return {move["pgid"] for move in plan["moves"] if move["to"] == osd}


def test_a_target_goes_out_before_the_plan_is_executed(any_session: Session) -> None:
    plan = optimize(any_session)
    before = up_sets(any_session)
    mark_out(any_session, 12)
    run(any_session, "equilibrium execute p", "sim run idle")
    last = last_execution(any_session)
    reasons = {entry["pgid"]: entry["reason"] for entry in last["dropped"]}
    assert set(reasons) == on_osd(plan, 12)
    assert all("osd.12 is" in reasons[pgid] for pgid in moved_to(plan, 12))
    rest_is_done(any_session, plan, before)


def test_the_monitor_clears_items_away(any_session: Session) -> None:
    """The target goes out while the commands are on their way: rc 0, and nothing in the map."""
    session = any_session
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


def test_what_is_kept_in_part_is_under_way(session: Session) -> None:
    """Of several pairs the monitor takes out the one whose target is out; the others move data."""
    optimize(session)
    at_first_upmap(session, lambda: mark_out(session, 12))
    run(session, "equilibrium execute p")
    moving = session.simulation.backfill.moving()
    status = ask(session, "status")
    assert shards_in_flight(status) == sum(len(pg.transfers) for pg in moving)
    assert status["misplaced_ratio"] >= misplaced_ratio(session) * 0.999


def test_the_monitor_refuses_commands(session: Session) -> None:
    """A pool vanishes while the commands are on their way: ENOENT for each of its PGs."""
    plan = optimize(session)
    before = up_sets(session)
    at_first_upmap(session, lambda: run(session, "sim pool rm fast"))
    run(session, "equilibrium execute p", "sim run idle")
    last = last_execution(session)
    assert {e["pgid"] for e in last["dropped"]} == {
        pgid for pgid in plan["predicted_up"] if pgid.startswith("6.")}
    assert any("monitor refused" in e["reason"] or "gone" in e["reason"] for e in last["dropped"])
    rest_is_done(session, plan, before)


def test_a_pool_is_deleted_before_execute(any_session: Session) -> None:
    session = any_session
    plan = optimize(session)
    run(session, "sim pool rm backup")
    sent = count_commands(session)
    rc, text = refused(session, "equilibrium execute p")
    assert rc == -2 and "gone" in text
    assert ask(session, "dump p") == plan       # nothing is lost
    run(session, "equilibrium show p", "equilibrium eval p", "sim run 5m", "equilibrium rm p")
    assert sent == []
    assert "backup" not in pools_of(session, optimize(session))


def test_somebody_else_moves_a_pg_of_the_plan(session: Session) -> None:
    plan = optimize(session)
    pgid = next(p for p, items in plan["upmap_items"].items() if len(items) == 1)
    source, target = plan["upmap_items"][pgid][0]
    hosts = {osd // 4 for osd in plan["predicted_up"][pgid]}
    other = next(osd for osd in range(24) if osd // 4 not in hosts and osd % 4 != 3) \
        if target % 4 != 3 else next(o for o in range(3, 24, 4) if o // 4 not in hosts)
    run(session, f"osd pg-upmap-items {pgid} {source} {other}")
    assert upmap_items(session)[pgid] == [[source, other]]
    before = up_sets(session)
    run(session, "equilibrium execute p", "sim run idle")
    assert [(e["pgid"], e["reason"]) for e in last_execution(session)["dropped"]] == [
        (pgid, "somebody else has moved the PG")]
    rest_is_done(session, plan, before)


def test_what_is_there_already_is_not_sent(session: Session) -> None:
    plan = optimize(session)
    commands = ask(session, "show p")["commands"]
    run(session, *commands[:20])
    run(session, "sim run idle")
    sent = count_commands(session)
    run(session, "equilibrium execute p", "sim run idle")
    last = last_execution(session)
    assert len(sent) == len(commands) - 20
    assert last["done_moves"] + last["sent_moves"] == last["planned_moves"]
    assert last["done_moves"] >= 20
    assert upmap_items(session) == plan["upmap_items"]


def test_automatic_balancing_goes_round_what_is_cleared_away(session: Session) -> None:
    at_first_upmap(session, lambda: mark_out(session, 12))
    run(session, "config set mgr mgr/equilibrium/pg_cooldown 0", "equilibrium on", "sim run idle")
    status = ask(session, "status")
    assert status["state"] in ("balanced", "stuck") and status["execution"] is None
    assert 12 not in {osd for items in upmap_items(session).values() for _, osd in items}
    sent = count_commands(session)
    run(session, "sim run 3h")
    assert sent == []

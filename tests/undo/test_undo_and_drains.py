"""`undo`, `cancel` and `drain add`: which comes first, and which has to wait for the other."""
from __future__ import annotations

import errno
from typing import Set

import pytest

from mgr_stub.console.session import Session

from .test_undo_commands import asked, half_way, refused, said, session

__all__ = ["session"]   # the fixture


def gained(session: Session) -> Set[int]:
    """OSDs that the undo under way takes shards back to."""
    plan = session.module.plan_store.get("undo-1")
    return {osd for change in plan.changes for osd in change.up_after
            if osd not in change.up_before}


@pytest.fixture
def undoing(session: Session) -> Session:
    """An undo is being executed."""
    half_way(session)
    assert asked(session, "undo")["plan"] == "undo-1"
    return session


def test_a_drain_of_what_is_taken_back_waits_for_the_undo(undoing: Session) -> None:
    osd = min(gained(undoing))
    code, message = refused(undoing, f"drain add {osd}")
    assert code == errno.EBUSY and f"takes shards back to osd.{osd}" in message
    assert "'ceph equilibrium rm undo-1' stops it" in message
    assert asked(undoing, "status")["drains"]["osds"] == []
    said(undoing, "equilibrium rm undo-1")
    said(undoing, f"equilibrium drain add {osd}")


def test_a_drain_of_others_begins_once_the_undo_is_done(undoing: Session) -> None:
    osd = min(set(range(18)) - gained(undoing))
    answer = said(undoing, f"equilibrium drain add {osd}").replace("\n", " ")
    assert "it begins once plan 'undo-1' is done" in answer
    undoing.host.run_for(60.0)
    assert asked(undoing, "status")["execution"]["plan"] == "undo-1"
    assert asked(undoing, "drain ls")["waits_for_plan"] == "undo-1"
    assert "it goes on once plan 'undo-1' is done" in said(undoing, "equilibrium drain ls")
    said(undoing, "sim backfill rate 1G")
    undoing.host.run_for(14400.0)
    listed = asked(undoing, "drain ls")
    assert listed["safe_to_stop"] and listed["waits_for_plan"] is None


def test_what_returns_nothing_to_a_drained_osd_is_taken_back(session: Session) -> None:
    """Shards of the drained OSD have no other place; plan p is undone all the same."""
    half_way(session)
    moves = session.module.plan_store.get("p").moves
    said(session, "equilibrium rm p")
    said(session, "config set mgr mgr/equilibrium/fill_limit 0.01")
    osd = min(set(range(12)) - {move.source for move in moves})
    said(session, f"equilibrium drain add {osd}")
    session.host.run_for(300.0)
    assert asked(session, "status")["drains"]["stuck_shards"] > 0
    assert asked(session, "undo p --dry-run")["pgs"] > 0
    answer = asked(session, "undo p")
    assert answer["plan"] == "undo-1" and answer["not_restored"] == []


def test_what_returns_a_shard_to_a_drained_osd_stops_nothing(session: Session) -> None:
    """It is refused before the plan is stopped."""
    half_way(session)
    source = session.module.plan_store.get("p").moves[0].source
    said(session, f"equilibrium drain add {source}")
    assert refused(session, "undo p")[0] == errno.EPERM
    assert asked(session, "status")["execution"]["plan"] == "p"


def test_the_option_waits_for_what_is_taken_back(session: Session) -> None:
    """As `on` does; nothing else is sent until then, and `status` says so."""
    half_way(session)
    name = asked(session, "undo")["plan"]
    said(session, "config set mgr mgr/equilibrium/active true")
    sent = len(session.simulation.monitor.log)
    for _ in range(4):
        session.host.run_for(120.0)
        execution = asked(session, "status")["execution"]
        assert (execution["plan"], execution["kind"]) == (name, "undo")
        plain = " ".join(said(session, "equilibrium status").split())
        assert f"it begins once plan '{name}' is done, and may make again what" in plain
    wanted = {change.pgid for change in session.module.plan_store.get(name).changes}
    begun = {entry.command.get("pgid") for entry in session.simulation.monitor.log[sent:]}
    assert begun <= wanted | {None}

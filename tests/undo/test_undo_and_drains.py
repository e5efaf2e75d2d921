"""`undo`, `cancel` and `drain add`: which comes first, and which has to wait for the other."""
from __future__ import annotations

import errno
from typing import Set

import pytest

from mgr_stub.console.session import Session
from tests.commands.asking import run as said

from .test_undo_commands import asked, half_way, refused, session

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
    assert code == errno.EBUSY
    assert f"takes shards back to osd.{osd}" in message
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
    assert listed["safe_to_stop"]
    assert listed["waits_for_plan"] is None


def test_what_returns_a_shard_to_a_drained_osd_stops_nothing(session: Session) -> None:
    """It is refused before the plan is stopped."""
    half_way(session)
    source = session.module.plan_store.get("p").moves[0].source
    said(session, f"equilibrium drain add {source}")
    assert refused(session, "undo p")[0] == errno.EPERM
    assert asked(session, "status")["execution"]["plan"] == "p"

"""What `undo` and `cancel` say of drains, of the result, of pg_cooldown, and of what is unknown."""
from __future__ import annotations

import errno
from typing import Any

import pytest

from equilibrium_mgr.commands import base as module_parts
from equilibrium_mgr.undo.undo_plan import DRAINED
from mgr_stub.console.session import Session
from tests.commands.asking import run as said
from tests.support.few import few

from .test_undo_commands import asked, half_way, refused, session, settle

__all__ = ["session"]   # the fixture

_COMMANDS = ("undo", "undo --dry-run", "cancel", "cancel --dry-run", "undo --since 1d")


@pytest.fixture
def draining(session: Session) -> Session:
    """osd.3 is being drained, and some of its shards have left."""
    said(session, "equilibrium drain add osd.3")
    session.host.run_for(480.0)
    return session


def test_a_drain_has_to_end_first(draining: Session) -> None:
    sent = len(draining.simulation.monitor.log)
    for command in _COMMANDS:
        code, message = refused(draining, command)
        assert code == errno.EPERM
        assert "osd.3 is being drained" in message
        assert "'ceph equilibrium drain rm osd.3'" in message
    assert len(draining.simulation.monitor.log) == sent
    said(draining, "equilibrium drain rm osd.3")
    answer = asked(draining, "undo")
    assert answer["of"].startswith("draining of")
    assert answer["pgs"] > 0
    assert answer["not_restored"] == []
    settle(draining)
    assert not draining.cluster.map.upmap_items


def test_a_paused_drain_keeps_what_has_left(draining: Session) -> None:
    said(draining, "equilibrium off")
    answer = asked(draining, "undo")
    assert answer["pgs"] == 0
    assert answer["plan"] is None
    assert len(answer["not_restored"]) > 5
    assert {row["reason"] for row in answer["not_restored"]} == {DRAINED}


def test_without_room_for_its_plan_nothing_is_stopped(
        session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    half_way(session)
    monkeypatch.setattr(module_parts, "MAX_PLANS", 1)
    for command in ("undo", "cancel", "undo --dry-run"):
        assert refused(session, command)[0] == errno.ENOSPC
    assert asked(session, "status")["execution"]["plan"] == "p"


def test_what_the_log_has_dropped_is_said(
        session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("equilibrium_mgr.undo.change_log.MOST_ROWS", 30)
    monkeypatch.setattr("equilibrium_mgr.undo.change_log._ROWS_A_PART", 8)
    half_way(session)
    said(session, "equilibrium rm p")
    session.host.run_for(1.0)
    found: Any = asked(session, "undo --dry-run")
    assert found["unknown"].startswith("its beginning is not known")
    plain = said(session, "equilibrium undo --dry-run --since 3h")
    assert "what was changed before 20" in plain
    assert "is not known" in plain
    assert asked(session, "undo --dry-run --since 1s")["unknown"] is None


@pytest.mark.parametrize("command", few(["undo", "cancel"], 1))
def test_on_waits_for_what_takes_changes_back(session: Session, command: str) -> None:
    half_way(session)
    name = asked(session, command)["plan"]
    code, message = refused(session, "on")
    assert code == errno.EBUSY
    assert f"'ceph equilibrium rm {name}' stops it" in message
    assert asked(session, "status")["active"] is False
    said(session, f"equilibrium rm {name}")
    said(session, "equilibrium on")

"""What `undo` and `cancel` say of drains, of the result, of pg_cooldown, and of what is unknown."""
from __future__ import annotations

import errno
from typing import Any, List

import pytest

from mgr_stub.console.session import Session
from tests.support.few import few
from equilibrium_mgr.commands import base as module_parts
from equilibrium_mgr.undo.undo_plan import DRAINED

from .test_undo_commands import asked, half_way, refused, said, session, settle

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
    assert answer["of"].startswith("draining of") and answer["pgs"] > 0
    assert answer["not_restored"] == []
    settle(draining)
    assert not draining.cluster.map.upmap_items


def test_a_paused_drain_keeps_what_has_left(draining: Session) -> None:
    said(draining, "equilibrium off")
    answer = asked(draining, "undo")
    assert answer["pgs"] == 0 and answer["plan"] is None and len(answer["not_restored"]) > 5
    assert {row["reason"] for row in answer["not_restored"]} == {DRAINED}


def test_it_tells_what_comes_of_it(session: Session) -> None:
    half_way(session)
    said(session, "equilibrium rm p")
    settle(session)
    shown = asked(session, "undo --dry-run")
    [row] = [row for row in shown["classes"] if row["device_class"] == "hdd"]
    assert row["planned_max_utilization"] > row["max_utilization"]
    plain = said(session, "equilibrium undo --dry-run")
    assert (f"highest:     {100.0 * row['max_utilization']:.2f}% ->"
            f" up to {100.0 * row['planned_max_utilization']:.2f}% (osd."
            f"{row['planned_fullest_osd']}, class hdd)") in plain
    nearfull = 0.85
    for shown_row in shown["classes"]:
        assert (f"class {shown_row['device_class']}), above nearfull" in plain) == (
            shown_row["planned_max_utilization"] > nearfull)
    assert "above nearfull" in plain


@pytest.mark.parametrize("lead, action", [
    (["drain add host1 14", "off"], "ceph equilibrium drain rm host1 osd.14"),
    pytest.param(["drain add host1", "off", "drain rm host1"], "ceph equilibrium undo automatic",
                 marks=pytest.mark.full)])
def test_what_it_names_lets_the_rest_be_restored(
        session: Session, lead: List[str], action: str) -> None:
    half_way(session)
    said(session, "sim backfill rate 1G")
    settle(session)
    for line in lead:
        said(session, "equilibrium " + line)
        session.host.run_for(600.0)
    left = asked(session, "undo p --dry-run")["not_restored"]
    plain = " ".join(said(session, "equilibrium undo p --dry-run").split())
    assert left and f"'{action}' lets" in plain and len(plain) < 1500, plain
    named = {row["pgid"] for row in left if row["action"] and row["action"][:21] == action[:21]}
    assert named
    said(session, action[5:])
    settle(session)
    again = asked(session, "undo p --dry-run")
    assert not {row["pgid"] for row in again["not_restored"]} & named


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
    assert "what was changed before 20" in plain and "is not known" in plain
    assert asked(session, "undo --dry-run --since 1s")["unknown"] is None


@pytest.mark.parametrize("command", few(["undo", "cancel"], 1))
def test_on_waits_for_what_takes_changes_back(session: Session, command: str) -> None:
    half_way(session)
    name = asked(session, command)["plan"]
    code, message = refused(session, "on")
    assert code == errno.EBUSY and f"'ceph equilibrium rm {name}' stops it" in message
    assert asked(session, "status")["active"] is False
    said(session, f"equilibrium rm {name}")
    said(session, "equilibrium on")

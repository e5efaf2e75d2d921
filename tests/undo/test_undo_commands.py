"""`undo` and `cancel` on a simulated cluster: what they answer, refuse and restore."""
from __future__ import annotations

import errno
import json
from typing import Any, Dict, Iterator, Tuple

import pytest

from mgr_stub.console.session import Session
from tests.commands.asking import run as said


@pytest.fixture
def session() -> Iterator[Session]:
    """The demo cluster; plan p is made, and nothing has been moved."""
    opened = Session.from_state(None)
    for line in ("config set mgr mgr/equilibrium/start_delay 0", "sim backfill rate 50M",
                 "config set mgr mgr/equilibrium/pg_cooldown 0", "equilibrium optimize p"):
        said(opened, line)
    opened.host.run_for(60.0)
    yield opened
    opened.close()


def asked(session: Session, line: str) -> Dict[str, Any]:
    """The JSON of a command, given again where nobody had looked at the cluster for long."""
    if session.command(f"equilibrium {line.partition(' ')[0]} --dry-run")[0] == -errno.EAGAIN:
        session.host.run_for(1.0)
    answer: Dict[str, Any] = json.loads(said(session, f"equilibrium {line} --format json"))
    return answer


def refused(session: Session, line: str) -> Tuple[int, str]:
    code, out, message = session.command(f"equilibrium {line}")
    assert code < 0
    assert out == ""
    assert "\n" not in message.strip()
    return -code, message


def items(session: Session) -> Dict[str, Any]:
    return dict(session.cluster.map.upmap_items)


def settle(session: Session) -> None:
    """Lets all that is under way, or is still to be sent, come to its end."""
    said(session, "sim backfill rate 1G")
    session.host.run_for(4 * 3600.0)


def half_way(session: Session) -> Dict[str, Any]:
    """Executes p for twenty minutes; returns the upmap items of before."""
    before = items(session)
    said(session, "equilibrium execute p")
    session.host.run_for(1200.0)
    assert items(session) != before
    return before


def test_undo_restores_every_pair(session: Session) -> None:
    before = half_way(session)
    shown = asked(session, "undo --dry-run")
    assert shown["state"] == "dry-run"
    assert shown["plan"] is None
    assert shown["not_begun_pgs"]
    assert shown["under_way_pgs"]
    assert shown["shards"]
    assert asked(session, "status")["execution"]["plan"] == "p"   # it goes on
    answer = asked(session, "undo")
    assert (answer["plan"], answer["stopped_plan"], answer["of"]) == ("undo-1", "p", "plan 'p'")
    assert answer["pgs"] == shown["pgs"]
    assert answer["not_restored"] == []
    settle(session)
    assert items(session) == before
    again = asked(session, "undo p")
    assert again["pgs"] == 0
    assert again["plan"] is None


def test_cancel_leaves_what_has_begun(session: Session) -> None:
    half_way(session)
    moving = {pg.pgid for pg in session.cluster.unclean.values()
              if any(transfer.copied for transfer in pg.transfers.values())}
    held = {pgid: session.cluster.pgs[pgid].held for pgid in session.cluster.pgs}
    answer = asked(session, "cancel")
    assert answer["kind"] == "cancel"
    assert answer["not_begun_pgs"] == answer["pgs"] > 0
    assert answer["shards"] == 0
    assert answer["bytes"] == 0
    assert answer["stopped_plan"] == "p"
    session.host.run_for(5.0)
    assert {pg.pgid for pg in session.cluster.unclean.values()} <= moving
    settle(session)
    arrived = {pgid for pgid, pg in session.cluster.pgs.items() if set(pg.held) != set(held[pgid])}
    assert arrived <= moving
    history = asked(session, "history")["episodes"]
    assert history[0]["outcome"] == "stopped"
    assert "cancel" in history[0]["outcome_reason"]


def test_automatic_balancing_has_to_be_off(session: Session) -> None:
    said(session, "equilibrium on")
    session.host.run_for(1200.0)
    for command in ("undo", "cancel", "undo --dry-run", "cancel --dry-run"):
        code, message = refused(session, command)
        assert code == errno.EPERM
        assert "'ceph equilibrium off'" in message
    said(session, "equilibrium off")
    assert asked(session, "undo --dry-run")["of"].startswith("automatic balancing of 2026-")
    answer = asked(session, "undo automatic")
    assert answer["pgs"] > 0
    settle(session)
    assert items(session) == {}


_BAD = [
    ('undo ""', errno.EINVAL, "name of the plan is empty"),
    ("undo '' --dry-run", errno.EINVAL, "empty"),
    ('cancel ""', errno.EINVAL, "empty"), ('report ""', errno.ENOENT, "''"),
    ('eval ""', errno.ENOENT, "''"),
    ("undo p --since 6h", errno.EINVAL, "not both"), ("undo --since yesterday", errno.EINVAL, "6h"),
    ("undo --since 0", errno.EINVAL, "6h"), ("undo", errno.ENOENT, "nothing"),
    ("undo nobody", errno.ENOENT, "'nobody'"), ("cancel nobody", errno.ENOENT, "'nobody'")]


def test_bad_input(session: Session) -> None:
    for line, code, part in _BAD:
        found, message = refused(session, line)
        assert found == code and part in message, line

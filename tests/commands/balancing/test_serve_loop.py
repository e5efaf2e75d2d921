"""The serve loop outlives exceptions, says so, backs off, and goes on."""

from __future__ import annotations

import errno
from typing import Any

import pytest

from mgr_stub.console.session import Session

from ..asking import count_commands, health, optimize, run


def boom(*_: Any, **__: Any) -> None:
    raise RuntimeError("boom")


def test_one_bad_look_delays_no_execution(session: Session,
                                          monkeypatch: pytest.MonkeyPatch) -> None:
    """An execution whose first round fails begins with the next one."""
    optimize(session)
    sent = count_commands(session)
    with monkeypatch.context() as patch:
        patch.setattr(session.module.gateway, "snapshot", boom)
        run(session, "equilibrium execute p")
        assert "boom" in session.module._failure
        assert health(session) == {}   # one is no check yet
    run(session, "sim run 1m")
    assert sent
    assert health(session) == {}


def test_commands_of_a_mgr_that_knows_nothing_yet(session: Session,
                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    """EAGAIN and a sentence, as for everything that a moment's patience cures."""
    get = session.mgr.get
    monkeypatch.setattr(session.mgr, "get", lambda name: None if name == "df" else get(name))
    for line in ("pool ls", "pool add vms", "optimize p vms"):
        rc, out, err = session.command("equilibrium " + line)
        assert (rc, out) == (-errno.EAGAIN, "")
        assert "try again" in err
        assert "\n" not in err

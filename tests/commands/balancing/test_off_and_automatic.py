"""`off`, and automatic balancing to the end."""

from __future__ import annotations

import errno
from typing import Any, Callable, Dict

from mgr_stub.console.session import Session

from ..asking import ask, count_commands, optimize, refused, refuses, run, upmap_items


def test_one_execution_at_a_time(session: Session) -> None:
    optimize(session, "q")
    optimize(session)
    run(session, "equilibrium execute p")
    refuses(session, "execute q", errno.EBUSY)
    refuses(session, "execute p", errno.EBUSY)
    refuses(session, "optimize p", errno.EBUSY)
    assert ask(session, "reset") == {"removed": ["q"], "stopped_plan": None}


def test_old_clients(open_session: Callable[..., Session], demo_state: Dict[str, Any]) -> None:
    cure = "osd set-require-min-compat-client luminous"
    demo_state["osd_dump"]["require_min_compat_client"] = "jewel"
    session = open_session(18, demo_state)
    plan = optimize(session, "p --max-moves 10")
    sent = count_commands(session)
    for line in ("equilibrium on", "equilibrium execute p"):
        rc, text = refused(session, line)
        assert rc == -1
        assert "ceph " + cure in text
    run(session, "sim run 10m")
    assert sent == []
    assert not ask(session, "status")["active"]
    run(session, cure, "equilibrium execute p", "sim run idle")
    assert upmap_items(session) == plan["upmap_items"]
    run(session, "equilibrium on")

"""Old clients, before which nothing is sent."""

from __future__ import annotations

from typing import Any, Callable, Dict

from mgr_stub.console.session import Session

from ..asking import ask, count_commands, optimize, refused, run, upmap_items


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

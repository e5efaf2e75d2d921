"""`explain` and `status` where filters or a drain decide what may move."""

from __future__ import annotations

from mgr_stub.console.session import Session

from tests.commands.asking import ask, run


def test_a_stuck_drain_while_off_is_no_lack_of_gain(session: Session) -> None:
    """Nothing but the drain moves: what gains is not made as balancing is off."""
    run(session, "equilibrium drain add 3 7 11 15 --force", "sim run 2h")
    assert ask(session, "status")["state"] == "stuck"
    found = ask(session, "explain osd.6")
    assert found["reason_code"] == "off", found
    assert "automatic balancing is off" in found["reason_text"]
    assert found["action"].startswith("'ceph equilibrium on'")
    texts = [row["text"] for row in found["counts"] + ask(session, "explain")["counts"]]
    assert texts
    assert not any("min_gain" in text for text in texts)

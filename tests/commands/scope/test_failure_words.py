"""`eval --fail` of what the cluster cannot recover from."""

from __future__ import annotations

from mgr_stub.console.session import Session

from tests.commands.asking import ask, run


def test_what_cannot_recover_is_not_called_recovered(session: Session) -> None:
    """Ceph stops filling OSDs at backfillfull: more is what would be needed."""
    session.command("equilibrium eval --fail host0,host1,host2")
    run(session, "sim run 1s")
    data = ask(session, "eval --fail host0,host1,host2")
    text = " ".join(run(session, "equilibrium eval --fail host0,host1,host2").split())
    assert data["backfill_toofull_pgs"] > 0 and data["max_utilization"] > 0.9
    assert "as if all could recover" in text and "once recovered" not in text
    assert "would be needed: not all of it can recover" in text
    assert "would wait: their target has no room for them below backfillfull (90.00%)" in text


def test_what_recovers_is_called_so(session: Session) -> None:
    session.command("equilibrium eval --fail osd.6")
    run(session, "sim run 1s")
    text = run(session, "equilibrium eval --fail osd.6")
    assert "once recovered" in text and "would be needed" not in text

"""`status` shows how long clients wait at the OSDs of moves, beside how long they did before."""
from __future__ import annotations

from mgr_stub.console.session import Session
from tests.commands.asking import ask, run, words


def _serve(session: Session, ops: int, milliseconds: int) -> None:
    """Every OSD serves so many ops more."""
    served = session.simulation.client_load.ops
    for osd in session.cluster.map.osds:
        taken, count = served.get(osd, (0, 0))
        served[osd] = taken + ops * milliseconds * 10 ** 6, count + ops


def _clients(session: Session) -> str:
    """The line, or lines, of clients."""
    said = words(session, "status")
    return said[said.index("clients:"):].partition(" of theirs")[0] if "clients:" in said else ""


def test_it_is_shown_while_moves_are_in_flight(any_session: Session) -> None:
    session = any_session
    _serve(session, 1000, 6)
    run(session, "sim backfill rate 4M", "sim run 30m")
    assert session.mgr.calls.get("perf counter", 0) == 0, "at rest nobody is asked"
    run(session, "equilibrium on", "sim run 3m")
    assert _clients(session) == ""
    assert ask(session, "status")["client_latency"] == {
        "osds": ask(session, "status")["client_latency"]["osds"], "recent_seconds": None,
        "before_seconds": None}
    _serve(session, 100, 24)
    run(session, "sim run 2m")
    now = ask(session, "status")["client_latency"]
    assert now == {"osds": now["osds"], "recent_seconds": 0.024, "before_seconds": 0.006}
    assert _clients(session) == (
        f"clients: an op takes 24.0 ms in the last minutes, 6.0 ms before these moves, at"
        f" {now['osds']} OSDs")
    asked = session.mgr.calls["perf counter"]
    for _ in range(20):
        run(session, "equilibrium status", "equilibrium metrics")
    assert session.mgr.calls["perf counter"] == asked, "no command asks"
    run(session, "sim backfill rate 10G", "sim run 12h")
    assert _clients(session) == ""
    assert ask(session, "status")["client_latency"] is None

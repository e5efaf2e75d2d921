"""An event in the middle of an execution: what was wanted is not thrown away, no PG goes twice."""
from __future__ import annotations

from pathlib import Path
from typing import Dict, List

import pytest
from tests.scenarios.clusters import session_of
from tests.scenarios.drive import command

from mgr_stub.console.session import Session

pytestmark = pytest.mark.full

_SENT_SECONDS, _SECONDS = 1800.0, 18 * 3600.0

_EVENTS = {"OSD out": "sim osd out 9", "host added": "sim host add added 4 8T",
           "pool grown": "sim write rbd 900G"}


def sent_changes(session: Session) -> List[str]:
    """The PG of each upmap command that the monitor has been sent so far."""
    pgids: List[str] = []
    for entry in session.command_log:
        if entry.command["prefix"].endswith("pg-upmap-items"):
            pgids.append(entry.command["pgid"])
    return pgids


@pytest.mark.parametrize("event", _EVENTS)
def test_no_pg_is_moved_twice(event: str, tmp_path: Path) -> None:
    session = session_of("small", 8, tmp_path)
    command(session, "equilibrium on")
    session.host.run_for(_SENT_SECONDS)
    before = sent_changes(session)
    assert before, "nothing was sent before the event"
    raw: Dict[str, object] = {pgid: pg.raw for pgid, pg in
                              session.module.gateway.snapshot().pgs.items()}
    command(session, _EVENTS[event])
    session.host.run_for(_SECONDS)
    pgs = session.module.gateway.snapshot().pgs
    later = sent_changes(session)[len(before):]
    session.close()
    assert later
    twice = [pgid for pgid in set(later) & set(before) if pgs[pgid].raw == raw[pgid]]
    assert len(later) == len(set(later))
    assert not twice

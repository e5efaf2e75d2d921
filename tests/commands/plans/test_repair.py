"""`optimize --repair`: shown by explain, made, executed, and nothing else is moved."""

from __future__ import annotations

from pathlib import Path
from typing import Dict, Tuple

import pytest

from mgr_stub.console.session import Session
from tests.scenarios.clusters import session_of

from ..asking import ask, optimize, run, words

#: Each breaks the pool's MSR rule; the monitor keeps them.
BROKEN = {"1.0": (8, 0), "1.1": (4, 6), "1.2": (7, 1)}


@pytest.fixture
def broken(tmp_path: Path) -> Session:
    session = session_of("msr", 1, tmp_path, 20)
    for pgid, (source, target) in BROKEN.items():
        run(session, f"osd pg-upmap-items {pgid} {source} {target}")
    run(session, "sim run 2h")
    session.command("equilibrium explain")   # asks for a look
    run(session, "sim run 2m")
    return session


def items(session: Session) -> Dict[str, Tuple[Tuple[int, int], ...]]:
    return dict(session.cluster.map.upmap_items)


def test_explain_shows_them(broken: Session) -> None:
    said = run(broken, "equilibrium explain")
    assert "break the CRUSH rule of 3 PGs: 1.0, 1.1, 1.2;" in " ".join(said.split())
    assert ask(broken, "explain")["broken_pgs"] == sorted(BROKEN)
    said = words(broken, "explain 1.0")
    assert "optimize mend --repair" in said
    assert "not one of its CRUSH rule: its shards cannot be divided" in said


def test_they_are_mended_and_nothing_else(broken: Session) -> None:
    plan = optimize(broken, "mend --repair")
    assert {move["pgid"] for move in plan["moves"]} == set(BROKEN)
    assert len(plan["moves"]) == len(BROKEN)
    run(broken, "equilibrium execute mend", "sim run 2h")
    assert ask(broken, "status")["last_execution"]["outcome"] == "completed"
    assert set(items(broken)) <= set(BROKEN)
    assert ask(broken, "explain")["broken_pgs"] == []
    assert optimize(broken, "again --repair")["moves"] == []

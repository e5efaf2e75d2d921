"""A long log: commands read only the parts that can matter, and answer as with a short one."""
from __future__ import annotations

from itertools import cycle, islice
from typing import Any, Iterator, List, Tuple

import pytest

from equilibrium_mgr.undo import change_log
from equilibrium_mgr.undo.change_log import ChangeRow
from mgr_stub.console.session import Session
from tests.commands.asking import run

_PARTS = 20


@pytest.fixture(scope="module")
def sessions() -> Iterator[Tuple[Session, Session]]:
    """A session with a short log and one with a long log; all tests ask both the same."""
    short, long = opened(long=False), opened(long=True)
    yield short, long
    short.close()
    long.close()


def opened(long: bool) -> Session:
    """The demo cluster: plan p waits half-way, and CRUSH moves PGs that were never sent."""
    session = Session.from_state(None)
    pool = min(session.cluster.map.pools)
    pgids = [pgid for pgid in session.cluster.pgs if pgid.startswith(f"{pool}.")]
    if long:
        add_old_parts(session.module.balancer.changes(), pgids)
    run(session, "config set mgr mgr/equilibrium/start_delay 0", "sim backfill rate 1M",
        "equilibrium optimize p", "sim run 60s", "equilibrium execute p", "sim run 20m",
        "sim osd out 1", "sim run 2m")
    return session


def add_old_parts(log: change_log.ChangeLog, pgids: List[str]) -> None:
    for number in range(_PARTS):
        at = 1000.0 * number
        rows = [ChangeRow(at, f"old-{number}", "balance", at, 7, pgid, (1, 2, 3), (), ((1, 99),), 1)
                for pgid in islice(cycle(pgids), change_log._ROWS_A_PART)]
        log._add(rows)


@pytest.mark.parametrize("line, most", [
    ("cancel", 1), ("undo", 1), ("undo p", 1), ("undo --since 6h", 1), ("undo old-15", 6),
    ("undo nothing", 0)])
def test_only_parts_that_matter_are_unpacked(line: str, most: int,
                                             sessions: Tuple[Session, Session],
                                             monkeypatch: pytest.MonkeyPatch) -> None:
    unpacked: List[int] = []
    given = change_log._unpacked

    def counted(*args: Any) -> List[ChangeRow]:
        rows = given(*args)
        unpacked.append(len(rows))
        return rows
    monkeypatch.setattr(change_log, "_unpacked", counted)
    answers = [one.command(f"equilibrium {line} --dry-run") for one in sessions]
    if "old" not in line:
        assert answers[0] == answers[1]
    assert unpacked.count(change_log._ROWS_A_PART) <= most

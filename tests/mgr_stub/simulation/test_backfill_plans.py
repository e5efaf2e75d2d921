"""Backfills are planned only when the plan may change, with the same results.

The reference is a session that plans at every epoch.
"""

from __future__ import annotations

import random
from typing import Any, Callable, Dict, Tuple

import pytest

from mgr_stub.cluster import pg_reports
from mgr_stub.simulation.backfill import Backfill
from tests.mgr_stub.random_commands import next_line, pause
from tests.support.clusters.crush_cluster import check_accounts, crush_state
from tests.support.few import few
from tests.support.units import GIB

MakeSession = Callable[..., Any]

_EVENTS = 50


@pytest.fixture(scope="module")
def state() -> Dict[str, Any]:
    """OSDs so small that targets become too full."""
    return crush_state(pools=[("rbd", 32, 3, 0, 640 * GIB), ("ec", 16, 4, 2, 320 * GIB)],
                       osd_bytes=400 * GIB)


def data_state(session: Any) -> Tuple[Any, ...]:
    """Map, bytes and transfers of the cluster."""
    cluster = session.cluster
    return (cluster.map, {osd: usage.used for osd, usage in cluster.usage.items()},
            [(pgid, pg.held, pg_reports.state_of(cluster, pg), pg.toofull,
              sorted((place, transfer.source, transfer.copied, transfer.rate)
                     for place, transfer in pg.transfers.items()))
             for pgid, pg in cluster.pgs.items()])


@pytest.mark.parametrize("seed", few(range(8), 2))
def test_skipped_plans_would_not_differ(
        make_session: MakeSession, state: Dict[str, Any], seed: int,
        monkeypatch: pytest.MonkeyPatch) -> None:
    plain = make_session(state, release=18)
    reference = make_session(state, release=18)
    monkeypatch.setattr(reference.simulation.backfill, "_all_targets_have_space", lambda: False)
    monkeypatch.setattr(reference.simulation.backfill, "_replan_unless_space",
                        reference.simulation.backfill.replan)
    rng = random.Random(seed)
    for _ in range(_EVENTS):
        line = rng.choice((next_line, lambda _, rng: pause(rng)))(plain, rng)
        assert plain.command(line) == reference.command(line)
        assert data_state(plain) == data_state(reference), line
        check_accounts(plain)


def test_unneeded_plans_are_skipped(make_session: MakeSession,
                                    monkeypatch: pytest.MonkeyPatch) -> None:
    sessions = [make_session(crush_state(), release=18) for _ in range(2)]
    monkeypatch.setattr(sessions[1].simulation.backfill, "_all_targets_have_space", lambda: False)
    decided: Dict[Backfill, int] = {session.simulation.backfill: 0 for session in sessions}
    real = Backfill._plan

    def counted(backfill: Backfill) -> None:
        decided[backfill] += 1
        real(backfill)
    monkeypatch.setattr(Backfill, "_plan", counted)
    for session in sessions:
        for line in ("sim osd out 3", "sim run idle"):
            assert session.command(line)[0] == 0
    spared, all_of_them = decided.values()
    assert 0 < spared < all_of_them

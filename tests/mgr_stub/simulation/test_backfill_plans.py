"""Backfills are planned only when the plan may change, with the same results.

The reference is a session that plans at every epoch.
"""

from __future__ import annotations

import random
from typing import Any, Callable, Dict, List, Tuple

import pytest

from mgr_stub.cluster import pg_reports
from mgr_stub.simulation.backfill import Backfill
from tests.mgr_stub.random_commands import any_line
from tests.support.clusters.crush_cluster import check_accounts, crush_state, run, used
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
    pgs = []
    for pgid, pg in cluster.pgs.items():
        pgs.append((pgid, pg.held, pg_reports.state_of(cluster, pg), pg.toofull))
        for place, transfer in sorted(pg.transfers.items()):
            pgs.append((place, transfer.source, transfer.copied, transfer.rate))
    return cluster.map, used(session), pgs


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
        line = any_line(plain, rng)
        assert plain.command(line) == reference.command(line)
        assert data_state(plain) == data_state(reference), line
        check_accounts(plain)


def test_unneeded_plans_are_skipped(make_session: MakeSession,
                                    monkeypatch: pytest.MonkeyPatch) -> None:
    plans: List[Backfill] = []
    real = Backfill._plan

    def counted(backfill: Backfill) -> None:
        plans.append(backfill)
        real(backfill)
    monkeypatch.setattr(Backfill, "_plan", counted)
    counts = [0]
    for is_spared in (True, False):
        session = make_session(crush_state(), release=18)
        if not is_spared:
            monkeypatch.setattr(
                session.simulation.backfill, "_all_targets_have_space", lambda: False)
        plans.clear()
        run(session, "sim osd out 3", "sim run idle")
        counts.append(len(plans))
    assert counts[0] < counts[1] < counts[2]

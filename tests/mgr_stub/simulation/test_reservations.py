"""Reservations of backfill: slots, priorities, and targets that refuse."""

from __future__ import annotations

from collections import Counter
from typing import Any, Callable, List

import pytest

from tests.support.clusters import stub_states as clusters
from tests.support.clusters.crush_cluster import RBD, crush_state, run, states

MakeSession = Callable[..., Any]
PG_BYTES = 256 * clusters.OBJECT
RUNS, WAITS = "active+remapped+backfilling", "active+remapped+backfill_wait"
REFUSED, CLEAN = "active+remapped+backfill_toofull", "active+clean"


def most_slots(session: Any) -> int:
    """The most slots of an OSD for reading, or for writing."""
    local: List[int] = []
    remote: List[int] = []
    for pg in session.simulation.backfill.moving():
        if pg.backfilling:
            local.append(session.cluster.map.acting(pg.pgid)[0])
            remote += pg.targets()
    return max([0, *Counter(local).values(), *Counter(remote).values()])


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_no_osd_has_more_than_its_slots(make_session: MakeSession, limit: int) -> None:
    session = make_session(crush_state(6, 2, [RBD]))
    seen: List[int] = []
    session.host.observers.append(lambda _: seen.append(most_slots(session)))
    run(session, f"config set osd osd_max_backfills {limit}", "sim osd out 3 8", "sim run idle")
    assert max(seen) == limit


def test_degraded_pgs_go_first_and_preempt(make_session: MakeSession) -> None:
    session = make_session(clusters.state(
        [clusters.pg("2.0", [0, 1, 2]), clusters.pg("2.1", [3, 1, 4])], osds=12))
    run(session, "sim flag set norebalance", "osd pg-upmap-items 2.0 2 7", "sim run 2s",
        "sim flag unset norebalance", "sim run 1s")
    assert states(session) == {RUNS: 1, CLEAN: 1}
    # osd.4's shard moves to the same target, and its PG lacks a copy
    run(session, "osd pg-upmap-items 2.1 4 7", "sim osd down 4")
    preempted, degraded = session.cluster.pgs["2.0"], session.cluster.pgs["2.1"]
    degraded.held = (3, 1)
    run(session, "sim run 2s")
    assert degraded.backfilling and not preempted.backfilling
    assert states(session) == {WAITS: 1, "active+undersized+degraded+remapped+backfilling": 1}
    assert preempted.transfers[0, 7].copied > 0   # it continues from there later

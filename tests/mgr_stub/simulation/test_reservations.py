"""Reservations of backfill: slots, priorities, and targets that refuse."""

from __future__ import annotations

from typing import Any, Callable, Dict, List

import pytest

from mgr_stub.cluster import pg_reports
from mgr_stub.simulation.backfill import RETRY_SECONDS
from tests.support.clusters import stub_states as clusters
from tests.support.clusters.crush_cluster import RBD, check_accounts, crush_state, run, states
from tests.support.units import GIB

MakeSession = Callable[..., Any]
PG_BYTES = 256 * clusters.OBJECT


def slots(session: Any) -> tuple[Dict[int, int], Dict[int, int]]:
    """(local, remote) slots in use by OSD."""
    local: Dict[int, int] = {}
    remote: Dict[int, int] = {}
    for pg in session.simulation.backfill.moving():
        if pg.backfilling:
            primary = session.cluster.map.acting(pg.pgid)[0]
            local[primary] = local.get(primary, 0) + 1
            for target in pg.targets():
                remote[target] = remote.get(target, 0) + 1
    return local, remote


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_no_osd_has_more_than_its_slots(make_session: MakeSession, limit: int) -> None:
    session = make_session(crush_state(6, 2, [RBD]))
    seen: List[int] = []

    def observe(_: Any) -> None:
        for table in slots(session):
            seen.extend(table.values())
    session.host.observers.append(observe)
    run(session, f"config set osd osd_max_backfills {limit}", "sim osd out 3 8", "sim run idle")
    assert max(seen) == limit


def test_degraded_pgs_go_first_and_preempt(make_session: MakeSession) -> None:
    session = make_session(clusters.state(
        [clusters.pg("2.0", [0, 1, 2]), clusters.pg("2.1", [3, 1, 4])], osds=12))
    run(session, "sim flag set norebalance", "osd pg-upmap-items 2.0 2 7", "sim run 2s",
        "sim flag unset norebalance", "sim run 1s")
    assert states(session) == {"active+remapped+backfilling": 1, "active+clean": 1}
    # osd.4's shard moves to the same target, and its PG lacks a copy
    run(session, "osd pg-upmap-items 2.1 4 7", "sim osd down 4")
    session.cluster.pgs["2.1"].held = (3, 1)
    run(session, "sim run 2s")
    assert pg_reports.state_of(session.cluster, session.cluster.pgs["2.1"]) == (
        "active+undersized+degraded+remapped+backfilling")
    assert pg_reports.state_of(session.cluster, session.cluster.pgs["2.0"]) == (
        "active+remapped+backfill_wait")
    arrived = session.cluster.pgs["2.0"].transfers[0, 7].copied
    assert arrived > 0                                # it continues from there later


def left(session: Any, degraded: bool) -> float:
    """Bytes still to be copied by degraded PGs or by the others."""
    return sum(pg.remaining_bytes() for pg in session.simulation.backfill.moving()
               if ("degraded" in pg_reports.state_of(session.cluster, pg)) == degraded)


def test_norebalance_does_not_stop_degraded_pgs(make_session: MakeSession) -> None:
    """PGs that a flag stops report `backfilling`, as real ones do."""
    session = make_session(crush_state(6, 2, [RBD]))
    run(session, "sim log-recovery on")
    run(session, "sim flag set norebalance", "sim osd out 3", "sim run 5s")
    waiting, to_copy = states(session)["active+remapped+backfill_wait"], left(session, False)
    run(session, "sim run 1h")
    assert states(session)["active+remapped+backfill_wait"] == waiting
    assert left(session, False) == to_copy > 0
    run(session, "sim osd lose 8", "sim run 5s")
    assert any("degraded" in state and "backfilling" in state for state in states(session))
    lacking, to_copy = left(session, True), left(session, False)
    run(session, "sim run 1s")
    assert left(session, True) < lacking and left(session, False) == to_copy > 0
    run(session, "sim flag set nobackfill", "sim run 1s")
    lacking = left(session, True)
    run(session, "sim run 1h")
    assert (left(session, True), left(session, False)) == (lacking, to_copy)
    run(session, "sim flag unset nobackfill", "sim flag set norecover", "sim run 1h")
    assert (left(session, True), left(session, False)) == (lacking, to_copy)
    run(session, "sim flag unset norecover", "sim flag unset norebalance", "sim run idle")
    assert states(session) == {"active+clean": 32}
    check_accounts(session)


def test_bytes_in_flight_count_against_the_target(make_session: MakeSession) -> None:
    state = clusters.state([clusters.pg("2.0", [0, 1, 2]), clusters.pg("2.1", [3, 1, 2])], osds=8)
    # free space for one and a half
    state["pg_dump"]["pg_map"]["osd_stats"][7]["statfs"]["available"] = (
        10 * GIB + PG_BYTES * 3 // 2)
    session = make_session(state)
    run(session, "config set osd osd_max_backfills 2", "sim backfill rate 1M",
        "osd pg-upmap-items 2.0 2 7", "osd pg-upmap-items 2.1 2 7", "sim run 5s")
    assert states(session) == {"active+remapped+backfilling": 1,
                               "active+remapped+backfill_toofull": 1}
    run(session, "sim backfill rate 100M", "sim run idle")
    assert states(session) == {"active+clean": 1, "active+remapped+backfill_toofull": 1}


def test_full_target_is_asked_again_after_the_retry_interval(make_session: MakeSession) -> None:
    state = clusters.state([clusters.pg("2.0", [0, 1, 2])])
    state["pg_dump"]["pg_map"]["osd_stats"][4]["statfs"]["available"] = 10 * GIB
    session = make_session(state)
    run(session, "osd pg-upmap-items 2.0 2 4", "sim run 5s")
    assert states(session) == {"active+remapped+backfill_toofull": 1}
    run(session, "sim osd full-ratios 0.85 0.95 0.97")
    assert states(session) == {"active+remapped+backfill_toofull": 1}
    run(session, f"sim run {RETRY_SECONDS}s")
    assert states(session) == {"active+remapped+backfilling": 1}

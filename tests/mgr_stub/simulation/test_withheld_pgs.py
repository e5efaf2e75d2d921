"""An OSD with too many PGs withholds others, as seen on 16.2.15 and 20.2.4."""
from __future__ import annotations

from typing import Any, Callable, Tuple

import pytest

from mgr_stub.cluster import pg_reports
from mgr_stub.console.session import Session
from tests.support.clusters import stub_states as clusters
from tests.support.clusters.crush_cluster import run


@pytest.fixture
def session(make_session: Callable[..., Any]) -> Any:
    """osd.4 takes one PG more, and that is 2.0."""
    made = make_session(clusters.state(
        [clusters.pg("2.0", [0, 1, 2]), clusters.pg("2.1", [1, 0, 3])]))
    run(made, "config set osd mon_max_pg_per_osd 1",
        "config set osd osd_max_pg_per_osd_hard_ratio 1", "sim run 1s",
        "osd pg-upmap-items 2.0 2 4", "sim run 1h")
    return made


def seen(session: Session) -> Tuple[str, int]:
    """The state of 2.1, and how many PGs osd.4 has."""
    cluster = session.cluster
    state = pg_reports.state_of(cluster, cluster.pgs["2.1"])
    return state, int(cluster.usage[4].dump()["num_pgs"])


def test_a_withheld_pg_stays_inactive_until_its_item_is_gone(session: Session) -> None:
    run(session, "osd pg-upmap-items 2.1 3 4", "sim run 1h")
    assert seen(session) == ("activating+remapped", 1)
    run(session, "osd rm-pg-upmap-items 2.0", "sim run 1h")
    assert seen(session) == ("activating+remapped", 0)   # room again does not help
    run(session, "osd rm-pg-upmap-items 2.1", "sim run 1m")
    assert seen(session) == ("active+clean", 0)


def test_what_its_new_primary_withholds_is_not_reported_and_waits_for_room(
        session: Session) -> None:
    pg, get = session.cluster.pgs["2.1"], session.mgr.get
    epoch = pg.reported_epoch
    run(session, "osd pg-upmap-items 2.1 1 4", "sim run 1h")
    assert session.cluster.map.acting("2.1") == (4, 0, 3)
    assert pg.reported_epoch == epoch and seen(session) == ("active+clean", 1)
    known = get("pg_status")
    assert "unknown_pgs_ratio" not in known
    run(session, "sim failover", "sim run 1h")   # the next mgr knows it from the osdmap alone
    get = session.mgr.get
    record = get("pg_stats")["pg_stats"][1]
    assert (record["state"], record["up"], record["acting_primary"]) == ("unknown", [], -1)
    assert get("pg_progress")["pgs"]["2.1"] == {
        "state": "unknown", "num_bytes": 0, "num_bytes_recovered": 0, "reported_epoch": 0}
    status = get("pg_status")
    assert status["unknown_pgs_ratio"] == 0.5
    assert status["num_objects"] * 2 == known["num_objects"]
    assert len(get("osd_stats")["osd_stats"]) == 6
    run(session, "osd rm-pg-upmap-items 2.0", "sim run 1h")
    assert get("pg_stats")["pg_stats"][1]["state"] == "active+clean"
    assert pg.reported_epoch > epoch and pg.held == (4, 0, 3)
    assert seen(session) == ("active+clean", 1)

"""An OSD with too many PGs withholds others, as seen on 16.2.15 and 20.2.4."""
from __future__ import annotations

from typing import Any, Callable

from mgr_stub.cluster import pg_reports
from mgr_stub.console.session import Session
from tests.support.clusters import stub_states as clusters


def num_pgs(session: Session, osd: int) -> int:
    return int(session.cluster.usage[osd].dump()["num_pgs"])


def state(session: Session, pgid: str) -> str:
    return pg_reports.state_of(session.cluster, session.cluster.pgs[pgid])


def test_a_withheld_pg_stays_inactive_until_its_item_is_gone(
        make_session: Callable[..., Any]) -> None:
    session = make_session(clusters.state(
        [clusters.pg("2.0", [0, 1, 2]), clusters.pg("2.1", [1, 0, 3])]))
    here = num_pgs(session, 4)
    for line in (f"config set osd mon_max_pg_per_osd {here + 1}",
                 "config set osd osd_max_pg_per_osd_hard_ratio 1", "sim run 1s",
                 "osd pg-upmap-items 2.0 2 4", "sim run 1h", "osd pg-upmap-items 2.1 3 4",
                 "sim run 1h"):
        assert session.command(line)[0] == 0
    assert state(session, "2.0") == "active+clean" and num_pgs(session, 4) == here + 1
    assert state(session, "2.1") == "activating+remapped"
    # room again does not help
    session.command("osd rm-pg-upmap-items 2.0")
    session.command("sim run 1h")
    assert num_pgs(session, 4) == here and state(session, "2.1") == "activating+remapped"
    session.command("osd rm-pg-upmap-items 2.1")
    session.command("sim run 1m")
    assert state(session, "2.1") == "active+clean" and num_pgs(session, 4) == here


def test_what_its_new_primary_withholds_is_not_reported_and_waits_for_room(
        make_session: Callable[..., Any]) -> None:
    session = make_session(clusters.state(
        [clusters.pg("2.0", [0, 1, 2]), clusters.pg("2.1", [1, 0, 3])]))
    here, epoch = num_pgs(session, 4), session.cluster.pgs["2.1"].reported_epoch
    for line in (f"config set osd mon_max_pg_per_osd {here + 1}",
                 "config set osd osd_max_pg_per_osd_hard_ratio 1", "sim run 1s",
                 "osd pg-upmap-items 2.0 2 4", "sim run 1h", "osd pg-upmap-items 2.1 1 4",
                 "sim run 1h"):
        assert session.command(line)[0] == 0
    assert session.cluster.map.acting("2.1") == (4, 0, 3)
    assert session.cluster.pgs["2.1"].reported_epoch == epoch
    assert state(session, "2.1") == "active+clean" and num_pgs(session, 4) == here + 1
    known = session.mgr.get("pg_status")
    assert "unknown_pgs_ratio" not in known
    session.command("sim failover")   # the next mgr knows it from the osdmap alone
    session.command("sim run 1h")
    record = session.mgr.get("pg_stats")["pg_stats"][1]
    assert (record["state"], record["up"], record["acting_primary"]) == ("unknown", [], -1)
    assert session.mgr.get("pg_progress")["pgs"]["2.1"] == {
        "state": "unknown", "num_bytes": 0, "num_bytes_recovered": 0, "reported_epoch": 0}
    assert session.mgr.get("pg_status")["unknown_pgs_ratio"] == 0.5
    assert session.mgr.get("pg_status")["num_objects"] * 2 == known["num_objects"]
    assert len(session.mgr.get("osd_stats")["osd_stats"]) == 6
    session.command("osd rm-pg-upmap-items 2.0")
    session.command("sim run 1h")
    assert session.mgr.get("pg_stats")["pg_stats"][1]["state"] == "active+clean"
    assert session.cluster.pgs["2.1"].reported_epoch > epoch
    assert session.cluster.pgs["2.1"].held == (4, 0, 3) and num_pgs(session, 4) == here + 1

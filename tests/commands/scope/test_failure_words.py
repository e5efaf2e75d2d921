"""`eval --fail` of what the cluster cannot recover from."""

from __future__ import annotations

import pytest

from mgr_stub.console.session import Session

from tests.commands.asking import ask, run


def test_what_cannot_recover_is_not_called_recovered(session: Session) -> None:
    """Ceph stops filling OSDs at backfillfull: more is what would be needed."""
    session.command("equilibrium eval --fail host0,host1,host2")
    run(session, "sim run 1s")
    data = ask(session, "eval --fail host0,host1,host2")
    text = " ".join(run(session, "equilibrium eval --fail host0,host1,host2").split())
    assert data["backfill_toofull_pgs"] > 0 and data["max_utilization"] > 0.9
    assert "as if all could recover" in text and "once recovered" not in text
    assert "would be needed: not all of it can recover" in text
    assert "would wait for a target that has no room below backfillfull (90.00%)" in text


def test_what_is_down_or_degraded_already_is_told(session: Session) -> None:
    """The figures have neither back: an operator is told what else may come."""
    run(session, "sim osd down 3", "sim run 30s", "equilibrium eval", "sim run 1s")
    data = ask(session, "eval --fail osd.6")
    text = " ".join(run(session, "equilibrium eval --fail osd.6").split())
    assert data["down_osds"] == [3] and data["degraded_pgs"] > 0
    assert "osd.3 is down and in: its PGs count as they are now, short of a shard" in text
    assert "'--fail osd.6,osd.3' has it out as well" in text
    assert f"degraded: {data['degraded_pgs']} PGs now: if it failed before they are whole" in text
    both = " ".join(run(session, "equilibrium eval --fail osd.6,osd.3").split())
    assert "is down" not in both and "more could be lost" in both
    assert "osd.3 is down" in run(session, "equilibrium eval --worst-failure")


def test_bytes_are_those_that_devices_have(session: Session) -> None:
    """On half of the OSDs shards take 1.6 of what they take elsewhere."""
    odd = [0, 5, 9, 14, 17]
    run(session, f"sim osd allocation 1.6 {' '.join(map(str, odd))}", "sim run 15m",
        "equilibrium eval", "sim run 1s")
    now = {row["id"]: row for row in ask(session, "osds")["osds"]}
    for row in ask(session, "eval --fail osd.6")["osds"]:
        size = now[row["osd"]]["size_bytes"]
        assert row["used_bytes"] / size == pytest.approx(row["utilization"], abs=1e-6)


def test_stored_is_what_ceph_df_says(session: Session) -> None:
    run(session, "sim write-omap cephfs_metadata 5G")
    df = {row["name"]: row["stored"] for row in ask(session, "df")["pools"]}
    for row in ask(session, "eval --fail osd.6")["pools"]:
        assert row["stored"] == df[row["name"]], row["name"]


def test_one_pg_is_one(session: Session) -> None:
    run(session, "sim osd down 3 4 5 14 19", "sim run 30s", "equilibrium eval", "sim run 1s")
    text = " ".join(run(session, "equilibrium eval --fail host1").split())
    assert "1 PG left with too few shards to recover the data: fast" in text
    assert "PGs more left without an OSD for some shards" in text


@pytest.mark.parametrize("what", ["host0,host1", "osd.6,osd.14"])
def test_pgs_without_service_are_those_that_are_inactive(session: Session, what: str) -> None:
    data = ask(session, f"eval --fail {what}")
    text = " ".join(run(session, f"equilibrium eval --fail {what}").split())
    assert ("without service" in text) == bool(data["inactive_pgs"])
    run(session, "sim flag set noout",
        "sim osd down " + " ".join(map(str, data["failure"]["osds"])), "sim run 1m")
    states = session.module.gateway.snapshot().pool_states
    assert data["inactive_pgs"] + data["lost_pgs"] == sum(
        states[pool["id"]].inactive for pool in data["pools"])
    assert sum(pool["inactive_pgs"] for pool in data["pools"]) == data["inactive_pgs"]

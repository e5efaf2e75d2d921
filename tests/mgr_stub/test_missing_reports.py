"""Statistics right after a failover, when not every OSD has reported to the new mgr."""

from __future__ import annotations

import json
from typing import Any, Callable

import stub_states as clusters


def test_some_osds_have_not_reported(make_session: Callable[..., Any]) -> None:
    session = make_session(clusters.state([clusters.pg("2.0", [0, 1, 2]),
                                           clusters.pg("2.1", [1, 0, 3])]))
    session.command("sim stats gap 10s 1")
    get = session.mgr.get
    progress = get("pg_progress")
    assert progress["pg_ready"] is True            # it says so all the same
    assert progress["pgs"]["2.1"]["state"] == "unknown"
    assert progress["pgs"]["2.1"]["num_bytes"] == 0 < progress["pgs"]["2.0"]["num_bytes"]
    assert get("pg_stats")["pg_stats"][1]["stat_sum"]["num_objects"] == 0
    assert 1 not in {record["osd"] for record in get("osd_stats")["osd_stats"]}
    assert get("pool_stats")["pool_stats"][0]["stat_sum"]["num_objects"] == 256
    assert get("pg_status")["unknown_pgs_ratio"] == 0.5
    session.command("sim run 10s")
    assert get("pg_progress")["pgs"]["2.1"]["state"] == "active+clean"
    assert len(get("osd_stats")["osd_stats"]) == 6
    assert "unknown_pgs_ratio" not in get("pg_status")


def test_health_is_json_within(make_session: Callable[..., Any]) -> None:
    session = make_session(clusters.state([clusters.pg("2.0", [0, 1, 2])]))
    assert json.loads(session.mgr.get("health")["json"]) == {
        "status": "HEALTH_OK", "checks": {}, "mutes": []}

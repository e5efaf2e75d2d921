"""Primary affinity, and pools with nonprimary shards (EC optimizations, Ceph 20)."""

from __future__ import annotations

from typing import Any, Callable, Dict

from tests.support.clusters import stub_states as clusters

EC42 = (2, "ec", 3, 6, 2, "k4m2")


def optimized(make_session: Callable[..., Any], up: Any) -> Any:
    state = clusters.state([clusters.pg("2.0", up)], osds=10, pools=[EC42])
    state["osd_dump"]["pools"][0]["nonprimary_shards"] = "{1,2,3}"
    state["osd_dump"]["erasure_code_profiles"] = {"k4m2": {"k": "4", "m": "2"}}
    return make_session(state, release=20)


def ask(session: Any) -> Dict[str, Any]:
    return dict(session.mgr.get_osdmap().pg_to_up_acting_osds(2, 0))


def test_permanent_pg_temp_is_stored_primary_first(make_session: Callable[..., Any]) -> None:
    """As seen on 20.2.4 with these OSDs; the PG is clean, nothing is misplaced."""
    up = [1, 5, 3, 0, 8, 6]
    session = optimized(make_session, up)
    assert session.mgr.get("osd_map")["pg_temp"] == []
    session.command("sim osd primary-affinity 1 0")
    session.command("sim run 1h")
    osdmap = session.mgr.get_osdmap()
    assert osdmap.dump()["pg_temp"] == [{"pgid": "2.0", "osds": [1, 8, 6, 5, 3, 0]}]
    assert ask(session) == {"up": up, "acting": up, "up_primary": 5, "acting_primary": 1}
    record = session.mgr.get("pg_stats")["pg_stats"][0]
    assert (record["acting"], record["state"]) == (up, "active+clean")
    assert "misplaced_ratio" not in session.mgr.get("pg_status")
    session.command("sim osd primary-affinity 1 1")
    session.command("sim run 1m")
    assert session.mgr.get("osd_map")["pg_temp"] == []

"""Pools whose OSDs differ, and pools that are merged; others are in stories."""

from __future__ import annotations

from typing import Any, Callable, Dict

from tests.support.clusters.crush_cluster import (
    EC, RBD, check_accounts, crush_state, raw_of, recompute_raw, run, states)
from tests.support.units import GIB

MakeSession = Callable[..., Any]


def pool(session: Any, name: str) -> Dict[str, Any]:
    pools = session.cluster.map.dump(18)["pools"]
    return next(pool for pool in pools if pool["pool_name"] == name)


def test_pool_statfs_follows(make_session: MakeSession) -> None:
    state = crush_state(4, 1, [RBD, EC])
    pg_map = state["pg_dump"]["pg_map"]
    rows = pg_map["pool_statfs"] = []
    for record in pg_map["osd_stats"]:
        count = record["statfs"]["allocated"]
        rows.append({"poolid": 1, "osd": record["osd"], "allocated": count, "data_stored": count})
    before = sum(row["allocated"] for row in rows)
    session = make_session(state)
    run(session, "sim write rbd 10G")
    after = sum(row["allocated"] for row in session.mgr.get("osd_stats")["pool_statfs"])
    assert after - before == 30 * GIB


def pinned(session: Any, *pgids: str) -> None:
    """Gives each of the PGs an upmap item of its first OSD."""
    for pgid in pgids:
        up = session.cluster.map.up[pgid]
        hosts = {osd // 2 for osd in up}   # two OSDs a host
        target = next(osd for osd in range(12) if osd // 2 not in hosts)
        run(session, f"osd pg-upmap-items {pgid} {up[0]} {target}")
    run(session, "sim run 4h")
    assert set(session.cluster.map.upmap_items) == set(pgids)


def test_a_merge_takes_items_of_its_pairs_alone(session: Any) -> None:
    """Each pair in its turn gets ready, for which it serves no clients for some seconds."""
    pinned(session, "1.0", "1.8", "1.f", "1.18", "1.1f")
    run(session, "sim pool pg_num rbd 24")
    seen: Dict[str, int] = {}
    while pool(session, "rbd")["pg_num"] > 24:
        run(session, "sim run 4s")
        seen.update(states(session))
    now = pool(session, "rbd")
    assert {now["pg_num"], now["pg_placement_num"], now["pg_num_pending"]} == {24}
    assert set(session.cluster.map.upmap_items) == {"1.0"}
    assert seen["clean+premerge+peered"] == 2
    assert raw_of(session.cluster) == recompute_raw(session.cluster)
    check_accounts(session)

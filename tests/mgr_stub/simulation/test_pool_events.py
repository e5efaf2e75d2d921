"""Creating, filling, emptying, splitting, merging and deleting pools."""

from __future__ import annotations

from typing import Any, Callable, Dict

import pytest

from tests.support.clusters.crush_cluster import (
    EC, RBD, check_accounts, crush_state, raw_of, recompute_raw, run, states)
from tests.support.units import GIB

MakeSession = Callable[..., Any]


def pool(session: Any, name: str) -> Dict[str, Any]:
    pools = session.cluster.map.dump(18)["pools"]
    return next(pool for pool in pools if pool["pool_name"] == name)


def stored(session: Any, name: str) -> int:
    number = pool(session, name)["pool"]
    records = session.mgr.get("pool_stats")["pool_stats"]
    return next(int(one["stat_sum"]["num_bytes"]) for one in records if one["poolid"] == number)


def test_growth(session: Any) -> None:
    for lines, change in ((("sim grow rbd 60G/1h", "sim run 1h"), 60 * GIB),
                          (("sim grow rbd 0", "sim run 1h"), 0),
                          (("sim grow rbd -1G/min", "sim run 10m"), -10 * GIB)):
        start = stored(session, "rbd")
        run(session, *lines)
        assert stored(session, "rbd") - start == pytest.approx(change, abs=1000)
        check_accounts(session)


def test_a_full_osd_takes_no_writes(session: Any) -> None:
    shown, = run(session, "sim write rbd 9T")
    assert shown.startswith("only ") and shown.endswith(" of 9895604649984 bytes found room")
    assert max(session.cluster.utilizations()["hdd"].values()) > 0.95
    assert run(session, "sim write rbd 10G") != [""]


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

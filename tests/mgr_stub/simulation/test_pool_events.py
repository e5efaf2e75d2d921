"""Creating, filling, emptying, splitting, merging and deleting pools."""

from __future__ import annotations

from typing import Any, Callable, Dict, List

import pytest

from mgr_stub.cluster import pg_reports
from mgr_stub.osdmap.osd_map import parent_of, share_of
from tests.support.clusters.crush_cluster import (
    EC, RBD, check_accounts, crush_state, raw_of, recompute_raw, run, states, used)
from tests.support.units import GIB

MakeSession = Callable[..., Any]


def pool(session: Any, name: str) -> Dict[str, Any]:
    pools = session.cluster.map.dump(18)["pools"]
    return next(pool for pool in pools if pool["pool_name"] == name)


def stored(session: Any, name: str) -> int:
    number = pool(session, name)["pool"]
    records = {r["poolid"]: r for r in session.mgr.get("pool_stats")["pool_stats"]}
    return int(records[number]["stat_sum"]["num_bytes"])


def test_create_write_delete_remove(session: Any) -> None:
    before = used(session)
    shown, = run(session, "sim pool create new pg_num=8 size=3")
    assert shown == "created pool 'new' with the id 3"
    assert session.mgr.get("pg_progress")["pgs"]["3.0"]["state"] == "unknown"
    assert session.mgr.get("pg_status")["unknown_pgs_ratio"] == 8 / 56
    run(session, "sim run 0.5s")
    assert session.mgr.get("pg_progress")["pgs"]["3.0"]["state"] == "creating+peering"
    run(session, "sim run 2s")
    assert states(session) == {"active+clean": 56}
    assert raw_of(session.cluster) == recompute_raw(session.cluster)
    run(session, "sim write new 8G")
    assert stored(session, "new") == 8 * GIB
    record = session.mgr.get("pg_stats")["pg_stats"][-1]["stat_sum"]
    assert (record["num_bytes"], record["num_objects"], record["num_object_copies"]) == (
        GIB, 256, 768)
    assert sum(used(session).values()) == sum(before.values()) + 3 * 8 * GIB
    run(session, "sim delete new 6G")
    assert stored(session, "new") == 2 * GIB
    run(session, "sim delete new 60G")
    assert stored(session, "new") == 0 and used(session) == before
    check_accounts(session)
    run(session, "sim write new 1G", "sim pool rm new")
    assert used(session) == before and len(session.cluster.pgs) == 48


def test_an_erasure_coded_pool(session: Any) -> None:
    before = sum(used(session).values())
    run(session, "sim pool create new pg_num=4 size=5 k=3 rule=indep", "sim run 2s",
        "sim write new 12G")
    entry = pool(session, "new")
    assert (entry["type"], entry["size"], entry["min_size"]) == (3, 5, 4)
    dump = session.mgr.get("osd_map")
    assert dump["erasure_code_profiles"][entry["erasure_code_profile"]]["k"] == "3"
    assert sum(used(session).values()) - before == 12 * GIB * 5 // 3


def test_growth(session: Any) -> None:
    start = stored(session, "rbd")
    run(session, "sim grow rbd 60G/1h", "sim run 1h")
    assert stored(session, "rbd") - start == pytest.approx(60 * GIB, rel=0.02)
    check_accounts(session)
    run(session, "sim grow rbd 0")
    still = stored(session, "rbd")
    run(session, "sim run 1h", "sim grow rbd -1G/min", "sim run 10m", "sim grow rbd 0")
    assert stored(session, "rbd") == pytest.approx(still - 10 * GIB, abs=1000)
    check_accounts(session)


def test_a_full_osd_takes_no_writes(session: Any) -> None:
    shown, = run(session, "sim write rbd 9T")
    assert shown.startswith("only ") and shown.endswith(" of 9895604649984 bytes found room")
    assert max(session.cluster.utilizations()["hdd"].values()) > 0.95
    assert run(session, "sim write rbd 10G") != [""]


def split(session: Any, name: str, count: int) -> List[Dict[str, Any]]:
    """Sets pg_num; the pool's entry before, after and at every later observation."""
    seen = [pool(session, name)]
    session.host.observers.append(lambda _: seen.append(pool(session, name)))
    run(session, f"sim pool pg_num {name} {count}")
    seen.append(pool(session, name))
    return seen


@pytest.mark.parametrize("name, before, after", [("rbd", 32, 64), ("rbd", 32, 48),
                                                 ("ec", 16, 64), ("ec", 16, 17)])
def test_split(session: Any, name: str, before: int, after: int) -> None:
    start, total = stored(session, name), sum(used(session).values())
    number = pool(session, name)["pool"]
    held = {pgid: pg.held for pgid, pg in session.cluster.pgs.items()}
    split(session, name, after)
    entry = pool(session, name)
    assert (entry["pg_num"], entry["pg_num_target"], entry["pg_placement_num"],
            entry["pg_placement_num_target"]) == (before, after, before, after)
    run(session, "sim run 7s")
    entry = pool(session, name)
    assert entry["pg_num"] == entry["pg_num_pending"] == after
    assert entry["pg_placement_num"] < after or after == before + 1
    children = [pg for pg in session.cluster.pgs.values()
                if pg.pool_id == number and pg.order[1] >= before]
    assert len(children) == after - before
    for child in children:
        position = child.order[1]
        while position >= before:
            position = parent_of(position)
        assert child.held == held[f"{number}.{position:x}"]   # as the parent
    check_accounts(session)
    assert stored(session, name) == start
    shares = {pg.num_bytes / share_of(pg.order[1], after) for pg in session.cluster.pgs.values()
              if pg.pool_id == number}
    assert max(shares) - min(shares) <= 64                    # equal parts
    run(session, "sim run idle")
    assert pool(session, name)["pg_placement_num"] == after
    assert raw_of(session.cluster) == recompute_raw(session.cluster)
    assert set(states(session)) == {"active+clean"}
    assert stored(session, name) == start
    assert abs(sum(used(session).values()) - total) < 1000
    check_accounts(session)


def test_children_of_an_upmapped_parent_have_no_items(session: Any) -> None:
    raw = session.cluster.pgs["1.0"].raw
    target = next(osd for osd in range(12) if osd // 2 not in {member // 2 for member in raw})
    run(session, f"osd pg-upmap-items 1.0 {raw[0]} {target}", "sim run idle",
        "config set mgr target_max_misplaced_ratio 0", "sim flag set norebalance",
        "sim pool pg_num rbd 64", "sim run 6s")
    child = session.cluster.pgs["1.20"]
    assert session.cluster.map.up["1.20"] == child.raw == raw
    assert target in child.held and "remapped" in pg_reports.state_of(session.cluster, child)
    assert target in session.cluster.map.up["1.0"]


def test_merge(session: Any) -> None:
    start, total = stored(session, "rbd"), sum(used(session).values())
    raw = session.cluster.pgs["1.1f"].raw
    target = next(osd for osd in range(12) if osd // 2 not in {member // 2 for member in raw})
    run(session, f"osd pg-upmap-items 1.1f {raw[0]} {target}", "sim run idle")
    seen = split(session, "rbd", 20)
    run(session, "sim run idle")
    entry = pool(session, "rbd")
    assert (entry["pg_num"], entry["pg_placement_num"], entry["pg_num_pending"]) == (20, 20, 20)
    assert any(e["pg_placement_num"] < e["pg_num"] for e in seen)
    assert sum(pg.pool_id == 1 for pg in session.cluster.pgs.values()) == 20
    assert set(session.cluster.map.up) == set(session.cluster.pgs)
    assert session.cluster.map.upmap_items == {}              # the mgr has removed it
    assert stored(session, "rbd") == start and sum(used(session).values()) == total
    assert raw_of(session.cluster) == recompute_raw(session.cluster)
    check_accounts(session)
    sizes = [pg.num_objects for pg in session.cluster.pgs.values() if pg.pool_id == 1]
    assert max(sizes) == pytest.approx(2 * min(sizes), rel=0.01)


def test_pgp_num_steps_wait_for_a_mgr_and_for_health(session: Any) -> None:
    run(session, "sim osd down 3", "sim run 5s", "sim pool pg_num rbd 64", "sim run 2m")
    entry = pool(session, "rbd")
    assert (entry["pg_num"], entry["pg_placement_num"]) == (64, 32)   # no step while degraded
    run(session, "sim osd up 3", "sim run 1m")
    assert pool(session, "rbd")["pg_placement_num"] > 32
    run(session, "sim mgr fail takeover=1h", "sim run 1m")
    stands = pool(session, "rbd")["pg_placement_num"]
    run(session, "sim run 30m")
    assert pool(session, "rbd")["pg_placement_num"] == stands


@pytest.mark.parametrize("line, code", [
    ("sim pool", 22), ("sim pool create", 22), ("sim pool create x", 22),
    ("sim pool create x pg_num=4", 22), ("sim pool create x pg_num=0 size=3", 22),
    ("sim pool create x pg_num=four size=3", 22), ("sim pool create x pg_num=4 size=3 k=3", 22),
    ("sim pool create rbd pg_num=4 size=3", 17), ("sim pool create x pg_num=4 size=3 m=1", 22),
    ("sim pool create x pg_num=4 size=3 rule=none", 2), ("sim pool rm", 22),
    ("sim pool rm none", 2), ("sim pool pg_num none 4", 2), ("sim pool pg_num rbd 0", 22),
    ("sim pool pg_num rbd 99999999", 22), ("sim write none 1G", 2), ("sim write rbd much", 22),
    ("sim write rbd", 22), ("sim delete none 1G", 2), ("sim grow none 1G/1h", 2),
    ("sim grow rbd 1G", 22), ("sim grow rbd 1G/", 22), ("sim grow rbd 1G/0s", 22),
    ("sim grow rbd x/1h", 22)])
def test_bad_input(session: Any, line: str, code: int) -> None:
    before = session.cluster.map
    rc, out, err = session.command(line)
    assert (rc, out) == (-code, "") and err and "\n" not in err
    assert session.cluster.map is before


def test_pool_statfs_follows(make_session: MakeSession) -> None:
    state = crush_state(4, 1, [RBD, EC])
    before = {r["osd"]: r for r in state["pg_dump"]["pg_map"]["osd_stats"]}
    state["pg_dump"]["pg_map"]["pool_statfs"] = [
        {"poolid": 1, "osd": osd, "allocated": record["statfs"]["allocated"],
         "data_stored": record["statfs"]["allocated"]} for osd, record in before.items()]
    session = make_session(state)
    run(session, "sim write rbd 10G")
    grown = sum(r["allocated"] for r in session.mgr.get("osd_stats")["pool_statfs"])
    assert grown - sum(r["statfs"]["allocated"] for r in before.values()) == 30 * GIB

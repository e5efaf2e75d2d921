"""What passes within seconds is looked at again within seconds, and is no trouble at once."""
from __future__ import annotations

import pytest
from builders import GIB, OSD_RULE, Cluster, hosts
from fakes import Desk
from rounds import kept, small_plan, uneven


def inactive(cluster: Cluster, count: int) -> None:
    cluster.pg_status = {"pgs_by_pool_state": [{"pool_id": 1, "pg_state_counts": [
        {"state_name": "peering", "count": count}] if count else []}]}


def executing() -> Desk:
    desk = Desk(uneven())
    desk.balancer.execute("p", kept(desk, plan=small_plan(6)))
    inactive(desk.gateway.cluster, 1)
    return desk


def test_moment_of_peering_is_looked_at_again_after_seconds() -> None:
    desk = executing()
    desk.balancer.look_again()
    assert desk.balancer.round() <= 10.0
    assert desk.balancer.state == "waiting" and "peering" not in desk.balancer.state
    assert desk.balancer.reason == "pool 'pool1' has 1 PGs inactive since a moment ago"
    inactive(desk.gateway.cluster, 0)
    assert desk.round(10) == "moving" and desk.gateway.sent


def test_what_does_not_pass_blocks() -> None:
    desk = executing()
    states, looks = [], []
    for _ in range(6):
        desk.balancer.look_again()
        looks.append(desk.balancer.round())
        states.append(desk.balancer.state)
        desk.now += looks[-1]
    assert states == ["waiting"] * 3 + ["blocked"] * 3
    assert looks[3:] == [60.0] * 3
    assert desk.balancer.reason == "pool 'pool1' has 1 PGs inactive" and not desk.gateway.sent


def test_next_moment_of_peering_is_a_new_one() -> None:
    desk = executing()
    for count, state in ((1, "waiting"), (0, "moving"), (1, "waiting")):
        inactive(desk.gateway.cluster, count)
        desk.options["max_moves_per_round"] = 1
        assert desk.round(20) == state


@pytest.mark.parametrize("changing", [1, 2])
def test_pools_on_the_osds_of_a_pool_whose_pg_num_changes_are_not_planned(changing: int) -> None:
    """Pools 1 and 2 share OSDs, pool 3 has OSDs of its own and goes on."""
    desk = Desk(two_roots(), active=True)
    split(desk.gateway.cluster, changing, True)
    for _ in range(4):
        desk.round(60)
        desk.jobs.run()
    assert desk.gateway.sent and all(pgid.startswith("3.") for pgid in desk.gateway.sent)
    desk.gateway.arrive()
    for _ in range(4):
        desk.round(60)
        desk.jobs.run()
    assert desk.balancer.state == "waiting"
    assert desk.balancer.reason.startswith("pg_num of pool 'pool%d' is changing" % changing)
    split(desk.gateway.cluster, changing, False)
    for _ in range(6):
        desk.round(60)
        desk.jobs.run()
    assert any(pgid.startswith("1.") for pgid in desk.gateway.sent)


def test_plan_of_other_pools_goes_on_when_the_change_is_through() -> None:
    desk = Desk(two_roots(), active=True, max_moves_per_round=1)
    split(desk.gateway.cluster, 2, True)
    desk.round(60)
    plans = desk.jobs.run()
    desk.round(60)
    walk = desk.balancer.walk
    assert walk is not None and plans == 1
    split(desk.gateway.cluster, 2, False)
    for _ in range(3):
        desk.round(60)
        assert desk.balancer.walk is walk


def test_named_plan_minds_its_own_pools_only() -> None:
    desk = Desk(two_roots())
    split(desk.gateway.cluster, 2, True)
    desk.balancer.execute("p", kept(desk, plan=small_plan(2)))
    assert desk.round(60) == "moving" and desk.gateway.sent == ["1.0", "1.1"]


def two_roots() -> Cluster:
    rules = {0: OSD_RULE, 1: "take default~ssd; choose firstn 0 osd; emit"}
    cluster = Cluster(hosts(6), {0: "take default~hdd; choose firstn 0 osd; emit", 1: rules[1]},
                      classes={3: "ssd", 4: "ssd", 5: "ssd"})
    cluster.pool(1, size=1).pool(2, size=1).pool(3, size=1, rule=1)
    for ps in range(9):
        cluster.pg("1.%x" % ps, [0], num_bytes=5 * GIB, objects=10)
        cluster.pg("3.%x" % ps, [3], num_bytes=5 * GIB, objects=10)
    for ps in range(3):
        cluster.pg("2.%x" % ps, [ps], num_bytes=GIB, objects=10)
    return cluster


def split(cluster: Cluster, pool: int, begins: bool) -> None:
    cluster.osd_map()   # fills in what pools have by default
    cluster.pools[pool]["pg_num_target"] = cluster.pools[pool]["pg_num"] * (2 if begins else 1)

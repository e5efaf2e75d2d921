"""At the optimum nothing is sent, and nothing that is of no account makes it churn."""
from __future__ import annotations

import random
from typing import Any, List

import pytest
from builders import GIB, Cluster
from fakes import Desk
from rounds import at_rest, kept, small_plan, uneven

from equilibrium_mgr import planning


def count_plans(desk: Desk, rounds: int, change: Any, seconds: float = 60.0) -> int:
    """Rounds with a change before each; the plans that were made. Nothing may be sent."""
    sent, plans = len(desk.gateway.sent), 0
    for number in range(rounds):
        change(number)
        desk.gateway.cluster.epoch += 1
        desk.round(seconds)
        plans += desk.jobs.run()
    assert len(desk.gateway.sent) == sent
    return plans


def test_noise_in_the_statistics() -> None:
    desk = at_rest(uneven())
    cluster, rng = desk.gateway.cluster, random.Random(1)
    used = {osd: cluster.used_bytes(osd) for osd in cluster.osds}

    def noise(_: int) -> None:
        for osd, whole in used.items():
            cluster.osd(osd, used=int(whole * rng.uniform(0.99, 1.01)))
        for pgid, record in cluster.records.items():
            cluster.records[pgid] = record._replace(
                num_bytes=int(5 * GIB * rng.uniform(0.99, 1.01)))
    assert count_plans(desk, 100, noise) == 0 and desk.balancer.state == "balanced"


def test_osd_that_flaps() -> None:
    desk = at_rest(uneven())
    cluster = desk.gateway.cluster
    up = {pgid: list(osds) for pgid, osds in cluster.up.items()}
    for osd in cluster.osds:
        cluster.osd(osd, used=cluster.used_bytes(osd))      # data stays where it is

    def flap(number: int) -> None:
        down = number % 2 == 0
        cluster.osd(1, up=0 if down else 1, state=["exists"] if down else ["exists", "up"])
        for pgid, osds in up.items():
            cluster.up[pgid] = [osd for osd in osds if osd != 1 or not down]
    assert count_plans(desk, 60, flap, 30.0) <= 3      # one in ten minutes


def test_osd_that_is_out_for_a_moment() -> None:
    desk = at_rest(uneven())
    cluster = desk.gateway.cluster

    def out_and_in(number: int) -> None:
        out = number % 4 == 0
        cluster.osd(2, **({"in": 0, "weight": 0.0} if out else {"in": 1, "weight": 1.0}))
    assert count_plans(desk, 40, out_and_in, 30.0) == 0


def test_osd_that_stays_out() -> None:
    desk = at_rest(uneven())
    cluster = desk.gateway.cluster
    cluster.osd(2, **{"in": 0, "weight": 0.0})
    assert desk.round(60) == "waiting"
    assert desk.balancer.reason.startswith("the cluster has just changed; there is a new plan in")
    assert desk.round(30) == "waiting" and desk.jobs.waiting == []
    assert desk.round(31) == "planning" and len(desk.jobs.waiting) == 1


def test_plan_that_is_not_worth_its_bytes() -> None:
    cluster = uneven(pgs=18, osds=2)                   # 50 GiB and 40, of 100
    cluster.up.update({"1.%x" % ps: [1] for ps in range(8)})
    desk = at_rest(cluster, min_gain=0.15)
    assert desk.gateway.sent == []
    assert "gain less than min_gain (0.15)" in desk.balancer.reason
    plans = count_plans(desk, 20, lambda _: None)
    assert plans == 0
    desk.options["min_gain"] = 0.01
    assert desk.round(60) == "planning" and desk.jobs.run() == 1
    assert desk.round() == "moving"


def test_named_plan_is_always_worth_it() -> None:
    desk = Desk(uneven(pgs=3), min_gain=0.9)
    desk.balancer.execute("p", kept(desk, plan=small_plan(1)))
    assert desk.round() == "moving"


def test_osd_above_nearfull_is_always_worth_it() -> None:
    cluster = uneven(pgs=3)
    cluster.osd(0, used=86 * GIB)
    desk = Desk(cluster, active=True, min_gain=0.9)
    desk.round()
    desk.jobs.run()
    assert desk.round() == "moving"
    assert desk.balancer.episode is not None
    assert desk.balancer.episode["why"] == "osd.0 is above nearfull"


def growing(desk: Desk, factor: float) -> None:
    records = desk.gateway.cluster.records
    for pgid, record in records.items():
        records[pgid] = record._replace(num_bytes=int(record.num_bytes * factor))


def test_growth_under_way_makes_a_new_plan_every_ten_minutes_at_most(mocker: Any) -> None:
    """A round a minute, the pool grows by a tenth in each, and one move goes a round."""
    planner = mocker.patch.object(planning, "make_plan", side_effect=planning.make_plan)
    desk = Desk(uneven(), active=True, max_moves_per_round=1, sleep_interval=60)
    made: List[float] = []
    for _ in range(5):
        calls = planner.call_count
        desk.round(60)
        desk.jobs.run()
        if planner.call_count > calls:
            made.append(desk.now)
        growing(desk, 1.06)
    assert len(made) == 1 and desk.gateway.sent
    walk = desk.balancer.walk
    desk.round(600)
    assert desk.balancer.walk is not walk and "given up: pool 1 has grown" == (
        desk.balancer.last_walk or {})["outcome"]


def test_topology_that_changes_under_way() -> None:
    """Nothing is sent meanwhile; it goes on where the change is taken back, and else plans anew."""
    desk = Desk(uneven(), active=True, max_moves_per_round=1)
    cluster = desk.gateway.cluster
    desk.round()
    desk.jobs.run()
    desk.round()
    walk = desk.balancer.walk
    cluster.osd(2, weight=0.5)
    assert desk.round(10) == "waiting" and len(desk.gateway.sent) == 1
    assert desk.balancer.reason.startswith("osd.2 has another weight; there is a new plan in 6")
    cluster.osd(2, weight=1.0)
    desk.gateway.arrive()
    assert desk.round(10) == "moving" and desk.balancer.walk is walk
    cluster.osd(2, weight=0.5)
    desk.round(10)
    assert desk.round(61) == "planning" and desk.balancer.walk is None
    assert (desk.balancer.last_walk or {})["outcome"] == "given up: osd.2 has another weight"


def test_plan_for_a_cluster_that_has_changed_meanwhile_is_not_begun() -> None:
    desk = Desk(uneven(), active=True)
    desk.round()
    desk.jobs.run()
    desk.gateway.cluster.osd(2, weight=0.5)
    assert desk.round(10) == "waiting" and desk.balancer.walk is None
    assert desk.round(61) == "planning" and desk.gateway.sent == []


def test_options_that_change_under_way_make_a_new_plan() -> None:
    desk = Desk(uneven(), active=True, max_moves_per_round=1)
    desk.round()
    desk.jobs.run()
    desk.round()
    desk.options["aim"] = "even"
    assert desk.round(60) == "planning" and len(desk.gateway.sent) == 1


def test_plan_of_which_nothing_can_be_sent_is_not_made_again_at_once() -> None:
    """All targets are nearfull: the planner would have them, the executor would not."""
    cluster = uneven(pgs=4, osds=2)
    cluster.osd(0, used=87 * GIB).osd(1, used=86 * GIB)
    desk = Desk(cluster, active=True, fill_limit=0.99)
    plans = 0
    for _ in range(12):
        desk.round(30)
        plans += desk.jobs.run()
    assert desk.gateway.sent == [] and plans <= 2
    assert desk.balancer.state in ("balanced", "stuck")
    assert "no move can be made" in desk.balancer.reason or plans == 1


@pytest.mark.parametrize("cluster", [uneven(), uneven(pgs=7, osds=4)])
def test_quiet_rounds_write_nothing(cluster: Cluster) -> None:
    desk = at_rest(cluster)
    assert desk.balancer.state == "balanced"
    writes = len(desk.kv.writes)
    assert count_plans(desk, 30, lambda _: None) == 0
    assert len(desk.kv.writes) == writes


def test_pgs_just_moved_are_not_planned_again_before_their_time() -> None:
    desk = at_rest(uneven(), pg_cooldown=3600)
    assert desk.balancer.state == "balanced"
    sent, plans = len(desk.gateway.sent), 0
    for _ in range(200):
        desk.round(60)
        plans += desk.jobs.run()
    assert plans == 1 and len(desk.gateway.sent) == sent     # once, when they may be moved again


def test_automatic_plans_leave_alone_what_was_just_moved(mocker: Any) -> None:
    planner = mocker.patch.object(planning, "make_plan", side_effect=planning.make_plan)
    desk = at_rest(uneven(), pg_cooldown=3600)
    first, second = [call.args[1].rejected_pgs for call in planner.call_args_list]
    assert first == frozenset() and second == set(desk.gateway.sent) != set()


def test_pgs_of_overfull_osds_are_planned_though_just_moved(mocker: Any) -> None:
    desk = at_rest(uneven(), pg_cooldown=36000)
    cluster = desk.gateway.cluster
    desk.round(700)   # what was moved has settled: that the OSD fills up is others' doing
    cluster.osd(1, used=90 * GIB)
    planner = mocker.patch.object(planning, "make_plan", side_effect=planning.make_plan)
    desk.round(60)
    desk.jobs.run()
    there = {pgid for pgid, up in cluster.up.items() if up == [1]}
    assert there and not there & planner.call_args.args[1].rejected_pgs


def test_growth_ends_a_rest() -> None:
    desk = at_rest(uneven())
    for osd in range(3):
        desk.gateway.cluster.osd(osd, used=20 * GIB)      # whatever the devices say
    growing(desk, 1.03)
    assert desk.round(700) == "balanced"
    growing(desk, 1.3)
    assert desk.round(60) == "planning"

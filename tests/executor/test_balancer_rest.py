"""Where nothing is to be done: balanced or stuck, how far from the bound, and what ends it."""
from __future__ import annotations

import re
from typing import Any

import pytest
from builders import GIB, OSD_RULE, Cluster, hosts
from fakes import Desk
from rounds import at_rest, kept, uneven

from equilibrium_mgr import planning
from equilibrium_mgr.executor import view as view_room


def pinned(pool: int = 1, beside: Any = None, classes: Any = None) -> Cluster:
    """Pool 1: twelve PGs of 5 GiB on osd.0; pool 2: two on each OSD. One pool's cannot be moved."""
    cluster = Cluster({**hosts(1, 2), **(beside or {})}, {0: OSD_RULE}, classes)
    cluster.pool(1, size=1).pool(2, size=1)
    for ps in range(12):
        cluster.pg("1.%x" % ps, [0], num_bytes=5 * GIB, objects=10)
    for ps in range(4):
        cluster.pg("2.%x" % ps, [ps % 2], num_bytes=GIB, objects=10)
    cluster.extra["pg_upmap"] = [{"pgid": pgid, "osds": up} for pgid, up in cluster.up.items()
                                 if pgid.startswith("%d." % pool)]
    return cluster


def test_stuck_is_not_called_balanced() -> None:
    """Pool 1 stays: 60 GiB or little more on osd.0 where 32 on each would be even."""
    desk = at_rest(pinned())
    assert desk.balancer.state == "stuck"
    said = re.fullmatch(
        "osd.0, the fullest of class hdd, is (.*) points above the bound, and no legal move helps"
        " it; 'ceph equilibrium explain' tells why", desk.balancer.reason)
    assert said is not None and 28.0 <= float(said.group(1)) <= 30.0


def test_balanced_tells_how_far_from_the_bound_it_is() -> None:
    desk = at_rest(pinned(pool=2))
    assert desk.balancer.state == "balanced" and set(desk.gateway.sent) <= {
        "1.%x" % ps for ps in range(12)}
    assert "no move improves the placement; osd." in desk.balancer.reason
    assert desk.balancer.reason.endswith("points above the bound")


def test_one_shard_that_cannot_be_split_is_nothing_to_be_stuck_at() -> None:
    cluster = Cluster(hosts(1, 2), {0: OSD_RULE}).pool(1, size=1).pg("1.0", [0], 50 * GIB)
    desk = at_rest(cluster)
    assert desk.balancer.state == "balanced" and "25.0 points above" in desk.balancer.reason


def test_pools_that_must_not_be_moved_make_nobody_stuck() -> None:
    """Pool 1 is in nobody's way where balancing is limited to pool 2."""
    cluster = pinned()
    cluster.extra["pg_upmap"] = []
    desk = at_rest(cluster, pool_ids="2")
    assert desk.balancer.state == "balanced" and set(desk.gateway.sent) <= {"2.0", "2.2"}
    assert re.search("; osd.0, .* is [0-2][.][0-9] points above what moves of the pools in pool_ids"
                     " could reach$", desk.balancer.reason)


def test_classes_that_must_not_be_moved_make_nobody_stuck() -> None:
    assert at_rest(pinned(), device_classes="hdd").balancer.state == "stuck"
    elsewhere = at_rest(pinned(beside={"root fast": {"host f": [2]}}, classes={2: "ssd"}),
                        device_classes="ssd").balancer
    assert (elsewhere.state, elsewhere.reason) == (
        "balanced", "no move improves the placement; osd.2, the fullest of class ssd, is 0.0 points"
        " above the bound")


@pytest.mark.parametrize("options, named", [
    ({"device_classes": "ssd"}, "device_classes"), ({"device_classes": "HDD"}, "device_classes"),
    ({"pool_ids": "3"}, "pool_ids"), ({"pool_ids": "abc"}, "pool_ids")])
def test_options_that_exclude_everything_make_nobody_balanced(options: Any, named: str) -> None:
    desk = at_rest(pinned(), **options)
    assert desk.balancer.state == "stuck" and named in desk.balancer.reason
    assert desk.gateway.sent == []


def test_bound_that_cannot_be_computed_stops_nobody(mocker: Any) -> None:
    broken = mocker.patch.object(view_room, "reachable", side_effect=KeyError("osd.7"))
    desk = at_rest(pinned(pool=2))
    assert broken.called and desk.gateway.sent
    assert (desk.balancer.state, desk.balancer.reason) == (
        "balanced", "no move improves the placement")
    assert desk.balancer.view is not None and desk.balancer.view.bounds == {}


def test_bounds_are_computed_once_a_look(mocker: Any) -> None:
    """Our own batch changes no bound, and a glance none either."""
    spy = mocker.patch.object(view_room, "reachable", side_effect=view_room.reachable)
    desk = Desk(uneven())
    desk.balancer.execute("p", kept(desk))
    assert desk.round() == "moving" and spy.call_count == 1 and desk.gateway.looks == 2
    assert desk.balancer.view is not None
    assert desk.balancer.view.bounds == {"hdd": pytest.approx(0.2)}
    desk.gateway.arrive()
    desk.round(60)
    assert spy.call_count == 2
    calls = spy.call_count
    desk.round(60)
    desk.balancer.round()                  # off: not even a look
    assert spy.call_count == calls


def test_others_have_their_turn_while_bounds_are_computed(mocker: Any) -> None:
    turns = mocker.patch.object(view_room, "Turns")
    Desk(uneven(), active=True).round()
    assert turns.return_value.call_count > 3


def test_automatic_plans_have_the_aim_of_the_option(mocker: Any) -> None:
    planner = mocker.patch.object(planning, "make_plan", side_effect=planning.make_plan)
    at_rest(uneven(), aim="even")
    assert {call.args[1].aim for call in planner.call_args_list} == {"even"}


def test_new_aim_ends_the_rest() -> None:
    desk = at_rest(uneven())
    assert desk.balancer.state == "balanced"
    desk.options["aim"] = "even"
    assert desk.round(60) == "planning"
    desk.jobs.run()
    for _ in range(4):
        desk.round(60)
        desk.jobs.run()
        desk.gateway.arrive()
    assert desk.round(60) == "balanced" and desk.jobs.waiting == []


def test_aim_that_changes_while_a_plan_is_made_is_planned_for() -> None:
    desk = Desk(pinned(2, {"root fast": {"host f": [2]}}, {2: "ssd"}), active=True,
                device_classes="ssd")
    desk.round()
    desk.options["aim"] = "least-motion"
    desk.jobs.run()
    assert desk.round(60) == "planning" and len(desk.jobs.waiting) == 1
    desk.jobs.run()
    assert desk.round(60) == "balanced"

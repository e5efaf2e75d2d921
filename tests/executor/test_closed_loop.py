"""What a batch did is measured: a pool whose shards take more than was predicted is stopped."""
from __future__ import annotations

import json
from typing import Any, Optional

import pytest
from builders import GIB
from fakes import Desk
from rounds import kept, small_plan, successor, uneven

from equilibrium_mgr.report.explain import explain
from equilibrium_mgr.report.health import health_checks
from equilibrium_mgr.report.status import report_status

CODE = "MGR_EQUILIBRIUM_MISPREDICTED"


def begun(**options: Any) -> Desk:
    """Two of the PGs of 5 GiB are on their way, to OSDs that get them by and by."""
    desk = Desk(uneven(), active=True, max_moves_per_round=2, **options)
    for osd, used in enumerate((70, 10, 10)):
        desk.gateway.cluster.osd(osd, used=used * GIB)
    desk.round()
    desk.jobs.run()
    desk.round(60)
    assert len(desk.gateway.sent) == 2
    return desk


def arrive(desk: Desk, bytes_each: int) -> None:
    """What was sent is there; its targets have grown by so much a shard."""
    cluster = desk.gateway.cluster
    for change in desk.gateway.batches[-1]:
        for osd in set(change.up_after) - set(change.up_before):
            cluster.osd(osd, used=cluster.used[osd] + bytes_each)
    desk.gateway.arrive()


def stopped(**options: Any) -> Desk:
    """After the shards of the first batch took twice what was predicted."""
    desk = begun(**options)
    arrive(desk, 10 * GIB)
    for _ in range(3):
        desk.round(60)
        desk.jobs.run()
    return desk


def status(desk: Desk) -> Any:
    answer = report_status(desk.balancer, desk.planning, True, desk.now, None)
    return json.loads(json.dumps(answer.data))


def test_shards_as_large_as_predicted_let_it_go_on() -> None:
    desk = begun()
    arrive(desk, 5 * GIB)
    desk.round(60)
    desk.jobs.run()
    desk.round(60)
    assert desk.balancer.mispredicted == {}
    assert len(desk.gateway.sent) > 2


def test_pool_whose_shards_take_more_is_stopped() -> None:
    desk = stopped()
    assert set(desk.balancer.mispredicted) == {1}
    assert len(desk.gateway.sent) == 2
    for _ in range(20):
        desk.round(600)
        desk.jobs.run()
    assert len(desk.gateway.sent) == 2


def test_status_and_health_tell_by_how_much_and_what_helps() -> None:
    desk = stopped()
    told = status(desk)
    assert told["state"] != "balanced"
    assert "pool 'pool1' took 10.0 GiB" in told["reason"] and "predicted" in told["reason"]
    assert told["mispredicted"][0]["measured_bytes"] == 10 * GIB
    check = health_checks(desk.balancer, True, "")[CODE]
    assert check["severity"] == "warning" and "ceph equilibrium on" in check["detail"][0]


@pytest.mark.parametrize("what", [None, "pool1"])
def test_explain_tells_it_too(what: Optional[str]) -> None:
    desk = stopped()
    assert desk.balancer.view is not None
    answer = explain(what, desk.balancer.view, desk.balancer, desk.settings(), 0.0)
    assert answer is not None
    assert "pool 'pool1' took 10.0 GiB" in answer.plain and "ceph equilibrium on" in answer.plain


def test_planning_uses_what_was_measured() -> None:
    desk = stopped()
    measured = desk.gateway.snapshot().pgs["1.0"].shard_bytes
    assert measured > 9 * GIB
    desk.balancer.switch_on(False)
    desk.round(700)
    desk.jobs.run()
    desk.round(60)
    assert desk.balancer.mispredicted == {}
    assert CODE not in health_checks(desk.balancer, True, "")
    assert desk.gateway.snapshot().pgs["1.0"].shard_bytes == measured


def test_a_named_plan_is_stopped_as_well() -> None:
    desk = Desk(uneven(), max_moves_per_round=2)
    for osd, used in enumerate((70, 10, 10)):
        desk.gateway.cluster.osd(osd, used=used * GIB)
    desk.balancer.execute("p", kept(desk, plan=small_plan(6)))
    desk.round()
    arrive(desk, 10 * GIB)
    for _ in range(10):
        desk.round(60)
    assert len(desk.gateway.sent) == 2
    assert desk.balancer.walk is None
    last = desk.balancer.last_walk
    assert last is not None and last["dropped_moves"] == 4
    assert "took" in last["dropped"][0]["reason"]


def test_execute_is_an_operators_word_and_lets_it_go_on() -> None:
    desk = stopped()
    desk.options["active"] = False
    desk.balancer.switch_off()
    desk.balancer.execute("p", kept(desk, plan=small_plan(6)))
    assert desk.balancer.mispredicted == {}


def test_another_mgr_keeps_to_it() -> None:
    desk = stopped()
    other = successor(desk)
    for _ in range(10):
        other.round(600)
        other.jobs.run()
    assert set(other.balancer.mispredicted) == {1}
    assert other.gateway.sent == []
    assert other.gateway.snapshot().pgs["1.0"].shard_bytes > 9 * GIB


def test_pools_that_are_gone_are_forgotten() -> None:
    desk = stopped()
    desk.gateway.cluster.pools[2] = dict(desk.gateway.cluster.pools.pop(1), pool=2)
    desk.gateway.cluster.up = {"2.0": [0]}
    desk.gateway.cluster.records = {"2.0": desk.gateway.cluster.records["1.0"]}
    desk.gateway.cluster.items = {}
    desk.round(60)
    assert desk.balancer.mispredicted == {}

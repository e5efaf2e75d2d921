"""Plans that move nothing, carried out by the loop: guards, accounts, batches, failover."""
from __future__ import annotations

from typing import Any, Optional

import pytest

from equilibrium_mgr.plan.model import CANCEL, FREEZE, PgChange, Plan
from tests.support.clusters.unit_cluster import Cluster, plan_of
from tests.support.fakes import Harness
from tests.support.rounds import kept, successor, uneven
from tests.support.units import GIB


def back(count: int = 4, kind: str = CANCEL) -> Plan:
    """Takes back the moves of rounds.small_plan."""
    return plan_of([PgChange(f"1.{ps:x}", (0,), (1,), (0,), (), 0, 5 * GIB, 10)
                    for ps in range(count)])._replace(kind=kind)


def under_way(cluster: Optional[Cluster] = None, count: int = 4, **options: Any) -> Harness:
    """PGs 1.0 … are on their way from osd.0 to osd.1; their execution has been stopped."""
    harness = Harness(cluster or uneven(), **options)
    plan = kept(harness)
    assert harness.balancer.execute("p", plan._replace(changes=plan.changes[:count]))
    harness.round()
    harness.balancer.stop_plan("p")
    assert len(harness.sent) == count
    harness.gateway.batches.clear()
    return harness


def execute(harness: Harness, plan: Plan) -> None:
    harness.plan_store.put("c", plan, harness.now)
    assert harness.balancer.execute("c", plan)


def test_neither_the_delay_of_a_new_mgr_nor_the_built_in_balancer_stops_it() -> None:
    harness = under_way()
    again = successor(harness, start_delay=600)
    again.gateway.builtin = True
    execute(again, back())
    again.round(5)
    assert len(again.sent) == 4


@pytest.mark.parametrize("trouble", ["no monitor", "old clients"])
def test_nothing_goes_without_a_monitor_that_keeps_it(trouble: str) -> None:
    harness = under_way()
    execute(harness, back())
    if trouble == "no monitor":
        harness.gateway.connected = False
    else:
        harness.cluster.extra["require_min_compat_client"] = "jewel"
    assert harness.round(5) == "blocked"
    assert harness.sent == []


def test_it_ends_at_once_and_waits_for_nothing_on_its_way() -> None:
    harness = under_way()
    execute(harness, back(1))
    harness.round(5)
    harness.round(5)
    assert harness.execution is None
    entry = harness.history[-1]
    assert entry["outcome"] == "completed"
    assert entry["why"] == "'ceph equilibrium cancel'"
    assert entry["moves"] == 0


def test_one_that_has_moved_meanwhile_does_not_make_it_dropped() -> None:
    """The plan has done what it could; before, it ended as if nothing of it had been sent."""
    harness = under_way()
    plan = back(kind=FREEZE)
    gone = plan.changes[-1]._replace(up_before=(2,), raw=(2,))
    execute(harness, plan._replace(changes=(*plan.changes[:-1], gone)))
    harness.round(5)
    harness.round(5)
    last = harness.balancer.status.last_execution
    assert last is not None
    assert len(last["dropped"]) == 1
    assert last["outcome"] == "completed: all but 1 PG (CRUSH maps the PG differently now)"


def test_what_the_monitor_refuses_stays_pending() -> None:
    harness = under_way()
    harness.gateway.refuses = {"1.0"}
    execute(harness, back(2))
    harness.round(5)
    assert set(harness.balancer.dispatcher.pending.entries) == {"1.0", "1.2", "1.3"}
    assert harness.balancer.dispatcher.pending.entries["1.0"].shards == 1

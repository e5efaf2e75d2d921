"""At the optimum nothing is sent, and nothing that is of no account makes it churn."""
from __future__ import annotations

from typing import Any
from unittest.mock import Mock

from tests.support.fakes import Harness
from tests.support.rounds import idle, uneven
from tests.support.units import GIB

from equilibrium_mgr.planner.planner import make_plan


def count_plans(harness: Harness, rounds: int, change: Any, seconds: float = 60.0) -> int:
    """Rounds with a change before each; the plans that were made. Nothing may be sent."""
    sent, plans = len(harness.gateway.sent), 0
    for number in range(rounds):
        change(number)
        harness.gateway.cluster.epoch += 1
        harness.round(seconds)
        plans += harness.jobs.run()
    assert len(harness.gateway.sent) == sent
    return plans


def test_plan_that_is_not_worth_its_bytes() -> None:
    cluster = uneven(pgs=18, osds=2)                   # 50 GiB and 40, of 100
    cluster.up.update({f"1.{ps:x}": [1] for ps in range(8)})
    harness = idle(cluster, min_gain=0.15)
    assert harness.gateway.sent == []
    assert "gain less than min_gain (0.15)" in harness.balancer.reason
    plans = count_plans(harness, 20, lambda _: None)
    assert plans == 0
    harness.options["min_gain"] = 0.01
    assert harness.round(60) == "planning" and harness.jobs.run() == 1
    assert harness.round() == "moving"


def test_osd_above_nearfull_is_always_worth_it() -> None:
    cluster = uneven(pgs=3)
    cluster.osd(0, used=86 * GIB)
    harness = Harness(cluster, active=True, min_gain=0.9)
    harness.round()
    harness.jobs.run()
    assert harness.round() == "moving"
    assert harness.balancer.status.episode is not None
    assert harness.balancer.status.episode["why"] == "osd.0 is above nearfull"


def test_topology_that_changes_under_way() -> None:
    """What it does not touch goes on meanwhile; where it lasts there is a new plan."""
    harness = Harness(uneven(), active=True, max_moves_per_round=1)
    cluster = harness.gateway.cluster
    harness.round()
    harness.jobs.run()
    harness.round()
    execution = harness.balancer.execution
    sent, cluster.epoch = len(harness.gateway.sent), cluster.epoch + 1
    cluster.osd(2, weight=0.5)
    harness.gateway.arrive()
    assert harness.round(60) == "moving" and len(harness.gateway.sent) == sent + 1
    assert execution is harness.balancer.execution and execution is not None
    assert not any(2 in change.up_after for change in execution.wanted)
    harness.gateway.arrive()
    assert harness.round(61) == "planning" and harness.balancer.execution is None
    last = harness.balancer.status.last_execution or {}
    assert last["outcome"] == "superseded: osd.2 has another weight"


def test_options_that_change_under_way_make_a_new_plan() -> None:
    harness = Harness(uneven(), active=True, max_moves_per_round=1)
    harness.round()
    harness.jobs.run()
    harness.round()
    harness.options["aim"] = "even"
    assert harness.round(60) == "planning" and len(harness.gateway.sent) == 1


def test_plan_of_which_nothing_can_be_sent_is_not_made_again_at_once() -> None:
    """All targets are nearfull: the planner would have them, the executor would not."""
    cluster = uneven(pgs=4, osds=2)
    cluster.osd(0, used=87 * GIB).osd(1, used=86 * GIB)
    harness = Harness(cluster, active=True, fill_limit=0.99)
    plans = 0
    for _ in range(12):
        harness.round(30)
        plans += harness.jobs.run()
    assert harness.gateway.sent == [] and plans <= 2
    assert harness.balancer.state in ("balanced", "stuck")
    assert "no move can be made" in harness.balancer.reason or plans == 1


def test_pgs_of_overfull_osds_are_planned_though_just_moved() -> None:
    harness = idle(uneven(), pg_cooldown=36000)
    cluster = harness.gateway.cluster
    harness.round(700)   # what was moved has settled: that the OSD fills up is others' doing
    cluster.osd(1, used=90 * GIB)
    planner = harness.planning.planner = Mock(side_effect=make_plan)
    harness.round(60)
    harness.jobs.run()
    there = {pgid for pgid, up in cluster.up.items() if up == [1]}
    assert there and not there & planner.call_args.args[1].rejected_pgs


def test_plan_for_a_cluster_that_has_changed_meanwhile_is_not_begun() -> None:
    harness = Harness(uneven(), active=True)
    harness.round()
    harness.jobs.run()
    harness.gateway.cluster.osd(2, weight=0.5)
    assert harness.round(10) == "waiting" and harness.balancer.execution is None
    assert harness.round(61) == "planning" and harness.gateway.sent == []

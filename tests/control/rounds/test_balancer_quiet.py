"""At the optimum nothing is sent, and nothing that is of no account makes it churn."""
from __future__ import annotations

from typing import Any, List
from unittest.mock import Mock

from equilibrium_mgr.planner.planner import make_plan
from tests.support.fakes import Harness
from tests.support.rounds import idle, uneven
from tests.support.units import GIB


def count_plans(harness: Harness, rounds: int, change: Any, seconds: float = 60.0) -> int:
    """Rounds with a change before each; the plans that were made. Nothing may be sent."""
    sent, plans = len(harness.sent), 0
    for number in range(rounds):
        change(number)
        harness.cluster.epoch += 1
        harness.round(seconds)
        plans += harness.jobs.run()
    assert len(harness.sent) == sent
    return plans


def test_plan_that_is_not_worth_its_bytes() -> None:
    cluster = uneven(pgs=18, osds=2)                   # 50 GiB and 40, of 100
    cluster.up.update({f"1.{ps:x}": [1] for ps in range(8)})
    harness = idle(cluster, min_gain=0.15)
    assert harness.sent == []
    assert "gain less than min_gain (0.15)" in harness.reason
    plans = count_plans(harness, 20, lambda _: None)
    assert plans == 0
    harness.options["min_gain"] = 0.01
    assert harness.round(60) == "planning"
    assert harness.jobs.run() == 1
    assert harness.round() == "moving"


def test_osd_above_nearfull_is_always_worth_it() -> None:
    cluster = uneven(pgs=3)
    cluster.osd(0, used=86 * GIB)
    harness = Harness(cluster, active=True, min_gain=0.9)
    harness.plan()
    assert harness.round() == "moving"
    assert harness.balancer.status.episode is not None
    assert harness.balancer.status.episode["why"] == "osd.0 is or will be above nearfull"


def test_growth_under_way_makes_a_new_plan_every_ten_minutes_at_most() -> None:
    """A round a minute, an OSD grows by a twentieth in each, and one move goes a round."""
    harness = Harness(uneven(), active=True, max_moves_per_round=1, sleep_interval=60)
    planner = harness.planning.planner = Mock(side_effect=make_plan)
    made: List[float] = []
    for grown in range(5):
        calls = planner.call_count
        harness.plan(60)
        if planner.call_count > calls:
            made.append(harness.now)
        harness.arrive()
        harness.cluster.osd(2, used=5 * grown * GIB)
    assert len(made) == 1
    assert harness.sent
    execution = harness.execution
    harness.round(600)
    assert harness.execution is not execution
    assert "superseded: osd.2 is at " in (harness.balancer.status.last_execution or {})["outcome"]


def test_plan_of_which_nothing_can_be_sent_is_not_made_again_at_once() -> None:
    """All targets are nearfull: the planner would have them, the executor would not."""
    cluster = uneven(pgs=4, osds=2)
    cluster.osd(0, used=87 * GIB).osd(1, used=86 * GIB)
    harness = Harness(cluster, active=True, fill_limit=0.99)
    plans = 0
    for _ in range(12):
        harness.round(30)
        plans += harness.jobs.run()
    assert harness.sent == []
    assert plans <= 2
    assert harness.state in ("balanced", "stuck")
    assert "no move can be made" in harness.reason or plans == 1

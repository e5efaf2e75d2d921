"""The serve loop's controller, round by round, on a fake gateway."""
from __future__ import annotations

from typing import Any


from tests.support.fakes import Harness
from tests.support.rounds import executing, small_plan, uneven


def test_report_between_the_look_and_our_upmaps_is_no_arrival() -> None:
    """Somebody else's change makes epoch 101, ours land in 102; PGs have reported at 101."""
    harness = Harness(uneven())
    harness.gateway.ratio = 0.27
    executing(harness)
    cluster = harness.cluster

    def foreign_epoch() -> None:
        cluster.epoch = 101
        harness.report(*cluster.records, reported_epoch=101)
    harness.gateway.before_send_check = foreign_epoch
    harness.round()
    assert cluster.epoch == 102
    harness.gateway.before_send_check = lambda: None
    cluster.acting.clear()                        # our PGs have not peered yet
    assert harness.round(1) == "moving"
    assert len(harness.sent) == 3


def test_silent_monitor_does_not_hang_the_plan() -> None:
    harness = Harness(uneven())
    harness.gateway.ignores = {"1.0"}
    executing(harness, small_plan(1))
    harness.rounds(6, 60)
    assert harness.sent == ["1.0"] * 3
    assert harness.execution is None


def test_planner_that_fails_does_not_end_the_loop(mocker: Any) -> None:
    harness = Harness(uneven(), active=True)
    broken = mocker.patch.object(harness.planning, "planner", side_effect=RuntimeError("no"))
    harness.plan()
    assert harness.planning.plans_in_progress() == {}
    assert harness.balancer.status.rejected == {}
    mocker.stop(broken)
    assert harness.round(60) == "planning"
    assert not harness.jobs.waiting   # in a minute
    assert harness.round(60) == "planning"
    assert harness.jobs.run() == 1
    assert harness.round(60) == "moving"

"""The serve loop's controller, round by round, on a fake gateway."""
from __future__ import annotations

import pytest
from tests.support.clusters.unit_cluster import change_of, plan_of
from tests.support.fakes import Harness
from tests.support.rounds import kept, small_plan, uneven


def test_not_ready_is_waiting() -> None:
    harness = Harness(uneven(), active=True)
    harness.gateway.not_ready = "the mgr has no osd_stats yet"
    assert harness.round() == "waiting"
    assert harness.balancer.reason == "the mgr has no osd_stats yet"


def test_automatic_from_planning_to_balanced() -> None:
    harness = Harness(uneven(), active=True)
    assert harness.round() == "planning" and harness.gateway.sent == []
    assert harness.jobs.run() == 1 and harness.wakes > 0
    assert harness.round() == "moving"
    assert len(harness.gateway.sent) == 8 == len(set(harness.gateway.sent))
    assert harness.round(60) == "moving" and len(harness.gateway.sent) == 8
    harness.gateway.arrive()
    states = [harness.round(60)]
    for _ in range(3):
        harness.jobs.run()
        states.append(harness.round(60))
    assert states[-1] == "balanced" and len(harness.gateway.sent) == 8
    harness.jobs.run()
    assert harness.round(60) == "balanced" and harness.jobs.waiting == []
    assert sorted(len([u for u in harness.gateway.cluster.up.values() if u == [o]])
                  for o in range(3)) == [4, 4, 4]


def test_report_between_the_look_and_our_upmaps_is_no_arrival() -> None:
    """Somebody else's change makes epoch 101, ours land in 102; PGs have reported at 101."""
    harness = Harness(uneven())
    harness.gateway.ratio = 0.27
    harness.balancer.execute("p", kept(harness))
    cluster = harness.gateway.cluster

    def foreign_epoch() -> None:
        cluster.epoch = 101
        for pgid, record in cluster.records.items():
            cluster.records[pgid] = record._replace(reported_epoch=101)
    harness.gateway.before_send_check = foreign_epoch
    harness.round()
    assert cluster.epoch == 102
    harness.gateway.before_send_check = lambda: None
    cluster.acting.clear()                        # our PGs have not peered yet
    assert harness.round(1) == "moving" and len(harness.gateway.sent) == 3


def test_foreign_upmaps_prolong_the_wait() -> None:
    harness = Harness(uneven(), active=True)
    harness.round()
    harness.balancer.switch_on(True)
    assert harness.round(50) == "waiting"
    harness.gateway.set_items("1.0", [0], [(0, 2)])
    assert harness.round(5) == "waiting"
    assert harness.round(50) == "waiting"   # 105 s after `on`: observed, and found so
    assert harness.round(50) == "waiting" and harness.round(11) == "planning"


def test_execute_goes_through_and_ends() -> None:
    harness = Harness(uneven(), max_moves_per_round=2)
    assert harness.balancer.execute("p", kept(harness))
    for _ in range(8):
        harness.round(60)
        harness.gateway.arrive()
    assert harness.gateway.sent == ["1.0", "1.1", "1.2", "1.3"]
    assert [len(batch) for batch in harness.gateway.batches] == [2, 2]
    assert harness.balancer.execution is None and harness.balancer.state == "off"
    last = harness.balancer.status.last_execution or {}
    assert (last["outcome"], last["sent_moves"], last["dropped_moves"]) == ("completed", 4, 0)
    assert "execution" not in harness.kv.values


def test_what_the_monitor_drops_is_reported_and_not_sent_again() -> None:
    harness = Harness(uneven())
    harness.gateway.drops, harness.gateway.refuses = {"1.1"}, {"1.2"}
    harness.balancer.execute("p", kept(harness))
    for _ in range(4):
        harness.round(60)
        harness.gateway.arrive()
    assert sorted(harness.gateway.sent) == ["1.0", "1.1", "1.2", "1.3"]
    assert {pgid: item.reason for pgid, item in harness.balancer.status.rejected.items()} == {
        "1.1": "the monitor dropped its upmap items",
        "1.2": "the monitor refused it: no such pg"}
    assert (harness.balancer.status.last_execution or {})["dropped_moves"] == 2


def test_silent_monitor_does_not_hang_the_plan() -> None:
    harness = Harness(uneven())
    harness.gateway.ignores = {"1.0"}
    harness.balancer.execute("p", kept(harness, plan=small_plan(1)))
    for _ in range(6):
        harness.round(60)
    assert harness.gateway.sent == ["1.0"] * 3 and harness.balancer.execution is None


@pytest.mark.parametrize("cooldown", [0, 3600])
def test_what_turns_out_to_be_done_without_an_answer_cools_down(cooldown: int) -> None:
    harness = Harness(uneven(), pg_cooldown=cooldown)
    harness.gateway.ignores = {"1.0"}
    harness.balancer.execute("p", kept(harness, plan=small_plan(1)))
    harness.round()
    change, = harness.gateway.batches[0]
    harness.gateway.ignores = set()
    harness.gateway.set_items("1.0", change.raw, change.items)   # the monitor was only late
    harness.round(60)
    harness.gateway.arrive()
    harness.round(60)
    assert harness.gateway.sent == ["1.0"] and harness.balancer.execution is None
    other, = {0, 1, 2} - set(change.raw) - set(change.up_after)
    again = change_of("1.0", change.raw, (other,), before=change.up_after)
    harness.balancer.execute("q", kept(harness, "q", plan_of([again])))
    harness.round(60)
    assert harness.gateway.sent == (["1.0"] if cooldown else ["1.0", "1.0"])


def test_single_move_above_the_limit_is_told() -> None:
    harness = Harness(uneven())
    harness.gateway.ratio = 0.01
    harness.balancer.execute("p", kept(harness))
    assert harness.round() == "moving" and harness.gateway.sent == ["1.0"]
    assert "1.0" in harness.balancer.reason and "limit" in harness.balancer.reason

"""A mgr that goes away at any moment, and what the next one makes of what it left behind."""
from __future__ import annotations

from typing import Any, List


from tests.support.fakes import Harness
from tests.support.rounds import executing, small_plan, successor, uneven


def test_every_key_is_written_once_a_round() -> None:
    """The episode once more before its first batch: a successor's changes must be of the same."""
    harness = Harness(uneven(), active=True, max_moves_per_round=2)
    harness.gateway.drops = {"1.0"}
    twice = []
    for _ in range(12):
        before = len(harness.kv.writes)
        harness.round(60)
        keys = [key for key, _ in harness.kv.writes[before:]]
        twice += [key for key in set(keys) if keys.count(key) > 1]
        harness.jobs.run()
        harness.arrive()
    assert twice == ["episode"]
    assert {key for key, _ in harness.kv.writes} == {
        "changes/1", "episode", "history", "measured"}


def test_items_that_another_mgr_has_set_meanwhile_are_no_rejection() -> None:
    harness = Harness(uneven())
    gateway: Any = harness.gateway
    replies = gateway.collect_replies

    def overtaken(handed_over: Any, timeout: float) -> Any:
        found = replies(handed_over, timeout)
        gateway.set_items("1.0", [0], [(0, 2)])
        return found
    gateway.collect_replies = overtaken
    executing(harness)
    harness.round()
    assert not harness.balancer.status.rejected
    assert harness.cluster.up["1.0"] == [2]
    assert harness.execution is not None
    assert harness.execution.dropped == [("1.0", "somebody else has set other upmap items")]


def test_the_plan_that_goes_on_is_known_before_the_cluster_is_observed() -> None:
    """Commands come at any moment: `rm` of the plan stops it, `status` names it, and no other plan
    is executed."""
    harness = executing(Harness(uneven(), max_moves_per_round=1))
    harness.round()
    again = successor(harness, start_delay=0)
    told: List[Any] = []
    again.gateway.before_snapshot = lambda: told.append(
        (again.balancer.plan_name, getattr(again.balancer.status.progress, "name", None),
         again.balancer.execute("q", small_plan())))
    again.round(1)
    assert told[0] == ("p", "p", False)
    assert again.execution is not None   # what the last mgr has sent is in place
    assert again.execution.summary()["done_moves"] == 1

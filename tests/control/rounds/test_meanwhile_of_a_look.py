"""What operators do while the cluster is being looked at holds for the batch that follows."""
from __future__ import annotations

from tests.support.fakes import Harness
from tests.support.rounds import executing, uneven


def test_map_that_cannot_be_read_after_a_batch() -> None:
    """A pool is being created: the mgr does not have the statistics of all its PGs yet."""
    harness = executing(Harness(uneven()))

    def pool_created() -> None:
        harness.gateway.not_ready = "the mgr has not received the statistics of all PGs yet"
    harness.gateway.before_answers = pool_created
    harness.balancer.round()
    assert (harness.state, len(harness.sent)) == ("waiting", 4)
    harness.gateway.not_ready, harness.gateway.before_answers = "", lambda: None
    harness.round(5)
    assert len(harness.sent) == 4
    assert harness.state == "moving"
    harness.arrive()
    harness.round(60)
    last = harness.balancer.status.last_execution
    assert last is not None
    assert last["outcome"] == "completed"

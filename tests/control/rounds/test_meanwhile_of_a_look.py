"""What operators do while the cluster is being looked at holds for the batch that follows."""
from __future__ import annotations

from typing import Any, Callable

import pytest
from tests.support.fakes import Harness
from tests.support.rounds import kept, uneven


def crush_edit(harness: Harness, osd: int) -> None:
    """As `ceph osd crush reweight`."""
    cluster = harness.gateway.cluster
    cluster.crush = dict(cluster.crush, buckets=[
        dict(bucket, items=[dict(item, weight=item["weight"] // (1 + (item["id"] == osd)))
                            for item in bucket["items"]]) for bucket in cluster.crush["buckets"]])
    cluster.extra.update(crush_version=6)


def after_the_look(harness: Harness, change: Callable[[Harness], Any]) -> None:
    """The change comes when the round has looked, and before it sends."""
    def once() -> None:
        harness.gateway.before_send_check = lambda: None
        change(harness)
        harness.gateway.cluster.epoch += 1
    harness.gateway.before_send_check = once


@pytest.mark.parametrize("change", [
    lambda harness: None, lambda harness: crush_edit(harness, 3)], ids=["nothing", "other weight"])
def test_an_epoch_that_changes_nothing_of_that_is_no_obstacle(
        change: Callable[[Harness], Any]) -> None:
    harness = Harness(uneven())
    harness.balancer.execute("p", kept(harness))
    after_the_look(harness, change)
    harness.balancer.round()
    assert harness.gateway.sent


def test_map_that_cannot_be_read_after_a_batch() -> None:
    """A pool is being created: the mgr does not have the statistics of all its PGs yet."""
    harness = Harness(uneven())
    harness.balancer.execute("p", kept(harness))

    def pool_created() -> None:
        harness.gateway.not_ready = "the mgr has not received the statistics of all PGs yet"
    harness.gateway.before_answers = pool_created
    harness.balancer.round()
    assert (harness.balancer.state, len(harness.gateway.sent)) == ("waiting", 4)
    harness.gateway.not_ready, harness.gateway.before_answers = "", lambda: None
    harness.round(5)
    assert len(harness.gateway.sent) == 4 and harness.balancer.state == "moving"
    harness.gateway.arrive()
    harness.round(60)
    last = harness.balancer.status.last_execution
    assert last is not None
    assert last["outcome"] == "completed"

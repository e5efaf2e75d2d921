"""Drains in the rounds of the loop, on a cluster that obeys."""
from __future__ import annotations

from typing import Any, Callable

import pytest

from equilibrium_mgr.drain.status import StopCheck
from tests.support.fakes import Harness
from tests.support.rounds import uneven
from tests.support.units import GIB

#: On osd.0 are twelve PGs, on the others none.
DRAIN = {0: "osd.0"}


def run(harness: Harness, rounds: int = 8) -> Harness:
    for _ in range(rounds):
        harness.plan(60)
        harness.arrive()
    return harness


def drained(num_bytes: int = 5 * GIB, **options: Any) -> Harness:
    harness = Harness(uneven(num_bytes=num_bytes), max_upmap_items=0.0,   # each PG needs a pair
                      **options)
    harness.drain(DRAIN)
    return harness


def test_it_is_not_safe_before_ceph_answers() -> None:
    harness = drained()
    harness.gateway.stop_answer = None
    assert run(harness).drains.stop_check is None
    harness.gateway.stop_answer = StopCheck(False, "1 pgs unknown")
    assert run(harness, 1).drains.stop_check == StopCheck(False, "1 pgs unknown")


def at(harness: Harness, moment: str, happens: Callable[[], None]) -> None:
    """Calls `happens` before the next batch: when the round looks for `off`, stores the batch, or
    has decided on it."""
    def before_write(key: str) -> None:
        if key == "changes/1":
            happens()
    if moment == "store":
        harness.kv.before_write = before_write
    elif moment == "decided":
        harness.gateway.before_placement_check = happens
    else:
        harness.gateway.before_send_check = happens


@pytest.mark.parametrize("options", [{}, {"active": True, "from_buckets": "osd.1"},
                                     {"active": True}], ids=["off", "limited", "on"])
@pytest.mark.parametrize("moment", ["ready", "store", "decided"])
def test_once_drain_rm_has_answered_no_shard_leaves_for_it(moment: str, options: Any) -> None:
    """With a plan that waits, and between decision and permit."""
    harness = drained(**options)

    def remove() -> None:
        if harness.drains.drains.names:
            harness.balancer.change_drains(lambda drains: drains.without(frozenset((0,))))
    if moment == "ready":
        harness.plan(60)
        remove()
    else:
        at(harness, moment, remove)
    run(harness, 1)
    while harness.drains.drains.names:
        run(harness, 1)
    assert harness.sent == []
    if options != {"active": True}:   # then its own plans may move the same shards
        assert run(harness).gateway.sent == []


def outcomes(harness: Harness) -> Any:
    return [entry["outcome"] for entry in harness.history]


def test_shards_that_were_moved_a_short_while_ago_leave_at_once() -> None:
    harness = drained(pg_cooldown=3600)
    harness.balancer.dispatcher.cooldown.start(["1.0", "1.1"], harness.now)
    run(harness)
    assert len(harness.sent) == 12
    assert harness.state == "off"
    assert outcomes(harness) == ["completed: no shard is left on osd.0"]

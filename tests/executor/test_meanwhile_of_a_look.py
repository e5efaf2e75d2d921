"""What operators do while the cluster is being looked at holds for the batch that follows."""
from __future__ import annotations

from typing import Any, Callable, Dict

import pytest
from fakes import Desk
from rounds import kept, uneven

CHANGES: Dict[str, Callable[[Desk], Any]] = {
    "flag": lambda desk: desk.gateway.cluster.extra.update(flags="sortbitwise,norebalance"),
    "target out": lambda desk: desk.gateway.cluster.osd(1, **{"in": 0, "weight": 0.0}),
    "target reweighted": lambda desk: desk.gateway.cluster.osd(1, weight=0.1),
    "CRUSH": lambda desk: desk.gateway.cluster.extra.update(crush_version=6)}


def after_the_look(desk: Desk, change: Callable[[Desk], Any]) -> None:
    """The change comes when the round has looked, and before it sends."""
    def once() -> None:
        desk.gateway.before_send_check = lambda: None
        change(desk)
        desk.gateway.cluster.epoch += 1
    desk.gateway.before_send_check = once


@pytest.mark.parametrize("change", sorted(CHANGES))
def test_nothing_is_sent_on_what_was_seen_before(change: str) -> None:
    desk = Desk(uneven())
    desk.balancer.execute("p", kept(desk))
    after_the_look(desk, CHANGES[change])
    desk.balancer.round()
    assert desk.gateway.sent == []


def test_an_epoch_that_changes_nothing_of_that_is_no_obstacle() -> None:
    desk = Desk(uneven())
    desk.balancer.execute("p", kept(desk))
    after_the_look(desk, lambda desk: None)
    desk.balancer.round()
    assert desk.gateway.sent


@pytest.mark.parametrize("option, value", [("pool_ids", "2"), ("device_classes", "ssd"),
                                           ("max_moves_per_round", 1)])
def test_options_hold_at_once(option: str, value: Any) -> None:
    desk = Desk(uneven(), active=True)
    desk.round()
    desk.jobs.run()
    after_the_look(desk, lambda desk: desk.options.update({option: value}))
    desk.round(60)
    assert desk.gateway.sent == [] and desk.balancer.state != "off"
    desk.round(60)
    assert len(desk.gateway.sent) <= 1


def test_map_that_cannot_be_read_after_a_batch() -> None:
    """A pool is being created: the mgr does not have the statistics of all its PGs yet."""
    desk = Desk(uneven())
    desk.balancer.execute("p", kept(desk))

    def pool_created() -> None:
        desk.gateway.not_ready = "the mgr has not received the statistics of all PGs yet"
    desk.gateway.before_answers = pool_created
    desk.balancer.round()
    assert (desk.balancer.state, len(desk.gateway.sent)) == ("waiting", 4)
    desk.gateway.not_ready, desk.gateway.before_answers = "", lambda: None
    desk.round(5)
    assert len(desk.gateway.sent) == 4 and desk.balancer.state == "moving"
    desk.gateway.arrive()
    desk.round(60)
    assert desk.balancer.last_walk is not None and desk.balancer.last_walk["outcome"] == "through"

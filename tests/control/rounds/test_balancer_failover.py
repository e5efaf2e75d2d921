"""A mgr that goes away at any moment, and what the next one makes of what it left behind."""
from __future__ import annotations

import json
from typing import Any, Dict, List

import pytest
from tests.support.clusters.unit_cluster import change_of, plan_of
from tests.support.fakes import Harness, KeyValueStore
from tests.support.rounds import kept, small_plan, successor, uneven
from tests.support.units import MIB


class Killed(BaseException):
    """The process is gone: nothing is caught, nothing is cleared up."""


def killed_while_sending(harness: Harness, lands: bool) -> None:
    """The upmaps have gone out (and landed); the map was not read again."""
    replies = harness.gateway.collect_replies
    stored: List[Dict[str, str]] = []

    def die(handed_over: Any, timeout: float) -> Any:
        stored.append(dict(harness.kv.values))
        if lands:
            replies(handed_over, timeout)
        raise Killed()
    gateway: Any = harness.gateway
    gateway.collect_replies = die
    with pytest.raises(Killed):
        harness.round()
    harness.kv.values = stored[0]  # what the dying process might still have written is not there


def test_resume_after_failover() -> None:
    harness = Harness(uneven(), max_moves_per_round=1)
    harness.balancer.execute("p", kept(harness))
    harness.round()
    assert json.loads(harness.kv.values["execution"])["plan"] == "p"
    second = Harness(harness.gateway.cluster, kv=KeyValueStore(harness.kv.values))
    second.gateway.arrive()
    assert second.round() == "moving"
    assert second.gateway.sent == ["1.1", "1.2", "1.3"]
    assert second.balancer.execution is not None   # what the first has sent counts as sent
    assert second.balancer.execution.sent_moves == 4 and not second.balancer.execution.done_moves


@pytest.mark.parametrize("note", ['{"version": 1, "plan": "gone"}', "not json", "[]", "7",
                                  '{"version": 1}'])
def test_note_that_cannot_be_followed_is_forgotten(note: str) -> None:
    harness = Harness(uneven(), kv=KeyValueStore({"execution": note}))
    assert harness.round() == "off"
    assert harness.balancer.execution is None and "execution" not in harness.kv.values


@pytest.mark.parametrize("lands", [True, False])
def test_kill_between_sending_and_looking(lands: bool) -> None:
    harness = Harness(uneven())
    harness.gateway.ratio = 0.27                     # 32 of 120 copies, a margin left: three PGs
    harness.balancer.execute("p", kept(harness))
    killed_while_sending(harness, lands)
    harness.gateway.cluster.acting.clear()           # nothing has peered, Ceph shows nothing
    again = successor(harness, start_delay=0)
    again.round(1)
    assert again.gateway.sent == []                  # it may be on its way to the monitor
    for _ in range(4):
        again.gateway.arrive()
        again.round(60)
    assert sorted(again.gateway.sent) == (["1.3"] if lands else ["1.0", "1.1", "1.2", "1.3"])
    last = again.balancer.status.last_execution or {}
    assert (last["sent_moves"], last["done_moves"]) == (4, 0) and last["outcome"] == "completed"


def test_cooldown_rejections_history_and_episode_come_along() -> None:
    harness = Harness(uneven(), pg_cooldown=3600, active=True, max_moves_per_round=1)
    harness.gateway.drops = {"1.0"}
    for _ in range(3):
        harness.round(10)
        harness.jobs.run()
        harness.gateway.arrive()
    assert harness.balancer.execution is not None and harness.balancer.status.episode is not None
    again = successor(harness)
    again.round(10)
    assert again.balancer.status.rejected == harness.balancer.status.rejected
    assert again.balancer.status.episode == harness.balancer.status.episode


def test_all_values_stay_within_their_bounds() -> None:
    """Thousands of PGs, all of them refused with long words, and many episodes."""
    harness = Harness(uneven(3000, 4, 10 * MIB), max_moves_per_round=3000, pg_cooldown=3600)
    for number in range(3):
        harness.gateway.refuses = {f"1.{ps:x}" for ps in range(0, 3000, 1 + number % 2)}
        harness.balancer.execute(f"p{number}", kept(harness, f"p{number}", small_plan(3000, 2)))
        for _ in range(4):
            harness.round(700)
            harness.gateway.arrive()
    sizes = {key: len(value.encode()) for key, value in harness.kv.values.items()}
    assert all(size <= 65536 for size in sizes.values()), sizes
    assert len(harness.balancer.changes().rows()) >= 3000 and harness.balancer.status.history


def test_two_active_mgrs_for_a_tick() -> None:
    """The old one does not know yet that it was replaced; both send."""
    harness = Harness(uneven(), max_moves_per_round=2)
    harness.balancer.execute("p", kept(harness))
    harness.round()
    other = successor(harness)
    other.gateway = harness.gateway
    other = Harness(harness.gateway.cluster, kv=KeyValueStore(harness.kv.values),
                    max_moves_per_round=2)
    for _ in range(4):
        harness.round(1)
        other.round(1)
        harness.gateway.arrive()
    assert harness.balancer.status.rejected == other.balancer.status.rejected == {}
    assert {pgid: harness.gateway.cluster.up[pgid] for pgid in ("1.0", "1.1", "1.2", "1.3")} == (
        dict.fromkeys(("1.0", "1.1", "1.2", "1.3"), [1]))
    assert set(harness.gateway.sent + other.gateway.sent) == {"1.0", "1.1", "1.2", "1.3"}


def test_rejections_are_lifted_when_osds_go_out_or_come_in() -> None:
    harness = Harness(uneven())
    harness.gateway.drops = {"1.0"}
    harness.balancer.execute("p", kept(harness, plan=plan_of([change_of("1.0", [0], [1]),
                                                        change_of("1.1", [0], [1])])))
    harness.round()
    harness.round(60)
    assert set(harness.balancer.status.rejected) == {"1.0"} and "rejected" in harness.kv.values
    harness.gateway.cluster.osd(2, weight=0.5)
    harness.round(60)
    assert harness.balancer.status.rejected == {} and "rejected" not in harness.kv.values


def test_the_plan_that_goes_on_is_known_before_the_cluster_is_observed() -> None:
    """Commands come at any moment: `rm` of the plan stops it, `status` names it."""
    harness = Harness(uneven(), max_moves_per_round=1)
    harness.balancer.execute("p", kept(harness))
    harness.round()
    again = successor(harness, start_delay=0)
    told: List[Any] = []
    again.gateway.before_snapshot = lambda: told.append(
        (again.balancer.plan_name, again.balancer.status.plan_name))
    again.round(1)
    assert told[0] == ("p", "p")


def test_batch_that_was_not_handed_over_starts_no_cooldown_of_a_successor() -> None:
    """The monitor was lost between the look and the sending: nothing was sent."""
    harness = Harness(uneven(), pg_cooldown=3600)
    harness.balancer.execute("p", kept(harness))

    def lose_monitor() -> None:
        harness.gateway.cluster.epoch += 1
        harness.gateway.connected = False
    harness.gateway.before_placement_check = lose_monitor
    harness.round()
    assert harness.gateway.sent == []
    assert not harness.balancer.changes().rows()
    again = successor(harness)
    again.round(10)
    assert again.gateway.sent == ["1.0", "1.1", "1.2", "1.3"]


def test_refused_change_has_no_cooldown_with_a_successor() -> None:
    harness = Harness(uneven(), pg_cooldown=3600)
    harness.gateway.refuses = {"1.0"}
    harness.balancer.execute("p", kept(harness))
    harness.round()
    again = successor(harness)
    again.round(10)
    assert "1.0" not in again.balancer.dispatcher.cooldown.moved
    assert "1.1" in again.balancer.dispatcher.cooldown.moved

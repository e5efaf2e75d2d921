"""A mgr that goes away at any moment, and what the next one makes of what it left behind."""
from __future__ import annotations

from typing import Any, Dict, List

import pytest
from tests.support.fakes import Harness, KeyValueStore
from tests.support.rounds import kept, small_plan, successor, uneven
from tests.support.units import MIB

from equilibrium_mgr.control.history import STOPPED_BY_OFF, SWITCHED_OFF


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
    assert (again.balancer.status.last_execution or {})["outcome"] == "completed"


def test_the_episode_comes_along() -> None:
    harness = Harness(uneven(), active=True, max_moves_per_round=1)
    harness.round()
    harness.jobs.run()
    harness.round(10)
    assert harness.balancer.execution is not None and harness.balancer.status.episode is not None
    again = successor(harness)
    again.round(10)
    assert again.balancer.status.episode == harness.balancer.status.episode


def test_automatic_balancing_goes_on_to_the_end_over_many_failovers() -> None:
    harness = Harness(uneven(), active=True, max_moves_per_round=1, pg_cooldown=3600)
    moved: List[str] = []
    for _ in range(60):
        harness = successor(harness)
        harness.round(30)
        harness.jobs.run()
        harness.round(30)
        moved += harness.gateway.sent
        harness.gateway.arrive()
    assert harness.round(60) == "balanced"
    assert len(moved) == len(set(moved)) == 8
    entry, = harness.balancer.status.history
    assert (entry["moves"], entry["outcome"]) == (8, "balanced")
    assert entry["max_before"]["hdd"] == pytest.approx(0.6)
    assert entry["max_predicted"]["hdd"] == pytest.approx(0.2, abs=1e-4)
    harness.round(60)
    entry, = harness.balancer.status.history
    assert entry["max_after"]["hdd"] == pytest.approx(0.2)
    assert entry["why"].startswith("the fullest OSD of class hdd can be brought from 60.00% to")


def test_what_the_last_mgr_has_on_its_way_is_awaited_before_balanced_is_said() -> None:
    """It was sent so long ago that Ceph shows all of it: nothing is pending with the successor."""
    harness = Harness(uneven(), active=True, pg_cooldown=3600)
    harness.round()
    harness.jobs.run()
    assert harness.round(60) == "moving" and len(harness.gateway.sent) == 8
    harness = successor(harness)
    harness.now += 300.0
    for _ in range(4):
        state = harness.round(60)
        harness.jobs.run()
    assert (state, harness.balancer.reason) == ("moving", "8 PGs are on their way")
    assert not harness.gateway.sent and not harness.balancer.status.history
    harness.gateway.arrive()
    for _ in range(3):
        state = harness.round(600)
        harness.jobs.run()
    assert state == "balanced"
    entry, = harness.balancer.status.history
    assert (entry["moves"], entry["outcome"]) == (8, "balanced")


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
        harness.gateway.arrive()
    assert twice == ["episode"]
    assert {key for key, _ in harness.kv.writes} == {
        "changes/1", "episode", "history"}


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


def test_items_that_another_mgr_has_set_meanwhile_are_no_rejection() -> None:
    harness = Harness(uneven())
    replies = harness.gateway.collect_replies

    def overtaken(handed_over: Any, timeout: float) -> Any:
        found = replies(handed_over, timeout)
        harness.gateway.set_items("1.0", [0], [(0, 2)])
        return found
    gateway: Any = harness.gateway
    gateway.collect_replies = overtaken
    harness.balancer.execute("p", kept(harness))
    harness.round()
    assert harness.balancer.status.rejected == {} and harness.gateway.cluster.up["1.0"] == [2]
    assert harness.balancer.execution is not None and harness.balancer.execution.dropped == [
        ("1.0", "somebody else has set other upmap items")]


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


def test_episode_of_a_mgr_whose_successor_is_off_is_closed() -> None:
    harness = Harness(uneven(), active=True, max_moves_per_round=1)
    harness.round()
    harness.jobs.run()
    harness.round()
    again = successor(harness, active=False)
    assert again.round() == "off"
    assert [e["outcome"] for e in again.balancer.status.history] == [SWITCHED_OFF]


@pytest.mark.parametrize("named", [True, False])
def test_off_closes_the_episode(named: bool) -> None:
    harness = Harness(uneven(), active=not named, max_moves_per_round=1)
    if named:
        harness.balancer.execute("p", kept(harness))
    harness.round()
    harness.jobs.run()
    harness.round()
    harness.options["active"] = False
    harness.balancer.switch_off()
    harness.round()
    entry, = harness.balancer.status.history
    assert entry["outcome"] == STOPPED_BY_OFF and entry["moves"] >= 1
    assert "episode" not in harness.kv.values

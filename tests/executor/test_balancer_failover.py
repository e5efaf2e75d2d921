"""A mgr that goes away at any moment, and what the next one makes of what it left behind."""
from __future__ import annotations

import json
from typing import Any, Dict, List

import pytest
from builders import MIB, change_of, plan_of
from fakes import Desk, KeyValueStore
from rounds import at_rest, kept, small_plan, successor, uneven


class Killed(BaseException):
    """The process is gone: nothing is caught, nothing is cleared up."""


def killed_while_sending(desk: Desk, lands: bool) -> None:
    """The upmaps have gone out (and landed); the map was not read again."""
    answers = desk.gateway.answers
    stored: List[Dict[str, str]] = []

    def die(handed_over: Any, timeout: float) -> Any:
        stored.append(dict(desk.kv.values))
        if lands:
            answers(handed_over, timeout)
        raise Killed()
    gateway: Any = desk.gateway
    gateway.answers = die
    with pytest.raises(Killed):
        desk.round()
    desk.kv.values = stored[0]  # what the dying process might still have written is not there


def test_resume_after_failover() -> None:
    desk = Desk(uneven(), max_moves_per_round=1)
    desk.balancer.execute("p", kept(desk))
    desk.round()
    assert json.loads(desk.kv.values["execution"])["plan"] == "p"
    second = Desk(desk.gateway.cluster, kv=KeyValueStore(desk.kv.values))
    second.gateway.arrive()
    assert second.round() == "moving"
    assert second.gateway.sent == ["1.1", "1.2", "1.3"]
    assert second.balancer.walk is not None and second.balancer.walk.done_moves == 1


@pytest.mark.parametrize("note", ['{"version": 1, "plan": "gone"}', "not json", "[]", "7",
                                  '{"version": 1}'])
def test_note_that_cannot_be_followed_is_forgotten(note: str) -> None:
    desk = Desk(uneven(), kv=KeyValueStore({"execution": note}))
    assert desk.round() == "off"
    assert desk.balancer.walk is None and "execution" not in desk.kv.values


@pytest.mark.parametrize("lands", [True, False])
def test_kill_between_sending_and_looking(lands: bool) -> None:
    desk = Desk(uneven())
    desk.gateway.ratio = 0.27                     # 32 of 120 copies, a margin left: three PGs
    desk.balancer.execute("p", kept(desk))
    killed_while_sending(desk, lands)
    desk.gateway.cluster.acting.clear()           # nothing has peered, Ceph shows nothing
    again = successor(desk, start_delay=0)
    again.round(1)
    assert again.gateway.sent == ([] if lands else ["1.0", "1.1", "1.2"])
    for _ in range(4):
        again.gateway.arrive()
        again.round(60)
    assert sorted(again.gateway.sent) == (["1.3"] if lands else ["1.0", "1.1", "1.2", "1.3"])
    last = again.balancer.last_walk or {}
    assert last["done_moves"] == (3 if lands else 0) and last["outcome"] == "through"


def test_what_was_sent_long_ago_has_peered() -> None:
    desk = Desk(uneven())
    desk.gateway.ratio = 0.27
    desk.balancer.execute("p", kept(desk))
    killed_while_sending(desk, True)
    desk.gateway.cluster.acting.clear()
    again = successor(desk, start_delay=0)
    assert again.round(300) == "moving"


def test_cooldown_rejections_history_and_episode_come_along() -> None:
    desk = Desk(uneven(), pg_cooldown=3600, active=True, max_moves_per_round=1)
    desk.gateway.drops = {"1.0"}
    for _ in range(3):
        desk.round(10)
        desk.jobs.run()
        desk.gateway.arrive()
    assert desk.balancer.walk is not None and desk.balancer.episode is not None
    again = successor(desk)
    again.round(10)
    assert again.balancer.rejected == desk.balancer.rejected
    assert again.balancer.episode == desk.balancer.episode


def test_automatic_balancing_goes_on_to_the_end_over_many_failovers() -> None:
    desk = Desk(uneven(), active=True, max_moves_per_round=1, pg_cooldown=3600)
    moved: List[str] = []
    for _ in range(60):
        desk = successor(desk)
        desk.round(30)
        desk.jobs.run()
        desk.round(30)
        moved += desk.gateway.sent
        desk.gateway.arrive()
    assert desk.round(60) == "balanced"
    assert len(moved) == len(set(moved)) == 8
    entry, = desk.balancer.history
    assert (entry["moves"], entry["outcome"]) == (8, "balanced")
    assert entry["max_before"]["hdd"] == pytest.approx(0.6)
    assert entry["max_after"]["hdd"] == pytest.approx(0.2)
    assert entry["why"].startswith("the fullest OSD of class hdd can be brought from 0.6000 to")


def test_named_plan_has_its_entry_over_a_failover() -> None:
    desk = Desk(uneven(), max_moves_per_round=1)
    desk.balancer.execute("p", kept(desk))
    desk.round()
    again = successor(desk)
    for _ in range(6):
        again.gateway.arrive()
        again.round(60)
    entry, = again.balancer.history
    assert (entry["plan"], entry["moves"], entry["plans"]) == ("p", 4, 1)
    assert entry["outcome"] == "through"
    assert not {"execution", "episode"} & set(again.kv.values)


def test_episode_of_a_mgr_whose_successor_is_off_is_closed() -> None:
    desk = Desk(uneven(), active=True, max_moves_per_round=1)
    desk.round()
    desk.jobs.run()
    desk.round()
    again = successor(desk, active=False)
    assert again.round() == "off"
    assert [e["outcome"] for e in again.balancer.history] == ["switched off"]


@pytest.mark.parametrize("named", [True, False])
def test_off_closes_the_episode(named: bool) -> None:
    desk = Desk(uneven(), active=not named, max_moves_per_round=1)
    if named:
        desk.balancer.execute("p", kept(desk))
    desk.round()
    desk.jobs.run()
    desk.round()
    desk.options["active"] = False
    desk.balancer.switch_off()
    desk.round()
    entry, = desk.balancer.history
    assert entry["outcome"] == "stopped by 'ceph equilibrium off'" and entry["moves"] >= 1
    assert "episode" not in desk.kv.values


def test_every_key_is_written_once_a_round() -> None:
    desk = Desk(uneven(), active=True, max_moves_per_round=2)
    desk.gateway.drops = {"1.0"}
    for _ in range(12):
        before = len(desk.kv.writes)
        desk.round(60)
        keys = [key for key, _ in desk.kv.writes[before:]]
        assert len(keys) == len(set(keys))
        desk.jobs.run()
        desk.gateway.arrive()
    assert {key for key, _ in desk.kv.writes} == {"cooldown", "episode", "history", "rejected"}


def test_all_values_stay_within_their_bounds() -> None:
    """Thousands of PGs, all of them refused with long words, and many episodes."""
    desk = Desk(uneven(3000, 4, 10 * MIB), max_moves_per_round=3000, pg_cooldown=3600)
    for number in range(3):
        desk.gateway.refuses = {"1.%x" % ps for ps in range(0, 3000, 1 + number % 2)}
        desk.balancer.execute("p%d" % number, kept(desk, "p%d" % number, small_plan(3000, 2)))
        for _ in range(4):
            desk.round(700)
            desk.gateway.arrive()
    sizes = {key: len(value.encode()) for key, value in desk.kv.values.items()}
    assert all(size <= 65536 for size in sizes.values()), sizes
    assert sizes["cooldown"] > 10000 and desk.balancer.history


def test_two_active_mgrs_for_a_tick() -> None:
    """The old one does not know yet that it was replaced; both send."""
    desk = Desk(uneven(), max_moves_per_round=2)
    desk.balancer.execute("p", kept(desk))
    desk.round()
    other = successor(desk)
    other.gateway = desk.gateway
    other = Desk(desk.gateway.cluster, kv=KeyValueStore(desk.kv.values), max_moves_per_round=2)
    for _ in range(4):
        desk.round(1)
        other.round(1)
        desk.gateway.arrive()
    assert desk.balancer.rejected == other.balancer.rejected == {}
    assert {pgid: desk.gateway.cluster.up[pgid] for pgid in ("1.0", "1.1", "1.2", "1.3")} == (
        dict.fromkeys(("1.0", "1.1", "1.2", "1.3"), [1]))
    assert set(desk.gateway.sent + other.gateway.sent) == {"1.0", "1.1", "1.2", "1.3"}


def test_items_that_another_mgr_has_set_meanwhile_are_no_rejection() -> None:
    desk = Desk(uneven())
    answers = desk.gateway.answers

    def overtaken(handed_over: Any, timeout: float) -> Any:
        found = answers(handed_over, timeout)
        desk.gateway.set_items("1.0", [0], [(0, 2)])
        return found
    gateway: Any = desk.gateway
    gateway.answers = overtaken
    desk.balancer.execute("p", kept(desk))
    desk.round()
    assert desk.balancer.rejected == {} and desk.gateway.cluster.up["1.0"] == [2]
    assert desk.balancer.walk is not None and desk.balancer.walk.dropped == [
        ("1.0", "somebody else has set other upmap items")]


def test_rejections_are_lifted_when_osds_go_out_or_come_in() -> None:
    desk = Desk(uneven())
    desk.gateway.drops = {"1.0"}
    desk.balancer.execute("p", kept(desk, plan=plan_of([change_of("1.0", [0], [1]),
                                                        change_of("1.1", [0], [1])])))
    desk.round()
    desk.round(60)
    assert set(desk.balancer.rejected) == {"1.0"} and "rejected" in desk.kv.values
    desk.gateway.cluster.osd(2, weight=0.5)
    desk.round(60)
    assert desk.balancer.rejected == {} and "rejected" not in desk.kv.values


def test_stored_values_of_the_future_do_no_harm() -> None:
    future = json.dumps({"version": 99, "plan": "p", "moved": {"1.0": 1e12}, "entries": [{}]})
    desk = Desk(uneven(), kv=KeyValueStore(dict.fromkeys(
        ("execution", "episode", "rejected", "history", "cooldown"), future)))
    assert desk.round() == "off" and desk.balancer.history == []
    desk.balancer.execute("p", kept(desk))
    assert desk.round() == "moving"


def test_rest_survives_a_failover_without_a_move() -> None:
    desk = at_rest(uneven())
    again = successor(desk)
    for _ in range(5):
        again.round(60)
        again.jobs.run()
    assert again.balancer.state == "balanced" and again.gateway.sent == []

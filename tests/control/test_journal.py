"""What is kept outlives the mgr, stays within its bounds, and is read with tolerance."""
from __future__ import annotations

import json
import logging
from typing import Any, Dict, List, Optional

import pytest
from tests.support.clusters.unit_cluster import Cluster, change_of, hosts
from tests.support.fakes import KeyValueStore

from equilibrium_mgr.control.journal import (
    MOST_ENTRIES, Episode, Journal, episode_from_dict, with_entry)
from equilibrium_mgr.runtime.kv_store import EPISODE, HISTORY, BufferedKvStore

LOG = logging.getLogger("test")


def memory(**values: str) -> BufferedKvStore:
    return BufferedKvStore(KeyValueStore(dict(values)), LOG)


def test_value_that_the_monitor_would_lose_is_not_sent() -> None:
    kv = KeyValueStore({"history": '{"version": 1}'})
    kept = BufferedKvStore(kv, LOG)
    kept.put("history", {"entries": ["x" * 70000]})
    kept.put("episode", {"plan": ""})
    kept.flush()
    assert [key for key, _ in kv.writes] == ["episode"]


def test_write_that_fails_is_made_up_for() -> None:
    kv = KeyValueStore()
    kept = BufferedKvStore(kv, LOG)

    def refuse(key: str) -> None:
        raise RuntimeError(key)
    kv.before_write = refuse
    kept.put("episode", {"plan": ""})
    with pytest.raises(RuntimeError):
        kept.flush()
    kv.before_write = lambda key: None
    kept.flush()
    assert "episode" in kv.values


DAMAGED = ["", "not json", '{"version": 1, "entr', "[]", "7", "null", '{"version": 99}',
           '{"version": "x"}', '{"version": [1]}', '{"entries": []}', "[" * 100000]


@pytest.mark.parametrize("stored", DAMAGED)
def test_what_cannot_be_read_counts_as_not_there(stored: str) -> None:
    assert memory(history=stored).read("history") is None


PARTS: List[Any] = [
    {}, {"plan": 5, "entries": 7, "why": [], "packed": 3},
    {"entries": ["x", 1, {}], "packed": "x"},
    {"plan": "p", "max_before": []}]


@pytest.mark.parametrize("stored", DAMAGED + [
    json.dumps({"version": 1, **part}) for part in PARTS])
def test_a_logbook_of_rubbish(stored: str) -> None:
    kv = KeyValueStore(dict.fromkeys(
        ("execution", EPISODE, HISTORY, "changes/1"), stored))
    book = Journal(kv, LOG)
    recalled = book.recover(1000.0)
    assert recalled[1] == [] and book.episode is None
    assert recalled[0] in (None, "p")
    book.begin_plan("", "a test", 1000.0, None)
    book.end("balanced", 1010.0, None)
    book.write()
    assert json.loads(kv.values["history"])["entries"][-1]["why"] == "a test"


def test_history_is_bounded() -> None:
    past: List[Dict[str, Any]] = []
    for number in range(3 * MOST_ENTRIES):
        past = with_entry(past, Episode("", "x" * 300, float(number), {"hdd": 0.5}, 1, 2, 3).entry(
            "balanced" * 100, 1.0, None))
    assert 0 < len(past) <= MOST_ENTRIES
    assert len(json.dumps(past)) < 65000
    assert past[-1]["started_at"] == 3.0 * MOST_ENTRIES - 1


def test_episode_comes_back() -> None:
    episode = Episode("p", "a test", 5.0, {"hdd": 0.9}, 1, 2, 3, 0.5)
    assert episode_from_dict(json.loads(json.dumps(episode._asdict()))) == episode


@pytest.mark.parametrize("damage", [{"moves": "x"}, {"max_before": 5}, {"started_at": None},
                                    {"max_before": {"hdd": "full"}}])
def test_damaged_episode(damage: Dict[str, Any]) -> None:
    assert episode_from_dict(dict(Episode("p", "w", 5.0, {})._asdict(), **damage)) is None


def book_of(kv: Optional[KeyValueStore] = None) -> Journal:
    book = Journal(kv or KeyValueStore(), LOG)
    book.recover(1000.0)
    return book


def test_episode_whose_plan_is_no_longer_executed_is_closed() -> None:
    kv = KeyValueStore()
    book = book_of(kv)
    book.begin_plan("p", "why", 1000.0, None)
    book.write()                                  # nothing says that p is still wanted
    again = book_of(KeyValueStore(kv.values))
    assert again.episode is None
    assert [e["outcome"] for e in again.history] == [
        "dropped: its execution had ended with the last mgr"]


def test_what_was_sent_is_known_for_longer_than_its_cooldown() -> None:
    kv, turns = KeyValueStore(), 4 * 3600.0
    book, cluster = book_of(kv), Cluster(hosts(3)).pool(1, size=2)
    for number, size in enumerate((10, 10, 0, 10)):
        cluster.pg(f"1.{number}", [0, 1], num_bytes=size, objects=size)
    before = cluster.snapshot()
    for number, at in enumerate((1.0, 7.0, 8.0, 8.0)):
        change = change_of(f"1.{number}", (0, 1), (0, 1) if number == 2 else (0, 2))
        book.log_changes("p", "balance", [change], before, at * turns)
    found = Journal(KeyValueStore(kv.values), LOG).recover(8.5 * turns, cooldown=60.0)[1]
    assert [(row.pgid, row.at, row.epoch, row.shards) for row in found] == [
        ("1.1", 7.0 * turns, before.epoch, 1), ("1.2", 8.0 * turns, before.epoch, 0),
        ("1.3", 8.0 * turns, before.epoch, 1)]
    longer = Journal(KeyValueStore(kv.values), LOG).recover(8.5 * turns, cooldown=8.0 * turns)[1]
    assert [row.pgid for row in longer] == ["1.0", "1.1", "1.2", "1.3"]


def test_named_plan_begins_an_episode_of_its_own() -> None:
    book = book_of()
    book.begin_plan("", "why", 1000.0, None)
    book.begin_plan("p", "'ceph equilibrium execute'", 1100.0, None)
    assert [e["outcome"] for e in book.history] == ["superseded: by plan 'p'"]
    assert book.episode is not None and book.episode.plan == "p"


def test_automatic_plans_follow_one_another_in_one_episode() -> None:
    book = book_of()
    for moves in (3, 4):
        book.begin_plan("", "osd.0 is above nearfull", 1000.0, None)
        book.record_sent(moves, 10 * moves)
    book.end("balanced", 1600.0, None)
    entry, = book.history
    assert (entry["plans"], entry["moves"], entry["bytes"]) == (2, 7, 70)
    assert (entry["plan"], entry["outcome"]) == ("automatic", "balanced")


@pytest.mark.parametrize("running", [None, "p"])
def test_a_plan_that_was_refused_is_not_what_a_successor_goes_on_with(
        running: Optional[str]) -> None:
    kv = KeyValueStore()
    journal = Journal(kv, LOG)
    if running:
        assert journal.begin_execution(running, 1000.0, lambda: True)
    stored = dict(kv.values)
    assert not journal.begin_execution("q", 2000.0, lambda: False)
    assert {key: text for key, text in kv.values.items() if text} == stored

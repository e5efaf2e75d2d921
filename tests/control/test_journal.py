"""The journal outlives the mgr, keeps within its bounds, and tolerates damage; an episode ends
once, with a code."""
from __future__ import annotations

import json
import logging
from typing import Any, Dict, List, Optional

import pytest
from tests.support.fakes import KeyValueStore
from tests.support.tables import rows

from equilibrium_mgr.control.journal import (
    MOST_ENTRIES, Episode, Journal, outcome_code, with_entry)
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


def test_history_is_bounded() -> None:
    past: List[Dict[str, Any]] = []
    for number in range(3 * MOST_ENTRIES):
        past = with_entry(past, Episode("", "x" * 300, float(number), {"hdd": 0.5}, 1, 2, 3).entry(
            "balanced" * 100, 1.0, None))
    assert 0 < len(past) <= MOST_ENTRIES
    assert len(json.dumps(past)) < 65000
    assert past[-1]["started_at"] == 3.0 * MOST_ENTRIES - 1


def book_of(kv: Optional[KeyValueStore] = None) -> Journal:
    book = Journal(kv or KeyValueStore(), LOG)
    book.recover(1000.0)
    return book


def outcomes(journal: Journal) -> List[str]:
    return [entry["outcome"] for entry in journal.history]


def test_episode_whose_plan_is_no_longer_executed_is_closed() -> None:
    kv = KeyValueStore()
    book = book_of(kv)
    book.begin_plan("p", "why", 1000.0, None)
    book.write()                                  # nothing says that p is still wanted
    again = book_of(KeyValueStore(kv.values))
    assert again.episode is None
    assert outcomes(again) == ["dropped: its execution had ended with the last mgr"]


def test_named_plan_begins_an_episode_of_its_own() -> None:
    book = book_of()
    book.begin_plan("", "why", 1000.0, None)
    book.begin_plan("p", "'ceph equilibrium execute'", 1100.0, None)
    assert outcomes(book) == ["superseded: by plan 'p'"]
    assert book.episode is not None
    assert book.episode.plan == "p"


def test_automatic_plans_follow_one_another_in_one_episode() -> None:
    book = book_of()
    for moves in (3, 4):
        book.begin_plan("", "osd.0 is above nearfull", 1000.0, None)
        book.record_sent(moves, 10 * moves)
    book.end("balanced", 1600.0, None)
    entry, = book.history
    assert (entry["moves"], entry["bytes"]) == (7, 70)
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


@pytest.mark.parametrize("code, outcome", rows("""
completed   completed
completed   completed: all but 2 PGs
completed   balanced
stuck       stuck
stopped     stopped: by 'ceph equilibrium off'
superseded  superseded: by plan p
dropped     dropped: its plan is lost
dropped
dropped     garbled
"""))
def test_each_outcome_has_a_code(code: str, outcome: str) -> None:
    assert outcome_code(outcome) == code


class _Killed(BaseException):
    """The mgr dies."""


def test_a_mgr_killed_while_it_ends_an_episode_leaves_one_entry() -> None:
    kv = KeyValueStore()
    journal = book_of(kv)
    journal.begin_plan("", "a test", 1000.0, None)
    journal.record_sent(3, 700)
    journal.write()
    journal.end("balanced", 1010.0, None)

    def dies(key: str) -> None:
        if key == EPISODE:
            raise _Killed
    kv.before_write = dies
    with pytest.raises(_Killed):
        journal.write()
    assert EPISODE in kv.values
    assert HISTORY in kv.values
    kv.before_write = lambda key: None
    after = book_of(kv)
    assert after.episode is None
    after.write()
    assert [entry["moves"] for entry in after.history] == [3]
    assert EPISODE not in kv.values
    assert after.history[0]["outcome"] == "balanced"
    after.begin_plan("", "the next", 1100.0, None)
    after.end("balanced", 1110.0, None)
    assert [entry["started_at"] for entry in after.history] == [1000.0, 1100.0]

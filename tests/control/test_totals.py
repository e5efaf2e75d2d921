"""Totals outlive every mgr, and what has been shown of them never falls."""
from __future__ import annotations

import json
import logging

import pytest
from tests.support.fakes import KeyValueStore

from equilibrium_mgr.control.history import OUTCOMES, Totals, outcome_code, totals_from_dict
from equilibrium_mgr.control.journal import Journal
from equilibrium_mgr.runtime.kv_store import EPISODE, HISTORY

LOG = logging.getLogger("test")


def successor(kv: KeyValueStore) -> Journal:
    journal = Journal(kv, LOG)
    journal.recover(1000.0)
    return journal


def test_what_is_not_stored_is_not_shown() -> None:
    """Else it would fall where the mgr is killed."""
    kv = KeyValueStore()
    journal = successor(kv)
    journal.record_sent(3, 700)
    assert journal.totals == Totals() == successor(kv).totals

    def refuse(key: str) -> None:
        raise RuntimeError(key)
    kv.before_write = refuse
    with pytest.raises(RuntimeError):
        journal.write()
    assert journal.totals == Totals() == successor(kv).totals
    kv.before_write = lambda key: None
    journal.write()
    assert journal.totals == Totals(3, 700) == successor(kv).totals


@pytest.mark.parametrize("stored", ["", "[]", "not json",
                                    '{"version": 1, "moves": "x", "episodes": 7}',
                                    '{"version": 1, "moves": -5, "bytes": null, "episodes":'
                                    ' {"other": 3}}'])
def test_totals_of_rubbish_count_from_zero(stored: str) -> None:
    assert successor(KeyValueStore({"totals": stored})).totals == Totals()


def test_totals_are_read_as_they_were_written() -> None:
    totals = Totals(7, 1 << 60, dict.fromkeys(OUTCOMES, 3))
    assert totals_from_dict(json.loads(json.dumps(totals.to_dict()))) == totals


@pytest.mark.parametrize("outcome, code", [
    ("completed", "completed"), ("completed: all but 2 PGs", "completed"),
    ("balanced", "completed"), ("stuck", "stuck"),
    ("stopped: by 'ceph equilibrium off'", "stopped"), ("superseded: by plan p", "superseded"),
    ("dropped: its plan is lost", "dropped"), ("", "dropped"), ("garbled", "dropped")])
def test_each_outcome_has_a_code(outcome: str, code: str) -> None:
    assert outcome_code(outcome) == code


class _Killed(BaseException):
    """The mgr dies."""


def test_a_mgr_killed_while_it_ends_an_episode_leaves_one_entry() -> None:
    kv = KeyValueStore()
    journal = successor(kv)
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
    assert EPISODE in kv.values and HISTORY in kv.values
    kv.before_write = lambda key: None
    after = successor(kv)
    assert after.episode is None
    after.write()
    assert [entry["moves"] for entry in after.history.entries] == [3]
    assert EPISODE not in kv.values and after.history.entries[0]["outcome"] == "balanced"
    after.begin_plan("", "the next", 1100.0, None)
    after.end("balanced", 1110.0, None)
    assert [entry["started_at"] for entry in after.history.entries] == [1000.0, 1100.0]

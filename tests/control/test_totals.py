"""How episodes end: by a code, and once."""
from __future__ import annotations

import logging

import pytest
from tests.support.fakes import KeyValueStore

from equilibrium_mgr.control.journal import Journal, outcome_code
from equilibrium_mgr.runtime.kv_store import EPISODE, HISTORY

LOG = logging.getLogger("test")


def successor(kv: KeyValueStore) -> Journal:
    journal = Journal(kv, LOG)
    journal.recover(1000.0)
    return journal


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
    assert EPISODE in kv.values
    assert HISTORY in kv.values
    kv.before_write = lambda key: None
    after = successor(kv)
    assert after.episode is None
    after.write()
    assert [entry["moves"] for entry in after.history] == [3]
    assert EPISODE not in kv.values
    assert after.history[0]["outcome"] == "balanced"
    after.begin_plan("", "the next", 1100.0, None)
    after.end("balanced", 1110.0, None)
    assert [entry["started_at"] for entry in after.history] == [1000.0, 1100.0]

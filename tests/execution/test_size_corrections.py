"""What is kept of what moves have shown about sizes."""
from __future__ import annotations

import json
from typing import Any

import pytest

from equilibrium_mgr.execution.size_check import Misprediction, SizeCorrections, sentence
from tests.support.units import MIB

DAY = 86400.0
FOUND = Misprediction(pool=7, osd=3, predicted_bytes=9 * MIB, measured_bytes=264 * MIB,
                      found_at=1000.0)


def corrections(*found: Misprediction, per_object: float = 100.0) -> SizeCorrections:
    made = SizeCorrections()
    made.add({one: per_object for one in found})
    return made


def test_a_pool_is_stopped_and_the_reason_says_until_when() -> None:
    reason = sentence(FOUND, "idx")
    assert "pool 'idx' took 264 MiB on osd.3 where 9 MiB were predicted" in reason
    assert "a few of its shards go again from 1970-01-01" in reason


def test_osds_that_show_the_same_one_after_the_other_count_once() -> None:
    made = corrections(FOUND)
    made.add({FOUND._replace(osd=4): 90.0})
    assert made.bytes_per_object == {7: 100.0}


def test_an_operator_lets_pools_go_on_with_the_measured_size() -> None:
    made = corrections(FOUND)
    made.resume()
    assert made.stopped == {} and made.bytes_per_object == {7: 100.0}


def test_a_plan_lets_no_pool_go_on_but_its_own() -> None:
    made = corrections(FOUND, FOUND._replace(pool=8))
    made.resume(frozenset({8, 9}))
    assert set(made.stopped) == {7} and set(made.bytes_per_object) == {7, 8}


def test_another_mgr_takes_it_over() -> None:
    made, again = corrections(FOUND), SizeCorrections()
    again.restore(json.loads(json.dumps(made.to_dict())))
    assert again.stopped == made.stopped
    assert again.bytes_per_object == made.bytes_per_object
    assert again.measured_at == 1000.0


@pytest.mark.parametrize("dump", [
    {}, {"stopped": 5, "bytes_per_object": []}, {"stopped": [[1, 2], None, "x", [1, 2, 3, 4, "y"]]},
    {"bytes_per_object": {"x": 1, "1": "nan", "2": None, "3": -5, "4": float("inf")}}])
def test_what_cannot_be_understood_is_left_out(dump: Any) -> None:
    made = SizeCorrections()
    made.restore(dump)
    assert made.stopped == {} and made.bytes_per_object == {}


def test_what_was_measured_is_believed_for_a_week() -> None:
    made = corrections(FOUND)
    made.resume()
    made._prune(frozenset((7,)), FOUND.found_at + 6 * DAY)
    assert made.bytes_per_object == {7: 100.0}
    made._prune(frozenset((7,)), FOUND.found_at + 8 * DAY)
    assert made.bytes_per_object == {}


def test_a_stop_ends_by_itself_with_a_few_shards_first() -> None:
    """An hour, an hour of a few shards, then all; twice as long if they take too much again."""
    made, hour = corrections(FOUND), 3600.0

    def may_go(hours: float) -> Any:
        now = FOUND.found_at + hours * hour
        made._prune(frozenset((7,)), now)
        return made.trial_shards(7, now) if 7 in made.stopped else "all"
    assert [may_go(0.9), may_go(1.1), may_go(1.9)] == [0, 4, 4]
    made.add({FOUND._replace(found_at=FOUND.found_at + 1.9 * hour): 100.0})
    assert [may_go(3.8), may_go(4.0), may_go(5.8), may_go(6.0)] == [0, 4, 4, "all"]
    assert made.bytes_per_object == {7: 100.0}

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


def test_a_pool_is_stopped_and_the_reason_says_what_helps() -> None:
    reason = sentence(FOUND, "idx")
    assert "pool 'idx' took 264 MiB on osd.3 where 9 MiB were predicted" in reason
    assert "'ceph equilibrium on'" in reason


def test_osds_that_show_the_same_one_after_the_other_count_once() -> None:
    made = corrections(FOUND)
    made.add({FOUND._replace(osd=4): 90.0})
    assert made.bytes_per_object == {7: 100.0}


def test_an_operator_lets_pools_go_on_with_the_measured_size() -> None:
    made = corrections(FOUND)
    made.resume(1000.0)
    assert made.stopped == {} and made.bytes_per_object == {7: 100.0}


def test_a_plan_lets_no_pool_go_on_but_its_own() -> None:
    made = corrections(FOUND, FOUND._replace(pool=8))
    made.resume(1000.0, frozenset({8, 9}))
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
    made.resume(FOUND.found_at)
    made._prune(frozenset((7,)), FOUND.found_at + 6 * DAY)
    assert made.bytes_per_object == {7: 100.0}
    made._prune(frozenset((7,)), FOUND.found_at + 8 * DAY)
    assert made.bytes_per_object == {}


def test_a_stopped_pool_goes_on_with_its_size_however_late() -> None:
    """`on` says so, and the operator may be on holiday for more than a week."""
    made = corrections(FOUND)
    made._prune(frozenset({7}), FOUND.found_at + 20 * DAY)
    made.resume(FOUND.found_at + 20 * DAY)
    made._prune(frozenset({7}), FOUND.found_at + 21 * DAY)
    assert made.bytes_per_object == {7: 100.0}
    made._prune(frozenset({7}), FOUND.found_at + 30 * DAY)
    assert made.bytes_per_object == {}

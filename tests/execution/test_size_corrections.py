"""What is kept of what moves have shown about sizes."""
from __future__ import annotations

from typing import Any


from equilibrium_mgr.execution.size_check import Misprediction, SizeCorrections
from tests.support.units import MIB

DAY = 86400.0
FOUND = Misprediction(pool=7, osd=3, predicted_bytes=9 * MIB, measured_bytes=264 * MIB,
                      found_at=1000.0)


def corrections(*found: Misprediction, per_object: float = 100.0) -> SizeCorrections:
    made = SizeCorrections()
    made.add({one: per_object for one in found})
    return made


def test_osds_that_show_the_same_one_after_the_other_count_once() -> None:
    made = corrections(FOUND)
    made.add({FOUND._replace(osd=4): 90.0})
    assert made.bytes_per_object == {7: 100.0}


def test_a_plan_lets_no_pool_go_on_but_its_own() -> None:
    made = corrections(FOUND, FOUND._replace(pool=8))
    made.resume(frozenset({8, 9}))
    assert set(made.stopped) == {7}
    assert set(made.bytes_per_object) == {7, 8}


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

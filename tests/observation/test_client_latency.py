"""The latency of clients at OSDs of moves: the last minutes beside the quiet before."""
from __future__ import annotations

from typing import Collection, Dict, List, Optional, Tuple

import pytest

from equilibrium_mgr.observation.client_latency import ClientLatency, LatencyWatch

MS = 10 ** 6


class Osds:
    """Counters of OSDs, a watch, and the questions that the watch has asked."""

    def __init__(self) -> None:
        self.counters: Dict[int, Tuple[int, int]] = {}
        self.asked: List[Collection[int]] = []
        self._watch = LatencyWatch()

    def serve(self, osd: int, ops: int, milliseconds: float) -> None:
        taken, count = self.counters.get(osd, (0, 0))
        self.counters[osd] = taken + int(ops * milliseconds * MS), count + ops

    def read(self, osds: Collection[int]) -> Dict[int, Tuple[int, int]]:
        self.asked.append(osds)
        return {osd: self.counters[osd] for osd in osds if osd in self.counters}

    def observe(self, now: float, *moving: int) -> Optional[ClientLatency]:
        return self._watch.observe(now, moving, self.read)

    def told(self, now: float, *moving: int) -> str:
        """As `2 OSDs: 25 after 5.5` in milliseconds."""
        found = self.observe(now, *moving)
        if found is None:
            return "nothing"
        recent = _milliseconds(found.recent_seconds)
        before = _milliseconds(found.before_seconds)
        return f"{found.osds} OSDs: {recent} after {before}"


def _milliseconds(seconds: Optional[float]) -> str:
    return "?" if seconds is None else f"{1000 * seconds:g}"


@pytest.fixture
def osds() -> Osds:
    """osd.1 has served a thousand ops of 5 ms."""
    made = Osds()
    made.serve(1, 1000, 5)
    return made


def test_the_last_minutes_stand_beside_the_quiet_before(osds: Osds) -> None:
    osds.serve(2, 1000, 7)
    assert osds.told(0) == "nothing"
    assert osds.asked == [set()]
    assert osds.told(60, 1, 2) == "2 OSDs: ? after ?"
    for now in range(120, 420, 60):   # weighed by the ops of now
        osds.serve(1, 30, 20)
        osds.serve(2, 10, 40)
        assert osds.told(now, 1, 2) == "2 OSDs: 25 after 5.5"
    for now in range(420, 781, 60):   # what was before the last minutes is forgotten
        osds.serve(1, 10, 10)
        found = osds.told(now, 1, 2)
    assert found == "2 OSDs: 10 after 5"
    osds.serve(1, 10, 500)    # its last move arrives, and its quiet begins
    assert osds.told(840, 2) == "1 OSDs: ? after ?"
    osds.serve(1, 100, 3)
    assert osds.told(7200, 1, 2) == "2 OSDs: ? after ?"
    osds.serve(1, 10, 6)
    assert osds.told(7260, 1, 2) == "2 OSDs: 6 after 3"


def test_an_osd_that_started_anew_counts_from_there(osds: Osds) -> None:
    osds.observe(0, 1)
    osds.counters = {}
    osds.serve(1, 100, 8)
    assert osds.told(60, 1) == "1 OSDs: 8 after 5"


@pytest.mark.parametrize("counters, told", [
    ({}, "nothing"), ({1: (0, 0)}, "1 OSDs: ? after ?")])
def test_without_ops_there_is_no_figure(
        counters: Dict[int, Tuple[int, int]], told: str, osds: Osds) -> None:
    osds.counters = counters
    osds.observe(0, 1, 2)
    assert osds.told(60, 1, 2) == told


def test_a_clock_set_back_forgets_and_fails_nothing(osds: Osds) -> None:
    osds.observe(5000, 1)
    osds.serve(1, 10, 9)
    assert osds.told(100, 1) == "1 OSDs: ? after ?"
    osds.serve(1, 10, 7)
    assert osds.told(160, 1) == "1 OSDs: 7 after 5"


def test_of_many_osds_the_same_few_are_asked(osds: Osds) -> None:
    for osd in range(1000):
        osds.serve(osd, 1, 1)
    osds.observe(0, *range(500, 1000))
    found = osds.observe(60, *range(1000))
    assert found is not None
    assert found.osds == 50
    assert osds.asked[0] == osds.asked[1] == set(range(500, 550))


def test_a_pause_between_two_moves_is_not_what_was_before_them(osds: Osds) -> None:
    osds.observe(0, 1)
    osds.serve(1, 10, 50)
    osds.observe(60)
    osds.serve(1, 10, 40)
    osds.observe(120, 1)
    osds.serve(1, 10, 30)
    assert osds.told(180, 1) == "1 OSDs: 40 after 5"

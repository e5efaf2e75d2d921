"""The latency of clients at OSDs of moves: the last minutes beside the quiet before."""
from __future__ import annotations

from typing import Collection, Dict, List, Optional, Tuple

import pytest

from equilibrium_mgr.observation.client_latency import ClientLatency, LatencyWatch

MS = 10 ** 6


class Osds:
    """Counters of OSDs, and what was asked for."""

    def __init__(self) -> None:
        self.counters: Dict[int, Tuple[int, int]] = {}
        self.asked: List[Collection[int]] = []

    def serve(self, osd: int, ops: int, milliseconds: float) -> None:
        taken, count = self.counters.get(osd, (0, 0))
        self.counters[osd] = taken + int(ops * milliseconds * MS), count + ops

    def read(self, osds: Collection[int]) -> Dict[int, Tuple[int, int]]:
        self.asked.append(osds)
        return {osd: self.counters[osd] for osd in osds if osd in self.counters}


def told(found: Optional[ClientLatency]) -> Optional[Tuple[int, Optional[float], Optional[float]]]:
    """(OSDs, recent and before in ms)."""
    if found is None:
        return None
    recent, before = [None if seconds is None else round(1000 * seconds, 6)
                      for seconds in (found.recent, found.before)]
    return found.osds, recent, before


def test_the_last_minutes_stand_beside_the_quiet_before() -> None:
    watch, osds = LatencyWatch(), Osds()
    osds.serve(1, 1000, 5)
    osds.serve(2, 1000, 7)
    assert told(watch.observe(0, [], osds.read)) is None and osds.asked == [set()]
    assert told(watch.observe(60, [1, 2], osds.read)) == (2, None, None)
    for now in range(120, 420, 60):   # weighed by the ops of now
        osds.serve(1, 30, 20)
        osds.serve(2, 10, 40)
        assert told(watch.observe(now, [1, 2], osds.read)) == (2, 25, 5.5)
    for now in range(420, 781, 60):   # what was before the last minutes is forgotten
        osds.serve(1, 10, 10)
        found = watch.observe(now, [1, 2], osds.read)
    assert told(found) == (2, 10, 5)
    osds.serve(1, 10, 500)    # its last move arrives, and its quiet begins
    assert told(watch.observe(840, [2], osds.read)) == (1, None, None)
    osds.serve(1, 100, 3)
    assert told(watch.observe(7200, [1, 2], osds.read)) == (2, None, None)
    osds.serve(1, 10, 6)
    assert told(watch.observe(7260, [1, 2], osds.read)) == (2, 6, 3)


def test_an_osd_that_started_anew_counts_from_there() -> None:
    watch, osds = LatencyWatch(), Osds()
    osds.serve(1, 1000, 5)
    watch.observe(0, [1], osds.read)
    osds.counters[1] = 100 * 8 * MS, 100
    assert told(watch.observe(60, [1], osds.read)) == (1, 8, 5)


@pytest.mark.parametrize("counters", [{}, {1: (0, 0)}])
def test_without_ops_there_is_no_figure(counters: Dict[int, Tuple[int, int]]) -> None:
    watch, osds = LatencyWatch(), Osds()
    osds.counters = counters
    for now in (0, 60):
        found = watch.observe(now, [1, 2], osds.read)
    assert found is None or found[1:] == (None, None)


def test_a_clock_set_back_forgets_and_fails_nothing() -> None:
    watch, osds = LatencyWatch(), Osds()
    osds.serve(1, 10, 5)
    watch.observe(5000, [1], osds.read)
    osds.serve(1, 10, 9)
    assert told(watch.observe(100, [1], osds.read)) == (1, None, None)
    osds.serve(1, 10, 7)
    assert told(watch.observe(160, [1], osds.read)) == (1, 7, 5)


def test_of_many_osds_the_same_few_are_asked() -> None:
    watch, osds = LatencyWatch(), Osds()
    for osd in range(1000):
        osds.serve(osd, 1, 1)
    watch.observe(0, range(500, 1000), osds.read)
    found = watch.observe(60, range(1000), osds.read)
    assert found is not None and found.osds == 50
    assert osds.asked[0] == osds.asked[1] == set(range(500, 550))


def test_a_pause_between_two_moves_is_not_what_was_before_them() -> None:
    watch, osds = LatencyWatch(), Osds()
    osds.serve(1, 1000, 5)
    watch.observe(0, [1], osds.read)
    osds.serve(1, 10, 50)
    watch.observe(60, [], osds.read)
    osds.serve(1, 10, 40)
    watch.observe(120, [1], osds.read)
    osds.serve(1, 10, 30)
    assert told(watch.observe(180, [1], osds.read)) == (1, 40, 5)

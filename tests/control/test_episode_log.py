"""The cluster log has one line when an episode begins, and one when it ends."""
from __future__ import annotations

from tests.support.fakes import Harness
from tests.support.rounds import run_until_idle, uneven


def test_one_line_at_the_begin_and_one_at_the_end() -> None:
    harness = run_until_idle(Harness(uneven(), active=True))
    harness.rounds(20, 60)
    begin, end = harness.gateway.cluster_log
    assert begin.startswith("equilibrium: automatic balancing begins: the fullest OSD of class hdd")
    assert end.startswith("equilibrium: automatic balancing completed after ")
    assert end.endswith(": 8 shards, 40 GiB sent (balanced)")

"""The cluster log has one line when an episode begins, ends, or is blocked for an hour."""
from __future__ import annotations

import logging
from typing import List

from tests.support.fakes import Harness
from tests.support.rounds import kept, run_until_idle, successor, uneven

from equilibrium_mgr.control.history import Episode, EpisodeLog


def test_one_line_at_the_begin_and_one_at_the_end() -> None:
    harness = run_until_idle(Harness(uneven(), active=True))
    for _ in range(20):
        harness.round(60)
    begin, end = harness.gateway.cluster_log
    assert begin.startswith("equilibrium: automatic balancing begins: the fullest OSD of class hdd")
    assert end.startswith("equilibrium: automatic balancing completed after ")
    assert end.endswith(": 8 shards, 40 GiB sent (balanced)")


def test_off_is_an_end() -> None:
    harness = Harness(uneven(), max_moves_per_round=1)
    harness.balancer.execute("p", kept(harness))
    harness.round()
    harness.balancer.switch_off()
    assert harness.gateway.cluster_log == [
        "equilibrium: plan 'p' begins: 'ceph equilibrium execute'",
        "equilibrium: plan 'p' stopped after 0s: 1 shard, 5 GiB sent (by 'ceph equilibrium off')"]


def test_an_hour_of_the_same_reason_is_one_line_and_a_failover_adds_none() -> None:
    harness = Harness(uneven(), max_moves_per_round=1)
    harness.balancer.execute("p", kept(harness))
    harness.round()
    harness.gateway.arrive()
    harness.gateway.builtin = True
    for _ in range(59):
        harness.round(60)
    assert len(harness.gateway.cluster_log) == 1
    for _ in range(300):
        harness.round(60)
    blocked, = harness.gateway.cluster_log[1:]
    assert blocked.startswith("equilibrium: plan 'p' has been blocked for 1h00m: ")
    again = successor(harness)
    again.gateway.builtin = True
    for _ in range(300):
        again.round(60)
    assert again.gateway.cluster_log == []


def test_another_reason_is_another_line() -> None:
    lines: List[str] = []
    log = EpisodeLog(lines.append, logging.getLogger("test"))
    episode = Episode("", "a test", 0.0, {})
    for minute in range(400):
        code = "flag" if minute < 200 else "degraded"
        found = log.observe(episode, "blocked", code, f"because of {code}", 60.0 * minute)
        assert found is not None
        episode = found
    assert lines == [
        "equilibrium: automatic balancing has been blocked for 1h00m: because of flag",
        "equilibrium: automatic balancing has been blocked for 1h00m: because of degraded"]
    assert episode.logged == ("flag", "degraded")
    assert log.observe(episode, "throttled", "flag", "", 1e6) == episode

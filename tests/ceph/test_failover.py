"""What outlives a failover: the kept plans, among them one larger than a stored value may be; and
how soon the next mgr goes on."""

from __future__ import annotations

import json
import math
import time
from typing import Callable, Dict, Iterator, List, Tuple

import pytest

from .cluster import DaemonCluster
from .conftest import MAX_MISPLACED, SLEEP_INTERVAL
from .daemons import wait_for
from .harness import workload
from .harness.commands import (
    equilibrium, equilibrium_json, grown_plans, quick_takeover, ready_plan, run, shards_in_flight,
    status, wait_ready)
from .harness.map_history import MapHistory
from .harness.poller import Asked, polled
from .harness.watcher import Watcher

VALUE_LIMIT = 60_000
MONITOR_LIMIT = 65_536
GROWN_MOVES = 4000
ROUND_SECONDS = START_DELAY = 60
"""As by default."""
STANDSTILL_SECONDS, WATCHED_SECONDS = 90.0, 240.0
REPORT_SECONDS = 5.0
"""So late PGs tell what they do."""


def stored_values(cluster: DaemonCluster) -> Dict[str, str]:
    """The module's stored values by key, as the monitor has them."""
    found = cluster.mon_json("config-key dump", key="mgr/equilibrium/")
    return {key: str(value) for key, value in found.items()}


def test_plans_outlive_a_failover(
        cluster: DaemonCluster, unbalanced: object, figure: Callable[[str], None]) -> None:
    with grown_plans(cluster, GROWN_MOVES):
        big = ready_plan(cluster, "big")
    small = ready_plan(cluster, "small")
    values = stored_values(cluster)
    largest = max(map(len, values.values()))
    assert largest <= VALUE_LIMIT
    total = sum(len(value) for key, value in values.items() if "big" in key)
    assert total > MONITOR_LIMIT
    figure(f"plan of {len(json.dumps(big))} bytes as JSON kept in {total} bytes, "
           f"{len(values)} values in all, largest {largest}")
    before = cluster.active_mgr()
    assert cluster.fail_mgr() != before
    cluster.wait_module()
    listed = {entry["plan"] for entry in equilibrium_json(cluster, "ls")["plans"]}
    assert {"small", "big"} <= listed
    assert wait_ready(cluster, "small") == small
    assert wait_ready(cluster, "big") == big


def test_removing_a_big_plan_leaves_no_parts(cluster: DaemonCluster) -> None:
    run(cluster, "reset")
    assert equilibrium_json(cluster, "ls")["plans"] == []
    wait_for("no stored part of a plan left",
             lambda: "/plan/" not in " ".join(stored_values(cluster)), 20)


@pytest.fixture
def defaults(cluster: DaemonCluster, unbalanced: object) -> Iterator[None]:
    """The options that the next test is about are as they are by default."""
    values = {"sleep_interval": SLEEP_INTERVAL, "max_misplaced_ratio": MAX_MISPLACED,
              "start_delay": 0, "max_backfills_per_osd": 0, "max_transit_ratio": 0}
    for name in values:
        cluster.remove_option(name)
    yield
    equilibrium(cluster, "off")
    for name, value in values.items():
        cluster.set_option(name, value)
    workload.wait_clean(cluster)


@pytest.mark.releases(16)
def test_a_mgr_killed_in_mid_batch_is_followed_without_a_standstill(
        cluster: DaemonCluster, defaults: None, figure: Callable[[str], None]) -> None:
    watcher, history = Watcher(cluster), MapHistory(cluster)
    try:
        with quick_takeover(cluster), polled(cluster) as poller:
            run(cluster, "on")
            wait_for("a batch", history.additions, 3 * ROUND_SECONDS, pause=0.1)
            killed = time.time()
            cluster.kill_mgr()
            cluster.wait_module()
            taken = time.time()
            while time.time() < taken + WATCHED_SECONDS:
                if poller.has_said("balanced", taken):
                    break
                time.sleep(1.0)
            ended = time.time()
    finally:
        watcher.stop()
    asked = poller.since(taken + ROUND_SECONDS)
    wrong = [str(one) for one in asked if not agrees(one, watcher)]
    batches = [batch.at for batch in history.additions() if batch.at > killed]
    busy = {taken, ended, *batches}
    busy.update(sample.at for sample in watcher.between(taken, math.inf) if sample.moving)
    pauses = pauses_between(sorted(busy))
    longest = [(round(length), round(begin - taken)) for length, begin in sorted(pauses)[-3:]]
    sent = [round(at - taken) for at in batches]
    figure(f"killed: {taken - killed:.0f} s until the next mgr answered; batches {sent} s after "
           f"that, watched for {ended - taken:.0f} s; longest pauses (length, begin): {longest}")
    figure(f"{len(wrong)} of {len(asked)} answers of status did not agree with Ceph")
    said = "\n".join(map(str, poller.since(taken)))
    for length, begin in pauses:
        is_early = begin - taken <= START_DELAY
        assert length <= STANDSTILL_SECONDS + is_early * START_DELAY, said
    assert asked
    assert not wrong, "\n".join(wrong)
    assert status(cluster)["active"] is True


def pauses_between(moments: List[float]) -> List[Tuple[float, float]]:
    """(length, begin) of each."""
    return [(later - earlier, earlier) for earlier, later in zip(moments, moments[1:])]


def agrees(asked: Asked, watcher: Watcher) -> bool:
    """Whether what is in flight is what Ceph showed at some time of the last round."""
    samples = watcher.between(asked.at - ROUND_SECONDS - REPORT_SECONDS, asked.at + REPORT_SECONDS)
    seen = [len(sample.moving) for sample in samples]
    if shards_in_flight(asked.now):
        return max(seen) > 0
    return min(seen) == 0

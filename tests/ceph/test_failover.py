"""What outlives a failover: the kept plans, among them one larger than a stored value may be; and
how soon the next mgr goes on."""

from __future__ import annotations

import json
import time
from typing import Callable, Dict, Iterator, List

import pytest

from .cluster import DaemonCluster
from .conftest import MAX_MISPLACED, SLEEP_INTERVAL
from .daemons import wait_for
from .harness import workload
from .harness.commands import (
    equilibrium, equilibrium_json, hooked, quick_takeover, ready_plan, shards_in_flight, status,
    wait_ready)
from .harness.map_history import MapHistory
from .harness.poller import Asked, polled
from .harness.watcher import Sample, Watcher

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
    with hooked(cluster, "grow.moves", GROWN_MOVES):
        big = ready_plan(cluster, "big")
    small = ready_plan(cluster, "small")
    values = stored_values(cluster)
    assert max(map(len, values.values())) <= VALUE_LIMIT
    total = sum(len(value) for key, value in values.items() if "big" in key)
    assert total > MONITOR_LIMIT
    figure(f"plan of {len(json.dumps(big))} bytes as JSON kept in {total} bytes, "
           f"{len(values)} values in all, largest {max(map(len, values.values()))}")
    before = cluster.active_mgr()
    assert cluster.fail_mgr() != before
    cluster.wait_module()
    listed = {entry["plan"]: entry for entry in equilibrium_json(cluster, "ls")["plans"]}
    assert {"small", "big"} <= set(listed)
    assert wait_ready(cluster, "small") == small
    assert wait_ready(cluster, "big") == big


def test_removing_a_big_plan_leaves_no_parts(cluster: DaemonCluster) -> None:
    assert equilibrium(cluster, "reset").rc == 0
    assert equilibrium_json(cluster, "ls")["plans"] == []
    wait_for("no stored part of a plan left", lambda: not [
        key for key in stored_values(cluster) if "/plan/" in key], 20)


@pytest.fixture
def defaults(cluster: DaemonCluster, unbalanced: object) -> Iterator[None]:
    """The options that the next test is about are as they are by default."""
    values = {"sleep_interval": SLEEP_INTERVAL, "max_misplaced_ratio": MAX_MISPLACED,
              "start_delay": 0, "max_backfills_per_osd": 0, "max_transit_ratio": 0}
    for name in values:
        cluster.mon("config rm", who="mgr", name=f"mgr/equilibrium/{name}")
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
            assert equilibrium(cluster, "on").rc == 0
            wait_for("a batch", history.additions, 3 * ROUND_SECONDS, pause=0.1)
            killed = time.time()
            cluster.kill_mgr()
            cluster.wait_module()
            taken = time.time()
            while time.time() < taken + WATCHED_SECONDS and not any(
                    one.now["state"] == "balanced" for one in poller.since(taken)):
                time.sleep(1.0)
            ended = time.time()
    finally:
        watcher.stop()
    asked, samples = poller.since(taken + ROUND_SECONDS), list(watcher.samples)
    wrong = [one for one in asked if not agrees(one, samples)]
    batches = [batch.at for batch in history.additions() if batch.at > killed]
    busy = sorted({taken, ended, *batches, *(
        sample.at for sample in samples if sample.moving and sample.at > taken)})
    pauses = [(later - earlier, earlier - taken) for earlier, later in zip(busy, busy[1:])]
    figure(f"killed: {taken - killed:.0f} s until the next mgr answered; batches "
           f"{[round(at - taken) for at in batches]} s after that, watched for "
           f"{ended - taken:.0f} s; the longest pauses (length, begin): "
           f"{[(round(length), round(begin)) for length, begin in sorted(pauses)[-3:]]}; "
           f"{len(wrong)} of {len(asked)} answers of status did not agree with Ceph")
    said = "\n".join(map(str, poller.since(taken)))
    assert max(pauses)[0] <= START_DELAY + STANDSTILL_SECONDS, said
    assert not [one for one in pauses if one[0] > STANDSTILL_SECONDS and one[1] > START_DELAY], said
    assert asked and not wrong, "\n".join(map(str, wrong))
    assert status(cluster)["active"] is True


def agrees(asked: Asked, samples: List[Sample]) -> bool:
    """Whether what is in flight is what Ceph showed at some time of the last round."""
    seen = [len(sample.moving) for sample in samples if -ROUND_SECONDS - REPORT_SECONDS
            <= sample.at - asked.at <= REPORT_SECONDS]
    return max(seen) > 0 if shards_in_flight(asked.now) else min(seen) == 0

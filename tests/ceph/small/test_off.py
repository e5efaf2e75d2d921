"""`off` at random moments, each followed at once by a failover: nothing is sent afterwards."""

from __future__ import annotations

import random
import time
from typing import Callable, Iterator, List

import pytest

from ..cluster import DaemonCluster
from ..harness import workload
from ..harness.commands import equilibrium, status
from ..harness.map_history import MapHistory
from .filling import delete_pool, make_pool

pytestmark = [pytest.mark.releases(20), pytest.mark.long]

POOL = "stopped"
MOMENTS = 20
LATEST_SECONDS = 5.0
AFTER_SECONDS = 3.0
"""Some rounds of the successor."""


@pytest.fixture(scope="module")
def restless(cluster: DaemonCluster) -> Iterator[DaemonCluster]:
    """Two mgrs, and a pool with much to move in small batches."""
    cluster.start_mgr("y")
    make_pool(cluster, POOL, pgs=64)
    workload.write(cluster, POOL, 500)
    cluster.set_option("sleep_interval", 1)
    cluster.set_option("max_moves_per_round", 2)
    yield cluster
    equilibrium(cluster, "off")
    workload.wait_clean(cluster)
    delete_pool(cluster, POOL)


def test_nothing_is_sent_after_the_answer(
        restless: DaemonCluster, figure: Callable[[str], None]) -> None:
    chance = random.Random(6)
    answers: List[float] = []
    late: List[str] = []
    states: List[str] = []
    sent = 0
    for number in range(MOMENTS):
        for pgid in workload.upmap_items(restless):
            restless.mon("osd rm-pg-upmap-items", pgid=pgid)
        history = MapHistory(restless)
        assert equilibrium(restless, "on").rc == 0
        time.sleep(chance.uniform(0.0, LATEST_SECONDS))
        states.append(status(restless)["state"] if number % 2 else "not asked")
        answer = equilibrium(restless, "off")
        last = restless.mon_json("osd stat")["epoch"]
        assert answer.rc == 0, answer
        answers.append(answer.seconds)
        restless.fail_mgr()
        restless.wait_module()
        time.sleep(AFTER_SECONDS)
        now = status(restless)
        assert now["active"] is False and now["execution"] is None, now
        batches = history.additions()
        sent += len(batches)
        late += [f"moment {number}: {batch}, the map was at {last}" for batch in batches
                 if batch.epoch > last]
    figure(f"off at {MOMENTS} random moments, each followed by `mgr fail`: {sent} batches before, "
           f"{len(late)} after; it answered after {sorted(answers)[len(answers) // 2]:.3f} s in "
           f"the median, {max(answers):.3f} s at most; states at some: {sorted(set(states))}")
    assert not late, "\n".join(late)

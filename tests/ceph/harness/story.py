"""One long run of automatic balancing under a client's writes, and what was seen of it."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import Any, Dict, Iterator, List

from ..cluster import DaemonCluster
from ..conftest import MAX_MISPLACED
from ..daemons import ClusterError, wait_for
from . import workload
from .client_load import ClientLoad
from .commands import (
    AT_REST, class_row, equilibrium, evaluated, quick_takeover, ready_plan, status, stop_and_reset,
    wait_state)
from .map_history import Batch, MapHistory, to_clean
from .watcher import Watcher

WRITES_PER_SECOND = 20
BATCH_SECONDS = 90
"""So long at most until the next batch goes, whatever is on its way."""


class Story:
    """From an unequal cluster on; the tests that share one are its chapters, in order.

    `predicted` is the utilization of the fullest OSD that a plan for the beginning foretells.
    """

    def __init__(self, cluster: DaemonCluster) -> None:
        self.cluster = cluster
        stop_and_reset(cluster)
        workload.clear_upmaps(cluster)
        self.before = workload.settled_usage(cluster)
        ready_plan(cluster, "expected")
        row = class_row(evaluated(cluster, "expected"))
        self.predicted: float = row["planned_max_utilization"]
        self.history = MapHistory(cluster)
        self.load = ClientLoad(cluster, [pool[0] for pool in workload.POOLS], WRITES_PER_SECOND)
        self.watcher = Watcher(cluster)
        self.began = time.time()

    def end(self) -> None:
        """Nothing writes, watches or balances any more."""
        self.watcher.stop()
        self.load.end()
        equilibrium(self.cluster, "off")

    def batches_since(self, at: float) -> List[Batch]:
        """What changed upmap items after that moment, in seconds since the epoch."""
        return [batch for batch in self.history.batches() if batch.at > at]

    def wait_batches(self, number: int = 1) -> Batch:
        """Wait until so many more batches went; the first of them.

        ClusterError where there is nothing left to do."""
        since = time.time()

        def went() -> List[Batch]:
            found = self.batches_since(since)
            if len(found) >= number:
                return found
            if status(self.cluster)["state"] in AT_REST:
                raise ClusterError("it is through too early: make the test's limit smaller")
            return []
        return wait_for(f"{number} more batches", went, number * BATCH_SECONDS)[0]

    def wait_state(self, state: str, seconds: float) -> Dict[str, Any]:
        """Wait for a state of the module; its whole status then."""
        return wait_state(self.cluster, [state], seconds)


@contextmanager
def story_under(cluster: DaemonCluster, limit: float) -> Iterator[Story]:
    """A story under this misplaced limit, in which a dead mgr is soon followed by another."""
    cluster.set_option("max_misplaced_ratio", limit)
    with quick_takeover(cluster):
        # one that has read all statistics since other tests have filled its pools: the limit is
        # held by what each PG had then
        cluster.fail_mgr()
        cluster.wait_module()
        told = Story(cluster)
        try:
            yield told
        finally:
            told.end()
            cluster.set_option("max_misplaced_ratio", MAX_MISPLACED)


def assert_legal(cluster: DaemonCluster) -> None:
    """No upmap that a monitor would cancel, no PG twice on a host."""
    assert to_clean(cluster) == []
    assert illegal_placements(cluster) == []


def illegal_placements(cluster: DaemonCluster) -> List[str]:
    """PGs that the present map wants twice on one host; every rule of the tests forbids that."""
    found = []
    for pgid, up in workload.up_sets(cluster).items():
        hosts = [cluster.osd_hosts[osd] for osd in up if osd < workload.NO_OSD]
        if len(set(hosts)) < len(hosts):
            found.append(f"{pgid}: {up}")
    return found

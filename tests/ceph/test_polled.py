"""Asking changes nothing: a balanced cluster that is asked all the time acts when it has to, and
only then. One run on one cluster, `sleep_interval` as it is by default; the tests are its chapters.
"""

from __future__ import annotations

import time
from typing import Callable, Iterator, List, Optional, Tuple

import pytest

from .cluster import GIB, DaemonCluster
from .conftest import SLEEP_INTERVAL
from .daemons import ClusterError, wait_for
from .harness import workload
from .harness.commands import (
    class_row, equilibrium, equilibrium_json, ready_plan, run, stop_and_reset)
from .harness.map_history import Batch, MapHistory
from .harness.poller import Poller, polled

pytestmark = pytest.mark.releases(16, 20)

REACTION_SECONDS = 90.0
"""So long at most from an OSD newly nearfull or full to the first upmap."""
BALANCED_SECONDS = 300
DRIFT_POOL = "drift"
DRIFT_SECONDS = 180.0
POINTS = 0.05
STEP_SECONDS = 10.0
RATIOS = {"nearfull": 0.85, "backfillfull": 0.90, "full": 0.95}
BELOW = {"nearfull": 0.04, "backfillfull": 0.02, "full": 0.005}
"""So far below the fullest OSD the ratios are lowered."""
WORTH = 0.01
"""A plan made at the end lowers the fullest OSD by less: a shard is 2 to 4 % of a small one."""
CORRECTED_SECONDS = 700.0
"""So long at most what OSDs hold otherwise than predicted (of 2 GiB, 1 in 100 is 20 MiB) is left:
the loop plans for data alone every ten minutes."""


class Story:
    """A balanced cluster, and who asks."""

    def __init__(self, cluster: DaemonCluster, poller: Poller) -> None:
        self.cluster = cluster
        self.poller = poller
        self.history = MapHistory(cluster)
        self.corrected_after = 0.0   # seconds from its last rest to one that is deserved

    def wait_balanced(self) -> workload.Usage:
        """Hurries; the usage once it is balanced and a new plan would gain nothing."""
        self.cluster.set_option("sleep_interval", SLEEP_INTERVAL)
        since = time.time()
        try:
            wait_for("balanced", lambda: self.poller.has_said("balanced", since, 1),
                     BALANCED_SECONDS)
        except ClusterError:
            pytest.fail(f"not balanced: {self.poller.asked[-1]}")
        workload.wait_clean(self.cluster)
        workload.settled_usage(self.cluster)
        self.cluster.remove_option("sleep_interval")
        gains: List[Tuple[float, workload.Usage]] = []
        rested = time.time()

        def is_deserved() -> bool:
            usage, planned = workload.usage_of(self.cluster), fresh_maximum(self.cluster)
            gains.append((usage.highest - planned, usage))
            return gains[-1][0] < WORTH
        try:
            wait_for("a rest that is deserved", is_deserved, CORRECTED_SECONDS, pause=20.0)
        except ClusterError:
            pytest.fail(f"rests with {gains}")
        self.corrected_after = time.time() - rested
        return gains[-1][1]

    def rest(self) -> str:
        return f"{self.corrected_after:.0f} s after it said so"

    def first_batch(self, since: float, until: float) -> Batch:
        """The first upmaps of ours after a moment; fails where there are none until another."""
        def found() -> List[Batch]:
            return [batch for batch in self.history.additions() if batch.at > since]
        try:
            return wait_for("upmaps", found, until - time.time(), pause=1.0)[0]
        except ClusterError:
            pytest.fail(f"no upmaps {time.time() - since:.0f} s long; usage "
                        f"{workload.usage_of(self.cluster)}; {self.poller.asked[-1]}")


@pytest.fixture(scope="module")
def story(cluster: DaemonCluster) -> Iterator[Story]:
    """Balanced, asked all the time, with a pool of one PG that can grow on its OSDs alone."""
    stop_and_reset(cluster)
    workload.clear_upmaps(cluster)
    workload.make_pool(cluster, DRIFT_POOL, pgs=1)
    workload.write(cluster, DRIFT_POOL, 10)
    workload.wait_clean(cluster)
    try:
        with polled(cluster) as poller:
            told = Story(cluster, poller)
            run(cluster, "on")
            told.wait_balanced()
            yield told
    finally:
        equilibrium(cluster, "off")
        workload.set_ratios(cluster, RATIOS)
        cluster.set_option("sleep_interval", SLEEP_INTERVAL)
        workload.delete_pool(cluster, DRIFT_POOL)
        workload.wait_clean(cluster)


@pytest.mark.releases(20)
def test_a_drift_is_met(story: Story, figure: Callable[[str], None]) -> None:
    """Of 5 points on the OSDs of one PG, of which one becomes nearfull by it."""
    cluster, usage = story.cluster, workload.usage_of(story.cluster)
    osd = smallest_of(cluster, DRIFT_POOL)
    own = usage.utilization[osd]
    nearfull = max(own + 0.6 * POINTS, usage.highest + 0.005)
    cluster.mon("osd set-nearfull-ratio", ratio=round(nearfull, 3))
    since = at = time.time()
    for at in drift(cluster, osd, nearfull + 0.4 * POINTS - own, DRIFT_SECONDS):
        if "OSD_NEARFULL" in cluster.health_checks():
            break
    first = story.first_batch(since, at + REACTION_SECONDS)
    drifted = workload.usage_of(cluster)
    cluster.mon("osd set-nearfull-ratio", ratio=RATIOS["nearfull"])
    after = story.wait_balanced()
    grew, waited = at - since, first.at - at
    figure(f"osd.{osd} grew to nearfull in {grew:.0f} s while it was asked: first upmap "
           f"{waited:.0f} s after that; {usage} -> {drifted} -> {after}, {story.rest()}")


def test_a_full_osd_is_met(story: Story, figure: Callable[[str], None]) -> None:
    cluster = story.cluster
    balanced = workload.usage_of(cluster)
    removed = time.time()
    for pgid in workload.upmap_items(cluster):
        cluster.mon("osd rm-pg-upmap-items", pgid=pgid)
    usage = wait_for("data that has gone back", lambda: risen(cluster, balanced.highest), 120)
    assert usage
    workload.set_ratios(cluster, {name: usage.highest - below for name, below in BELOW.items()})
    wait_for("the OSD full", lambda: "OSD_FULL" in cluster.health_checks(), 30)
    full = time.time()
    first = story.first_batch(removed, full + REACTION_SECONDS)
    after = story.wait_balanced()
    wait_for("no OSD full", lambda: "OSD_FULL" not in cluster.health_checks(), 30)
    went, waited = full - removed, first.at - full
    figure(f"upmaps removed, and an OSD full {went:.0f} s later, while it was asked: first upmap "
           f"{waited:.0f} s after that; {balanced} -> {usage} -> {after}, {story.rest()}")


def fresh_maximum(cluster: DaemonCluster) -> float:
    """The highest utilization with a plan made now."""
    ready_plan(cluster, "fresh")
    row = class_row(equilibrium_json(cluster, "eval", option="fresh"))
    return float(row["planned_max_utilization"])


def smallest_of(cluster: DaemonCluster, pool: str) -> int:
    """The smallest OSD that holds a pool of one PG."""
    number = workload.pool_of(cluster, pool)["pool"]
    return min(workload.up_set(cluster, f"{number}.0"), key=cluster.osds.__getitem__)


def drift(cluster: DaemonCluster, osd: int, points: float, seconds: float) -> Iterator[float]:
    """Writes to the growing pool until that OSD is so much fuller; the time after each step."""
    began, steps = time.time(), int(seconds / STEP_SECONDS)
    total, written = int(points * cluster.osds[osd] * GIB / workload.MIB), 0
    for step in range(1, steps + 1):
        more = total * step // steps - written
        if more:
            workload.write(cluster, DRIFT_POOL, more)
            written += more
        yield time.time()
        time.sleep(max(0.0, began + step * STEP_SECONDS - time.time()))


def risen(cluster: DaemonCluster, highest: float) -> Optional[workload.Usage]:
    """The usage where some OSD is clearly fuller than `highest`."""
    usage = workload.usage_of(cluster)
    return usage if usage.highest > highest + POINTS else None

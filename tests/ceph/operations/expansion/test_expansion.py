"""Two hosts are added under norebalance; what comes of that with a freeze, and without.

Without: `on` once CRUSH has moved all that it wants, or at once. Each way begins with the same data
on the same OSDs; the hosts are taken out again in between.
"""

from __future__ import annotations

import time
from typing import Callable, Dict, Iterator, NamedTuple

import pytest

from ...cluster import GIB, DaemonCluster
from ...daemons import wait_for
from ...harness import workload
from ...harness.commands import equilibrium, status
from ..test_freeze import UpSets, ended, freeze, has_peered, misplaced
from .clean_placements import DATA_SHARDS, CleanPlacements, Moved
from .conftest import ASIDE, POOLS, move_hosts

pytestmark = [pytest.mark.releases(16, 20), pytest.mark.long]

FROZEN, MOVED_FIRST, AT_ONCE = "freeze", "no freeze, on when all has moved", "no freeze, on at once"
BYTES_RATIO = 1.1
"""What the way by a freeze may move: so many times what a direct balance moves."""
BALANCED_SECONDS = 300


class Way(NamedTuple):
    """One way from the hosts' coming in until nothing is left to do."""

    misplaced: float         # ratio, by Ceph's own count, under norebalance
    frozen_misplaced: float  # the same after the freeze, if there was one
    moved: Moved
    usage: workload.Usage
    pairs: int               # of upmap items
    seconds: float

    def __str__(self) -> str:
        return (f"misplaced {self.misplaced:.4f} -> {self.frozen_misplaced:.4f}, {self.moved} moved"
                f" in {self.seconds:.0f} s, {self.pairs} pairs; {self.usage}")


@pytest.fixture(scope="module")
def home(cluster: DaemonCluster) -> UpSets:
    """Where all PGs are before the hosts come."""
    return workload.up_sets(cluster)


@pytest.fixture(scope="module")
def frozen(cluster: DaemonCluster, home: UpSets) -> Iterator[Way]:
    """The way by a freeze."""
    yield expanded(cluster, home, FROZEN)


@pytest.mark.parametrize("direct", [MOVED_FIRST, AT_ONCE])
def test_after_a_freeze_it_ends_as_even_for_no_more_bytes(
        cluster: DaemonCluster, home: UpSets, frozen: Way, direct: str,
        figure: Callable[[str], None]) -> None:
    way = expanded(cluster, home, direct)
    figure(f"{FROZEN}: {frozen}")
    figure(f"{direct}: {way}")
    shard = largest_shard(cluster) / (min(cluster.osds) * GIB)
    figure(f"beside {direct}: highest {frozen.usage.highest - way.usage.highest:+.4f} (one shard is"
           f" at most {shard:.4f}), bytes {frozen.moved.bytes / way.moved.bytes:.3f} times")
    assert frozen.usage.highest <= way.usage.highest + shard
    assert frozen.moved.bytes <= BYTES_RATIO * way.moved.bytes


def expanded(cluster: DaemonCluster, home: UpSets, way: str) -> Way:
    """Goes one way, and back."""
    assert workload.up_sets(cluster) == home
    try:
        cluster.mon("osd set", key="norebalance")
        placements = CleanPlacements(cluster, kinds(cluster))
        began = time.monotonic()
        move_hosts(cluster, "default")
        wait_for("PGs that have peered", lambda: has_peered(cluster), 60)
        before = after = misplaced(cluster)
        if way == FROZEN:
            plan = freeze(cluster)["plan"]
            wait_for("its end", lambda: ended(cluster) == (plan, "completed"), 60)
            wait_for("PGs that have peered again", lambda: has_peered(cluster), 60)
            after = misplaced(cluster)
        cluster.mon("osd unset", key="norebalance")
        if way != AT_ONCE:
            workload.wait_clean(cluster)
        balance(cluster)
        took = time.monotonic() - began
        pairs = sum(map(len, workload.upmap_items(cluster).values()))
        return Way(before, after, placements.stop(), workload.settled_usage(cluster), pairs, took)
    finally:
        go_home(cluster)


def balance(cluster: DaemonCluster) -> None:
    """`on` until nothing is left to do, and then `off`."""
    assert equilibrium(cluster, "on").rc == 0
    try:
        wait_for("state balanced", lambda: status(cluster)["state"] == "balanced",
                 BALANCED_SECONDS, pause=1.0)
        workload.wait_clean(cluster)
    finally:
        equilibrium(cluster, "off")


def go_home(cluster: DaemonCluster) -> None:
    """All is as before the hosts came."""
    equilibrium(cluster, "off")
    cluster.mon("osd unset", key="norebalance")
    move_hosts(cluster, ASIDE)
    workload.clear_upmaps(cluster)
    equilibrium(cluster, "reset")
    workload.settled_usage(cluster)


def kinds(cluster: DaemonCluster) -> Dict[int, str]:
    """Pool id → type, of the pools that hold something."""
    known = {name: kind for name, kind, *_ in POOLS}
    return {pool["pool"]: known[pool["pool_name"]]
            for pool in cluster.mon_json("osd dump")["pools"] if pool["pool_name"] in known}


def largest_shard(cluster: DaemonCluster) -> float:
    """Bytes of the largest shard of any PG."""
    of_pool = kinds(cluster)
    stats = cluster.mgr_json("pg dump", dumpcontents=["pgs"])["pg_stats"]
    return max(stat["stat_sum"]["num_bytes"] / DATA_SHARDS[of_pool[pool]] for stat in stats
               for pool in (int(stat["pgid"].split(".")[0]),) if pool in of_pool)

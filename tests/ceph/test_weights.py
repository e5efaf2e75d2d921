"""`ceph osd reweight` is capacity: an OSD holds its share of what its likes hold, step by step."""

from __future__ import annotations

from statistics import mean
from typing import Callable, Dict, Iterator, List

import pytest

from .cluster import GIB, DaemonCluster
from .daemons import ClusterError, wait_for
from .harness import workload
from .harness.commands import equilibrium, shards_in_flight, status

pytestmark = [pytest.mark.releases(16, 20), pytest.mark.long]

OSD = 3
STEPS = (0.3, 0.6, 1.0)
BALANCED_SECONDS = 420
EVEN = 0.05
"""The others of the class are this even by used bytes ÷ size, as `osd df` has them: one PG shard is
3 to 7 % of a small OSD here, and what BlueStore uses by itself 8 to 20 %."""


@pytest.fixture(scope="module")
def weighed(cluster: DaemonCluster) -> Iterator[DaemonCluster]:
    """Balances automatically; all weights are 1 again afterwards."""
    equilibrium(cluster, "off")
    equilibrium(cluster, "reset")
    workload.clear_upmaps(cluster)
    yield cluster
    equilibrium(cluster, "off")
    cluster.mon("osd reweight", id=OSD, weight=1.0)
    workload.wait_clean(cluster)


@pytest.mark.parametrize("weight", STEPS)
def test_an_osd_holds_its_share(
        weighed: DaemonCluster, weight: float, figure: Callable[[str], None]) -> None:
    weighed.mon("osd reweight", id=OSD, weight=weight)
    workload.wait_clean(weighed)
    assert equilibrium(weighed, "on").rc == 0
    wait_balanced(weighed)
    held, shard = held_bytes(weighed)
    likes = [osd for osd, size in enumerate(weighed.osds)
             if size == weighed.osds[OSD] and osd != OSD]
    share = mean(held[osd] for osd in likes)
    levels = {osd: level for osd, level in workload.settled_usage(weighed).utilization.items()
              if osd != OSD}
    by_shards = [held[osd] / (size * GIB) for osd, size in enumerate(weighed.osds) if osd != OSD]
    figure(f"reweight {weight}: osd.{OSD} holds {held[OSD] / share:.2f} of its likes' mean, a "
           f"shard is {shard / share:.2f} of it; the others are used {min(levels.values()):.3f} to "
           f"{max(levels.values()):.3f} (PGs' bytes {min(by_shards):.3f} to {max(by_shards):.3f})"
           f"; {status(weighed)['state']}")
    assert held[OSD] <= weight * share + shard
    assert held[OSD] >= weight * share - 2 * shard
    assert max(levels.values()) - min(levels.values()) <= EVEN


def wait_balanced(cluster: DaemonCluster) -> None:
    """Wait until it rests and all data is where it belongs, twice in a row."""
    seen: List[bool] = []

    def rests() -> bool:
        now = status(cluster)
        seen.append(now["state"] == "balanced" and not shards_in_flight(now))
        return seen[-3:] == [True] * 3
    try:
        wait_for("state balanced", rests, BALANCED_SECONDS, pause=2.0)
    except ClusterError:
        pytest.fail(f"not balanced: {status(cluster)}")
    workload.wait_clean(cluster)


def held_bytes(cluster: DaemonCluster) -> tuple[Dict[int, int], int]:
    """Bytes of the shards on each OSD by the statistics of PGs, and of the largest shard."""
    k = {pool["pool"]: 2 if pool["erasure_code_profile"] else 1
         for pool in cluster.mon_json("osd dump")["pools"]}
    held = {osd: 0 for osd in range(len(cluster.osds))}
    largest = 0
    for pg in cluster.mgr_json("pg dump", dumpcontents=["pgs"])["pg_stats"]:
        shard = pg["stat_sum"]["num_bytes"] // k[int(pg["pgid"].split(".")[0])]
        largest = max(largest, shard)
        for osd in pg["acting"]:
            held[osd] += shard
    return held, largest

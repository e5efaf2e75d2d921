"""Pools of the small cluster: what is written to them, and what their OSDs hold of it."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any, Dict, List

from ..cluster import GIB, DaemonCluster
from ..harness import workload

WRITER = Path(__file__).resolve().parent / "objects.py"
DELETED_SECONDS = 6.0


def make_pool(cluster: DaemonCluster, name: str, size: int = 3, pgs: int = 8) -> None:
    """Create a replicated pool and wait until its PGs are clean."""
    cluster.mon("osd pool create", pool=name, pg_num=pgs, pgp_num=pgs, pool_type="replicated",
                size=size)
    cluster.mon("osd pool application enable", pool=name, app="rados")
    workload.wait_clean(cluster)


def write(cluster: DaemonCluster, pool: str, prefix: str, objects: int, size: int,
          keys: int) -> None:
    """`size` bytes and `keys` keys of omap of 1 kB in each object."""
    shutil.copy(WRITER, cluster.work)
    cluster.processes.check(["python3", str(cluster.work / WRITER.name), str(cluster.conf), pool,
                             prefix, str(objects), str(size), str(keys)], 240)


def delete_pool(cluster: DaemonCluster, name: str) -> None:
    """Delete a pool."""
    cluster.mon("osd pool delete", pool=name, pool2=name, yes_i_really_really_mean_it=True)


def compacted_usage(cluster: DaemonCluster) -> Dict[int, int]:
    """Bytes used by OSD once RocksDB has nothing left to tidy up.

    PGs that have left are deleted little by little, and logs end with the next compaction."""
    for _ in range(2):
        time.sleep(DELETED_SECONDS)
        for osd in range(len(cluster.osds)):
            cluster.ceph(f"tell osd.{osd} compact", 120)
    usage = workload.settled_usage(cluster).utilization
    return {osd: int(ratio * cluster.osds[osd] * GIB) for osd, ratio in usage.items()}


def unclean(cluster: DaemonCluster) -> List[Dict[str, Any]]:
    """PGs that are not active+clean as the mgr has them now."""
    stats: List[Dict[str, Any]] = cluster.mgr_json("pg dump", dumpcontents=["pgs"])["pg_stats"]
    return [pg for pg in stats if set(pg["state"].split("+")) - {"scrubbing", "deep"}
            != {"active", "clean"}]

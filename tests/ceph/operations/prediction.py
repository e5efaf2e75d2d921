"""Fills a pool, carries out a plan, and holds the used bytes of each OSD against the prediction.

RocksDB's log, 282 MiB on Ceph 16, and the files that it writes as it compacts, 70 MiB each in
BlueFS however little is in them, are a ten-thousandth of an OSD in service and a quarter of one of
2 GiB. So they are made smaller here in the same proportion; nothing else of RocksDB is changed.
"""

from __future__ import annotations

import shutil
import time
from collections import Counter
from pathlib import Path
from typing import Callable, Dict, Iterator, List, Mapping, NamedTuple

import pytest

from ..cluster import DaemonCluster
from ..conftest import SLEEP_INTERVAL, new_cluster
from ..daemons import wait_for
from ..harness import workload
from ..harness.commands import equilibrium, execute, is_of_now, ready_plan, status
from ..release import RELEASES

WRITER = Path(__file__).resolve().parent / "writer.py"
HOSTS = {f"h{host}": (2.0,) for host in range(7)}
#: Largest error, as ratio of an OSD's size.
TOLERANCE = 0.01
PATIENCE_SECONDS = 240
DELETED_SECONDS = 6.0
#: Many small objects are recovered one by one.
_IN_HASTE = {f"osd recovery sleep {kind}": "0" for kind in ("hdd", "ssd", "hybrid")}
_ROCKSDB_16 = (
    "compression=kNoCompression,max_write_buffer_number=4,min_write_buffer_number_to_merge=1,"
    "recycle_log_file_num=4,write_buffer_size=1048576,writable_file_max_buffer_size=0,"
    "compaction_readahead_size=2097152,max_background_compactions=2,max_total_wal_size=4194304,"
    "target_file_size_base=524288,max_bytes_for_level_base=4194304")
_ROCKSDB_18 = (
    "compression=kLZ4Compression,max_write_buffer_number=64,min_write_buffer_number_to_merge=6,"
    "compaction_style=kCompactionStyleLevel,write_buffer_size=131072,max_background_jobs=4,"
    "level0_file_num_compaction_trigger=8,max_bytes_for_level_base=8388608,"
    "max_bytes_for_level_multiplier=8,compaction_readahead_size=2MB,max_total_wal_size=8388608,"
    "writable_file_max_buffer_size=0,target_file_size_base=524288")


class Outcome(NamedTuple):
    """What a plan foretold, and what came. By OSD; ratios of its size."""

    moves: int
    before: Dict[int, float]
    predicted: Dict[int, float]
    after: Dict[int, float]
    #: "osd.N" → bytes allocated for each that is stored of the pools, once all has moved
    allocated: Dict[str, float] = {}

    @property
    def largest(self) -> float:
        """The largest error: reported less predicted, absolute."""
        return max(abs(self.after[osd] - ratio) for osd, ratio in self.predicted.items())

    def __str__(self) -> str:
        rows = [f"{self.moves} moves; error at most {self.largest:.4f}"]
        for osd, before in sorted(self.before.items()):
            predicted, after = self.predicted[osd], self.after[osd]
            rows.append(f"osd.{osd} {before:.4f} -> {predicted:.4f}, is {after:.4f}"
                        f" ({after - predicted:+.4f})")
        taken = ", ".join(f"{osd} {ratio:.3f}" for osd, ratio in self.allocated.items())
        return "; ".join([*rows, f"allocated by stored: {taken}"])


def cluster_of_seven(request: pytest.FixtureRequest,
                     osd_options: Mapping[str, str]) -> Iterator[DaemonCluster]:
    """Empty, seven OSDs of one size, without scrubs, the module enabled and off; `osd_options` as
    DaemonCluster has them."""
    release = RELEASES[request.param]
    rocksdb = _ROCKSDB_16 if release.major < 18 else _ROCKSDB_18
    options = {"bluestore rocksdb options": rocksdb, **_IN_HASTE, **osd_options}
    with new_cluster(request, HOSTS, options) as made:
        made.mgr("balancer off")
        for flag in ("noscrub", "nodeep-scrub"):
            made.mon("osd set", key=flag)
        made.enable("equilibrium")
        made.set_option("sleep_interval", SLEEP_INTERVAL)
        made.set_option("max_misplaced_ratio", 1.0)
        made.set_option("max_moves_per_round", 100)
        made.hurry()
        yield made
        failures = made.module_failures()
    assert not failures, f"the module raised exceptions on Ceph {release.version}:\n{failures}"


def make_pool(cluster: DaemonCluster, name: str, kind: str = "replicated") -> None:
    """A pool of 32 PGs; one that is erasure-coded has a profile of its name."""
    workload.make_pool(cluster, name, kind, 32, name)
    workload.wait_clean(cluster)


def write(cluster: DaemonCluster, pool: str, objects: int, size: int, part: int = 1) -> None:
    """Objects that compress to one part of `part`."""
    script = str(shutil.copy(WRITER, cluster.work))
    numbers = [str(objects), str(size), str(part)]
    cluster.processes.check(["python3", script, str(cluster.conf), pool, f"{pool}-{size}-{part}",
                             *numbers], 300)


def judge(cluster: DaemonCluster, figure: Callable[[str], None], what: str, pools: List[str],
          is_compacted: bool = True) -> Outcome:
    """Balances the pools, which are deleted then; each OSD holds what was foretold."""
    found = balance(cluster, pools, is_compacted)
    figure(f"{what}: {found}")
    delete_pools(cluster, pools)
    assert found.moves
    assert found.largest <= TOLERANCE
    return found


def balance(cluster: DaemonCluster, pools: List[str], is_compacted: bool = True) -> Outcome:
    """Makes a plan for the pools and carries it out. `is_compacted`: OSDs are measured once RocksDB
    has nothing left to tidy up, which takes a minute each time."""
    measured = _utilizations if is_compacted else _settled
    before = measured(cluster)
    equilibrium(cluster, "reset")
    wait_for("a look of now", lambda: is_of_now(status(cluster)), 60)
    plan = ready_plan(cluster, "sizes", pools=pools, aim="even")
    predicted = dict(before)
    first: Dict[int, float] = {}
    for move in plan["moves"]:
        for which in ("from", "to"):
            osd = move[which]
            first.setdefault(osd, move[f"{which}_utilization_before"])
            predicted[osd] = before[osd] + move[f"{which}_utilization_after"] - first[osd]
    execute(cluster, "sizes", PATIENCE_SECONDS)
    workload.wait_clean(cluster, PATIENCE_SECONDS)
    return Outcome(len(plan["moves"]), before, predicted, measured(cluster),
                   _allocated_by_stored(cluster, pools))


def delete_pools(cluster: DaemonCluster, names: List[str]) -> None:
    """And waits until their bytes are gone."""
    equilibrium(cluster, "off")
    for name in names:
        workload.delete_pool(cluster, name)
    time.sleep(DELETED_SECONDS)


def _allocated_by_stored(cluster: DaemonCluster, pools: List[str]) -> Dict[str, float]:
    """By OSD, as it reports them of the pools together."""
    ids = {pool["pool"] for pool in cluster.osd_dump()["pools"] if pool["pool_name"] in pools}
    allocated: Counter[int] = Counter()
    stored: Counter[int] = Counter()
    for row in cluster.mgr_json("pg dump", dumpcontents=["osds"])["pool_statfs"]:
        if row["poolid"] in ids:
            allocated[row["osd"]] += row["allocated"]
            stored[row["osd"]] += row["data_stored"]
    return {f"osd.{osd}": allocated[osd] / max(1, stored[osd]) for osd in sorted(allocated)}


def _settled(cluster: DaemonCluster) -> Dict[int, float]:
    """Used bytes ÷ size by OSD, as it reports them once they do not change any more."""
    return workload.settled_usage(cluster).utilization


def _utilizations(cluster: DaemonCluster) -> Dict[int, float]:
    """Used bytes ÷ size by OSD, as it reports them once RocksDB has nothing left to tidy up: what
    has left is deleted little by little, and logs end with the next compaction."""
    for _ in range(2):
        time.sleep(DELETED_SECONDS)
        cluster.ceph("tell osd.* compact", 240)
    return _settled(cluster)

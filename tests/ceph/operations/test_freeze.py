"""Two OSDs come in as hosts of their own under norebalance: what that remaps is frozen, and nothing
moves without the flag."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterator, List, NamedTuple

import pytest

from ..cluster import DaemonCluster
from ..daemons import wait_for
from ..harness import workload
from ..harness.commands import answered, equilibrium, status
from ..harness.watcher import sample_of

pytestmark = pytest.mark.releases(16)

HOME: Dict[int, str] = {1: "h0", 3: "h1"}
"""OSDs that get hosts of their own, and the hosts that they go back to."""
ADDED: Dict[int, str] = {1: "h5", 3: "h6"}
SHORT_LOGS = {"osd_min_pg_log_entries": "10", "osd_max_pg_log_entries": "20",
              "osd_pg_log_trim_min": "1"}
"""PGs whose log reaches back to their first object would move in spite of norebalance."""
LEAST_BEFORE = 0.05
TOLERANCE = 0.02
"""Misplaced ratio: Ceph's count and the module's are of different moments."""
UpSets = Dict[str, List[int]]


class Frozen(NamedTuple):
    """Misplaced ratios by Ceph's own count, and what the command told of them."""

    home: UpSets   # before anything was remapped
    before: float
    after: float
    answer: Dict[str, Any]


@pytest.fixture(scope="module")
def clean(cluster: DaemonCluster) -> Iterator[DaemonCluster]:
    """A clean cluster in which an OSD that is new to a PG is filled by backfill; all is as before
    afterwards."""
    equilibrium(cluster, "off")
    equilibrium(cluster, "reset")
    try:
        workload.clear_upmaps(cluster)
        shorten_logs(cluster)
        yield cluster
    finally:
        for osd, host in HOME.items():
            place(cluster, osd, host)
        cluster.mon("osd unset", key="norebalance")
        for host in ADDED.values():
            cluster.mon("osd crush remove", name=host)
        workload.clear_upmaps(cluster)


@pytest.fixture(scope="module")
def frozen(clean: DaemonCluster) -> Frozen:
    """The two are hosts of their own, and frozen; norebalance is set still."""
    home = workload.up_sets(clean)
    clean.mon("osd set", key="norebalance")
    for osd, host in ADDED.items():
        place(clean, osd, host)
    wait_for("PGs that have peered", lambda: has_peered(clean), 60)
    before = misplaced(clean)
    answer = answered(clean, "freeze")
    wait_for("its end", lambda: ended(clean) == (answer["plan"], "completed"), 60)
    wait_for("PGs that have peered again", lambda: has_peered(clean), 60)
    return Frozen(home, before, misplaced(clean), answer)


def test_misplaced_falls_to_what_cannot_be_pinned(
        frozen: Frozen, figure: Callable[[str], None]) -> None:
    answer = frozen.answer
    figure(f"freeze: {answer['shards']} shards of {answer['pinned_pgs']} PGs pinned, misplaced"
           f" {frozen.before:.4f} -> {frozen.after:.4f}, said {answer['misplaced_ratio']:.4f} ->"
           f" {answer['planned_misplaced_ratio']:.4f}, not pinned: {answer['unpinned']}")
    assert frozen.before > LEAST_BEFORE
    assert answer["misplaced_ratio"] == pytest.approx(frozen.before, abs=TOLERANCE)
    assert frozen.after == pytest.approx(answer["planned_misplaced_ratio"], abs=0.005)
    assert frozen.after < 0.1 * frozen.before


def test_nothing_that_is_pinned_moves_without_the_flag(
        frozen: Frozen, clean: DaemonCluster) -> None:
    clean.mon("osd unset", key="norebalance")
    workload.wait_clean(clean)
    left = {pgid for group in frozen.answer["unpinned"] for pgid in group["pgids"]}
    kinds, now = written_pools(clean), workload.up_sets(clean)
    kept = {pgid: kinds[pool_of(pgid)] for pgid in now.keys() - left if pool_of(pgid) in kinds}
    moved = [pgid for pgid, kind in kept.items() if set(now[pgid]) != set(frozen.home[pgid])
             or (kind == "erasure" and now[pgid] != frozen.home[pgid])]
    assert moved == []
    assert clean.module_failures() == ""


def written_pools(cluster: DaemonCluster) -> Dict[int, str]:
    """Pool id → type, of the pools that hold something."""
    kinds = {name: kind for name, kind, *_ in workload.POOLS}
    return {pool["pool"]: kinds[pool["pool_name"]]
            for pool in cluster.mon_json("osd dump")["pools"] if pool["pool_name"] in kinds}


def pool_of(pgid: str) -> int:
    return int(pgid.split(".")[0])


def shorten_logs(cluster: DaemonCluster) -> None:
    """Writes small objects, and deletes them, until no PG's log reaches back to its first one."""
    pools = written_pools(cluster)

    def are_short() -> bool:
        for name, *_ in workload.POOLS:
            cluster.processes.check(
                ["rados", "-c", str(cluster.conf), "-p", name, "bench", "20", "write", "-b", "8192",
                 "-t", "8", "--max-objects", "600"], 90)
        stats = cluster.mgr_json("pg dump", dumpcontents=["pgs"])["pg_stats"]
        return all(stat["log_start"] != "0'0" for stat in stats
                   if pool_of(stat["pgid"]) in pools)
    for option, value in SHORT_LOGS.items():
        cluster.mon("config set", who="osd", name=option, value=value)
    wait_for("short logs", are_short, 60, pause=2.0)
    for option in SHORT_LOGS:
        cluster.mon("config rm", who="osd", name=option)


def place(cluster: DaemonCluster, osd: int, host: str) -> None:
    cluster.mon("osd crush set", id=osd, weight=cluster.osds[osd],
                args=["root=default", f"host={host}"])


def has_peered(cluster: DaemonCluster) -> bool:
    """All PGs are active with the up sets of the present map."""
    stats = cluster.mgr_json("pg dump", dumpcontents=["pgs_brief"])["pg_stats"]
    wanted = workload.up_sets(cluster)
    return all("active" in stat["state"].split("+") and stat["up"] == wanted[stat["pgid"]]
               for stat in stats)


def misplaced(cluster: DaemonCluster) -> float:
    """Ratio of all object copies, by Ceph's own count."""
    return sample_of(cluster.mgr_json("pg dump", dumpcontents=["pgs"])["pg_stats"],
                     0.0).misplaced_ratio


def ended(cluster: DaemonCluster) -> Any:
    """(plan, outcome) of the last execution, once none is under way."""
    now = status(cluster)
    last = now["last_execution"] or {}
    return None if now["execution"] else (last.get("plan"), last.get("outcome"))

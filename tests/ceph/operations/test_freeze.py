"""Two OSDs come in as hosts of their own under norebalance: what that remaps is frozen, and nothing
moves without the flag."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterator, List, NamedTuple

import pytest

from ..cluster import DaemonCluster
from ..daemons import wait_for
from ..harness import workload
from ..harness.commands import answered, execution_over, status, stop_and_reset
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
    stop_and_reset(cluster)
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
    last = wait_for("its end", lambda: execution_over(status(clean), answer["plan"]), 60)
    assert last["outcome"] == "completed"
    wait_for("PGs that have peered again", lambda: has_peered(clean), 60)
    return Frozen(home, before, misplaced(clean), answer)


def test_misplaced_falls_to_what_cannot_be_pinned(
        frozen: Frozen, figure: Callable[[str], None]) -> None:
    answer, before, after = frozen.answer, frozen.before, frozen.after
    said, planned = answer["misplaced_ratio"], answer["planned_misplaced_ratio"]
    figure(f"freeze: {answer['shards']} shards of {answer['pinned_pgs']} PGs pinned, not pinned:"
           f" {answer['unpinned']}")
    figure(f"freeze: misplaced {before:.4f} -> {after:.4f}, said {said:.4f} -> {planned:.4f}")
    assert before > LEAST_BEFORE
    assert said == pytest.approx(before, abs=TOLERANCE)
    assert after == pytest.approx(planned, abs=0.005)
    assert after < 0.1 * before


def test_nothing_that_is_pinned_moves_without_the_flag(
        frozen: Frozen, clean: DaemonCluster) -> None:
    clean.mon("osd unset", key="norebalance")
    workload.wait_clean(clean)
    unpinned: List[str] = []
    for group in frozen.answer["unpinned"]:
        unpinned += group["pgids"]
    kinds = written_pools(clean)
    for pgid, up in workload.up_sets(clean).items():
        kind = kinds.get(pool_of(pgid))
        if kind is None or pgid in unpinned:
            continue
        home = frozen.home[pgid]
        assert set(up) == set(home), pgid
        if kind == "erasure":
            assert up == home, pgid


def written_pools(cluster: DaemonCluster) -> Dict[int, str]:
    """Pool id → type, of the pools that hold something."""
    return {workload.pool_of(cluster, name)["pool"]: kind for name, kind, *_ in workload.POOLS}


def pool_of(pgid: str) -> int:
    return int(pgid.split(".")[0])


def shorten_logs(cluster: DaemonCluster) -> None:
    """Writes small objects, and deletes them, until no PG's log reaches back to its first one."""
    pools = written_pools(cluster)

    def are_short() -> bool:
        for name, *_ in workload.POOLS:
            workload.bench(cluster, name, 20, 8192, 8, 600)
        starts = [stat["log_start"] for stat in cluster.pg_stats()
                  if pool_of(stat["pgid"]) in pools]
        return "0'0" not in starts
    for option, value in SHORT_LOGS.items():
        cluster.set_config("osd", option, value)
    wait_for("short logs", are_short, 60, pause=2.0)
    for option in SHORT_LOGS:
        cluster.remove_config("osd", option)


def place(cluster: DaemonCluster, osd: int, host: str) -> None:
    cluster.mon("osd crush set", id=osd, weight=cluster.osds[osd],
                args=["root=default", f"host={host}"])


def has_peered(cluster: DaemonCluster) -> bool:
    """All PGs are active with the up sets of the present map."""
    stats = cluster.pg_stats("pgs_brief")
    wanted = workload.up_sets(cluster)
    for stat in stats:
        if "active" not in stat["state"].split("+") or stat["up"] != wanted[stat["pgid"]]:
            return False
    return True


def misplaced(cluster: DaemonCluster) -> float:
    """Ratio of all object copies, by Ceph's own count."""
    return sample_of(cluster.pg_stats(), 0.0).misplaced_ratio

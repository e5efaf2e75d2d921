"""What OSDs are still deleting is no reason to take more from them, and no result."""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, Tuple

import pytest

from ...cluster import DaemonCluster
from ...daemons import wait_for
from ...harness import workload
from ...harness.commands import equilibrium_json, execute, ready_plan
from ..hardware.prediction import PATIENCE_SECONDS, make_pool, write

#: Five minutes: by hand, with --ceph-long.
pytestmark = [pytest.mark.releases(16, 20), pytest.mark.long]

POOL, OBJECTS, BYTES = "slow", 16_000, 100_000
#: Seconds after which the next plan is asked for again: looks make its sizes better.
NEXT_LOOKS = (0.0, 15.0, 15.0, 15.0)
DELETED_SECONDS = 240
#: Ratio of an OSD's size.
TOLERANCE = 0.01


def test_nothing_more_moves_while_osds_delete(
        cluster: DaemonCluster, figure: Callable[[str], None]) -> None:
    make_pool(cluster, POOL)
    write(cluster, POOL, OBJECTS, BYTES)
    workload.settled_usage(cluster)
    plan = ready_plan(cluster, "first", pools=[POOL], aim="even")
    execute(cluster, "first", PATIENCE_SECONDS)
    workload.wait_clean(cluster, PATIENCE_SECONDS)
    ended, told = time.monotonic(), []
    for seconds in NEXT_LOOKS:
        time.sleep(seconds)
        more = ready_plan(cluster, "next", pools=[POOL], aim="even")["moves"]
        told.append((undeleted_pgs(cluster), *undeleted_mebibytes(cluster), len(more)))
    wait_for("all deleted", lambda: not undeleted_pgs(cluster), DELETED_SECONDS)
    seconds = time.monotonic() - ended
    predicted = {row["device_class"]: row["max_predicted"]
                 for row in last_episode(cluster)["classes"]}
    later = ready_plan(cluster, "next", pools=[POOL], aim="even")["moves"]
    error = max(abs(row["max_utilization"] - predicted[row["device_class"]])
                for row in equilibrium_json(cluster, "status")["classes"])
    figure(f"{len(plan['moves'])} moves; PGs that OSDs were still deleting, MiB of them, MiB as the"
           f" module has it, moves of a further plan: {told}; all deleted after {seconds:.0f} s,"
           f" then {len(later)} moves; the highest measured was {error:.4f} off")
    assert told[-1][0] and max(row[-1] for row in told[1:]) <= len(later) + 1
    assert error <= TOLERANCE


def undeleted_pgs(cluster: DaemonCluster) -> int:
    """PGs that OSDs count although they have no shard of them any more."""
    pgs = cluster.mgr_json("pg dump", dumpcontents=["pgs"])["pg_stats"]
    held = [osd for pg in pgs for osd in {*pg["up"], *pg["acting"]}]
    stats = cluster.mgr_json("pg dump", dumpcontents=["osds"])["osd_stats"]
    return sum(max(0, row["num_pgs"] - held.count(row["osd"])) for row in stats)


def undeleted_mebibytes(cluster: DaemonCluster) -> Tuple[int, int]:
    """What OSDs have stored beyond what their PGs hold, and what `explain` has of that."""
    stats = cluster.mgr_json("pg dump", dumpcontents=["osds"])
    pgs = cluster.mgr_json("pg dump", dumpcontents=["pgs"])["pg_stats"]
    stored = sum(row["data_stored"] for row in stats["pool_statfs"])
    held = sum(pg["stat_sum"]["num_bytes"] * len(pg["acting"]) for pg in pgs)
    believed = sum(equilibrium_json(cluster, "explain", what=f"osd.{osd}")["undeleted_bytes"]
                   for osd in range(len(cluster.osds)))
    return (stored - held) >> 20, believed >> 20


def last_episode(cluster: DaemonCluster) -> Dict[str, Any]:
    """Of `history`, the newest."""
    episodes = equilibrium_json(cluster, "history")["episodes"]
    return dict(max(episodes, key=lambda row: float(row["started_at"])))

"""What `growth` foretells from samples of two days: the OSD that is nearfull first, and when.

The samples are written into the store, as they would be there had the pool grown as fast since; the
newest is of now, by the mgr that takes over. Then as much is written as would come in that time.
"""

from __future__ import annotations

import json
import time
from typing import Any, Callable, Dict, List

import pytest

from ..cluster import DaemonCluster
from ..daemons import wait_for
from ..harness import workload
from ..harness.commands import equilibrium, equilibrium_json

#: Two minutes beside the cluster: by hand, with --ceph-long.
pytestmark = [pytest.mark.releases(16, 20), pytest.mark.long]

POOL, COPIES = "rep", 3
MIB_A_DAY = 40
HOUR, DAY = 3600.0, 86_400.0
AGES = [4.1 * HOUR * number for number in range(12, 0, -1)]
#: The utilization may be off by this: so few objects are not spread as evenly as the PGs.
ONE_POINT = 0.01


def test_the_first_osd_is_nearfull_when_growth_says_so(
        cluster: DaemonCluster, unbalanced: workload.Usage,
        figure: Callable[[str], None]) -> None:
    cluster.mon("config-key set", key="mgr/equilibrium/growth", val=json.dumps(
        {"version": 1, "samples": samples(cluster)}))
    before = cluster.active_mgr()
    assert cluster.fail_mgr() != before
    cluster.wait_module()
    wait_for("a sample of now", lambda: told(cluster).get("samples") == len(AGES) + 1, 60)
    found = told(cluster)
    pool = next(row for row in found["pools"] if row["name"] == POOL)
    (row,) = found["classes"]
    assert {one["name"]: one["trend"] for one in found["pools"] if one["name"] != POOL}[
        "ec"] == "steady"
    assert pool["growth_bytes_per_day"] == pytest.approx(MIB_A_DAY * workload.MIB, rel=0.1)
    assert row["growth_bytes_per_day"] == pytest.approx(
        COPIES * MIB_A_DAY * workload.MIB, rel=0.1)
    osd, days = row["first_osd"], row["nearfull_seconds"] / DAY
    name = f"{POOL}-{int(days * MIB_A_DAY)}"
    try:
        workload.write(cluster, POOL, int(days * MIB_A_DAY))
        ended = workload.settled_usage(cluster)
    finally:
        cluster.processes.check(["rados", "-c", str(cluster.conf), "-p", POOL, "cleanup",
                                 "--run-name", name], 120)
        workload.settled_usage(cluster)
    figure(f"growth: osd.{osd} nearfull ({found['nearfull_ratio']:.2f}) foretold in {days:.2f} days"
           f" of {MIB_A_DAY} MiB; with those written it was at {ended.utilization[osd]:.4f}, the"
           f" fullest OSD at {ended.highest:.4f}")
    assert ended.utilization[osd] == pytest.approx(found["nearfull_ratio"], abs=ONE_POINT)
    assert ended.highest == pytest.approx(found["nearfull_ratio"], abs=ONE_POINT)


def samples(cluster: DaemonCluster) -> List[Any]:
    """As the module stores them: [seconds since the epoch, pool id → MiB, device class → MiB]."""
    stored = {str(pool["id"]): pool["stats"]["stored"] >> 20 for pool in
              cluster.mon_json("df")["pools"]}
    pool_id = next(str(pool["id"]) for pool in cluster.mon_json("df")["pools"]
                   if pool["name"] == POOL)
    used: Dict[str, int] = {}
    for node in cluster.mgr_json("osd df")["nodes"]:
        name = node.get("device_class") or "none"
        used[name] = used.get(name, 0) + (node["kb_used"] >> 10)
    (name,) = used
    now, found = time.time(), []
    for age in AGES:
        less = int(MIB_A_DAY * age / DAY)
        found.append([int(now - age), {**stored, pool_id: stored[pool_id] - less},
                      {name: used[name] - COPIES * less}])
    return found


def told(cluster: DaemonCluster) -> Dict[str, Any]:
    """The answer of `growth`; empty before the mgr's first look."""
    answer = equilibrium(cluster, "growth", format="json")
    assert answer.rc in (0, -11), answer
    return equilibrium_json(cluster, "growth") if answer.rc == 0 else {}

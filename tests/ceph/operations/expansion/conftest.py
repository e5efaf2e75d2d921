"""A filled cluster, and two hosts with empty OSDs that stand aside, below a root of their own."""

from __future__ import annotations

from typing import Iterator

import pytest

from ...cluster import HOSTS, DaemonCluster
from ...conftest import MAX_MISPLACED, PACKAGE, SLEEP_INTERVAL
from ...daemons import wait_for
from ...harness import workload
from ...release import RELEASES

ADDED = {"n0": (2.0, 2.0), "n1": (3.0, 1.5)}
ASIDE = "aside"
PROFILE = "eq22"
POOLS = (("rep", "replicated", 64, 1650), ("ec", "erasure", 32, 1000))
"""As workload.POOLS has them, of more PGs: a shard is at most 2 % of an OSD. Four shards are the
fewest of which two can exchange their OSDs."""
SHORT_LOGS = {"osd min pg log entries": "4", "osd max pg log entries": "8",
              "osd pg log trim min": "1"}
"""PGs whose log reaches back to their first object would move in spite of norebalance."""


@pytest.fixture(scope="package")
def cluster(request: pytest.FixtureRequest) -> Iterator[DaemonCluster]:
    """The module is enabled and off."""
    release = RELEASES[request.param]
    with DaemonCluster(release, PACKAGE, request.config.getoption("--ceph-keep"),
                       {**HOSTS, **ADDED}, SHORT_LOGS) as made:
        made.mgr("balancer off")
        for flag in ("noscrub", "nodeep-scrub"):
            made.mon("osd set", key=flag)
        made.mon("osd crush add-bucket", name=ASIDE, type="root")
        move_hosts(made, ASIDE)
        made.mon("osd erasure-code-profile set", name=PROFILE,
                 profile=["k=2", "m=2", "crush-failure-domain=host"])
        for name, kind, pgs, _ in POOLS:
            made.mon("osd pool create", pool=name, pg_num=pgs, pgp_num=pgs, pool_type=kind,
                     **({"size": 3} if kind == "replicated" else {"erasure_code_profile": PROFILE}))
            made.mon("osd pool application enable", pool=name, app="rados")
        workload.wait_clean(made)
        for name, _, _, mebibytes in POOLS:
            workload.write(made, name, mebibytes)
        wait_for("short logs", lambda: logs_are_short(made), 60, pause=2.0)
        made.enable("equilibrium")
        made.set_option("sleep_interval", SLEEP_INTERVAL)
        made.set_option("max_misplaced_ratio", MAX_MISPLACED)
        made.hurry()
        yield made
        failures = made.module_failures()
    assert not failures, f"the module raised exceptions on Ceph {release.version}:\n{failures}"


def move_hosts(cluster: DaemonCluster, root: str) -> None:
    """The added hosts, with all of their OSDs, to below a root."""
    for host in ADDED:
        cluster.mon("osd crush move", name=host, args=[f"root={root}"])


def logs_are_short(cluster: DaemonCluster) -> bool:
    """No log of a PG that holds something reaches back to its first object."""
    stats = cluster.mgr_json("pg dump", dumpcontents=["pgs"])["pg_stats"]
    held = [stat for stat in stats if stat["stat_sum"]["num_objects"] > 2]
    return len(held) >= sum(pgs for _, _, pgs, _ in POOLS) and all(
        stat["log_start"] != "0'0" for stat in held)

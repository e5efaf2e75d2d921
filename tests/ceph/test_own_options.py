"""Options that are removed again, help that can be followed, a built-in balancer forced off."""

from __future__ import annotations

import time
from typing import Any, Callable

import pytest

from .cluster import DaemonCluster
from .daemons import wait_for
from .harness import workload
from .harness.commands import execute, ready_plan, status

pytestmark = pytest.mark.releases(16, 20)

REMOVED_SECONDS = 90.0


def test_a_removed_option_is_noticed(cluster: DaemonCluster, figure: Callable[[str], None]) -> None:
    before = wait_for("a look", lambda: limit(cluster), 30)
    cluster.set_option("max_misplaced_ratio", 0.31)
    wait_for("the option", lambda: limit(cluster) == 0.31, 30)
    cluster.remove_option("max_misplaced_ratio")
    removed = time.monotonic()
    try:
        wait_for("the default", lambda: limit(cluster) not in (0.31, None), REMOVED_SECONDS, 0.5)
        figure(f"`config rm` of max_misplaced_ratio: {before} -> 0.31 -> {limit(cluster)} after "
               f"{time.monotonic() - removed:.1f} s")
    finally:
        cluster.set_option("max_misplaced_ratio", before)
        wait_for("the option", lambda: limit(cluster) == before, 30)


def limit(cluster: DaemonCluster) -> Any:
    """What `status` says is in force, after a look."""
    return status(cluster)["limits"]["max_misplaced_ratio"]


@pytest.mark.releases(20)
def test_a_forced_off_balancer_is_not_active(cluster: DaemonCluster) -> None:
    """Ceph 20 can switch off modules that are always on; their options stay."""
    workload.wait_clean(cluster)
    cluster.mgr("balancer on")
    cluster.mon("mgr module force disable", module="balancer", yes_i_really_mean_it=True)
    try:
        cluster.wait_mgr()
        cluster.wait_module()
        wait_for("not active", lambda: status(cluster)["builtin_balancer_active"] is False, 30)
        plan = ready_plan(cluster, "forced", max_moves=1)
        assert plan["moves"], plan
        execute(cluster, "forced", 60)
    finally:
        cluster.mon("mgr module enable", module="balancer")
        cluster.wait_mgr()
        cluster.wait_module()
        cluster.mgr("balancer off")
        workload.wait_clean(cluster)
    # the mgr tells of the module that was switched off until its next report
    wait_for("no module failure", lambda: not cluster.module_failures(), 60)

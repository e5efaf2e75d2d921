"""What outlives a failover: the kept plans, among them one larger than a stored value may be."""

from __future__ import annotations

import json
from typing import Callable, Dict

from .cluster import DaemonCluster
from .daemons import wait_for
from .harness.commands import equilibrium, equilibrium_json, hooked, ready_plan, wait_ready

VALUE_LIMIT = 60_000
MONITOR_LIMIT = 65_536
GROWN_MOVES = 4000


def stored_values(cluster: DaemonCluster) -> Dict[str, str]:
    """The module's stored values by key, as the monitor has them."""
    found = cluster.mon_json("config-key dump", key="mgr/equilibrium/")
    return {key: str(value) for key, value in found.items()}


def test_plans_outlive_a_failover(
        cluster: DaemonCluster, unbalanced: object, figure: Callable[[str], None]) -> None:
    with hooked(cluster, "grow.moves", GROWN_MOVES):
        big = ready_plan(cluster, "big")
    small = ready_plan(cluster, "small")
    values = stored_values(cluster)
    assert max(map(len, values.values())) <= VALUE_LIMIT
    total = sum(len(value) for key, value in values.items() if "big" in key)
    assert total > MONITOR_LIMIT
    figure(f"plan of {len(json.dumps(big))} bytes as JSON kept in {total} bytes, "
           f"{len(values)} values in all, largest {max(map(len, values.values()))}")
    before = cluster.active_mgr()
    assert cluster.fail_mgr() != before
    cluster.wait_module()
    listed = {entry["plan"]: entry for entry in equilibrium_json(cluster, "ls")["plans"]}
    assert {"small", "big"} <= set(listed)
    assert wait_ready(cluster, "small") == small
    assert wait_ready(cluster, "big") == big


def test_removing_a_big_plan_leaves_no_parts(cluster: DaemonCluster) -> None:
    assert equilibrium(cluster, "reset").rc == 0
    assert equilibrium_json(cluster, "ls")["plans"] == []
    wait_for("no stored part of a plan left", lambda: not [
        key for key in stored_values(cluster) if "/plan/" in key], 20)

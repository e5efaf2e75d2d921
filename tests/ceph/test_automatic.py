"""Automatic mode: `on` brings an unequal cluster to rest by itself, `off` stops it at once."""

from __future__ import annotations

import time
from typing import Callable


from .cluster import DaemonCluster
from .daemons import wait_for
from .harness import workload
from .harness.commands import equilibrium, status

def test_on_waits_for_the_builtin_balancer_and_off_stops(
        cluster: DaemonCluster, unbalanced: workload.Usage, figure: Callable[[str], None]) -> None:
    cluster.mgr("balancer on")
    wait_for("the built-in balancer active",
             lambda: cluster.mgr_json("balancer status")["active"], 15)
    started = time.monotonic()
    assert equilibrium(cluster, "on").rc == 0
    try:
        assert cluster.mgr_json("balancer status")["active"] is False
        wait_for("first upmaps sent", lambda: workload.upmap_items(cluster), 90, pause=0.2)
        waited = time.monotonic() - started
        figure(f"first upmaps {waited:.1f} s after `on`, the built-in balancer having been on "
               f"with rounds of {workload.BUILTIN_SLEEP} s")
        assert waited >= workload.BUILTIN_SLEEP - 0.5
    finally:
        equilibrium(cluster, "off")
        cluster.mgr("balancer off")
    time.sleep(4)  # a batch that was on its way may still land, in a second epoch
    items = workload.upmap_items(cluster)
    time.sleep(6)
    assert workload.upmap_items(cluster) == items
    assert status(cluster)["active"] is False

"""Automatic mode: `on` brings an unequal cluster to rest by itself, `off` stops it at once."""

from __future__ import annotations

import time
from typing import Callable

import pytest

from .cluster import DaemonCluster
from .daemons import wait_for
from .harness import workload
from .harness.commands import equilibrium, is_builtin_on, run, status, wait_state

AUTOMATIC_SECONDS = 300


@pytest.mark.releases(16)
def test_on_balances_until_nothing_is_left(
        cluster: DaemonCluster, unbalanced: workload.Usage, figure: Callable[[str], None]) -> None:
    started = time.monotonic()
    run(cluster, "on")
    try:
        wait_state(cluster, ["balanced"], AUTOMATIC_SECONDS, pause=1.0)
        workload.wait_clean(cluster)
        items = workload.upmap_items(cluster)
        after = workload.settled_usage(cluster)
        figure(f"automatic mode balanced after {time.monotonic() - started:.0f} s, "
               f"{len(items)} PGs with upmaps: {unbalanced} -> {after}")
        assert items
        assert after.highest < unbalanced.highest
        assert after.variance < unbalanced.variance
        time.sleep(8)
        assert workload.upmap_items(cluster) == items, "it moves on at the optimum"
    finally:
        equilibrium(cluster, "off")
    wait_state(cluster, ["off"], 10)


def test_on_waits_for_the_builtin_balancer_and_off_stops(
        cluster: DaemonCluster, unbalanced: workload.Usage, figure: Callable[[str], None]) -> None:
    cluster.mgr("balancer on")
    wait_for("the built-in balancer active", lambda: is_builtin_on(cluster), 15)
    started = time.monotonic()
    run(cluster, "on")
    try:
        assert not is_builtin_on(cluster)
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

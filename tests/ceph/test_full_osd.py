"""An OSD beyond full_ratio: what stands still for it is named with the command that helps."""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, Iterator, List

import pytest

from .cluster import DaemonCluster
from .daemons import ClusterError, wait_for
from .harness import workload
from .harness.commands import equilibrium, status

pytestmark = [pytest.mark.releases(20), pytest.mark.long]

RATIOS = {"nearfull": 0.85, "backfillfull": 0.90, "full": 0.95}
BELOW = {"nearfull": 0.05, "backfillfull": 0.03, "full": 0.01}
"""So far below the fullest OSD the ratios are set; Ceph wants them in this order."""
BALANCED_SECONDS = 300
STOPPED_SECONDS = 60


@pytest.fixture
def overfull(cluster: DaemonCluster, unbalanced: workload.Usage) -> Iterator[float]:
    """The fullest OSD stands above full_ratio; how full it is."""
    set_ratios(cluster, {name: unbalanced.highest - below for name, below in BELOW.items()})
    yield unbalanced.highest
    equilibrium(cluster, "off")
    set_ratios(cluster, RATIOS)
    workload.wait_clean(cluster)


def test_it_goes_on_once_the_ratio_is_raised(
        cluster: DaemonCluster, overfull: float, figure: Callable[[str], None]) -> None:
    wait_for("the OSD full", lambda: "OSD_FULL" in cluster.mon_json("health")["checks"], 30)
    assert equilibrium(cluster, "on").rc == 0
    told = wait_told(cluster)
    states = cluster.mon_json("status")["pgmap"]["pgs_by_state"]
    explained = equilibrium(cluster, "explain").out
    figure(f"fullest OSD at {overfull:.3f}, full_ratio {overfull - BELOW['full']:.3f}: "
           f"{told['state']}: {told['reason']}; {told['too_full']}; {states}")
    assert "ceph osd set-full-ratio" in told["action"], told["action"]
    assert "ceph osd set-full-ratio" in explained, explained
    command = told["too_full"][0]["command"]
    assert cluster.ceph(command[len("ceph "):]).rc == 0
    began = time.monotonic()
    set_ratios(cluster, RATIOS)
    try:
        wait_for("state balanced", lambda: status(cluster)["state"] == "balanced",
                 BALANCED_SECONDS, pause=1.0)
    except ClusterError:
        pytest.fail(f"not balanced: {status(cluster)}")
    workload.wait_clean(cluster)
    after = workload.settled_usage(cluster)
    figure(f"balanced {time.monotonic() - began:.0f} s after {command!r}: {after}")
    assert after.highest < overfull
    assert status(cluster)["too_full"] == []


def wait_told(cluster: DaemonCluster) -> Dict[str, Any]:
    """The module's status once it has named what is too full."""
    seen: List[Dict[str, Any]] = []

    def told() -> Dict[str, Any]:
        seen.append(status(cluster))
        return seen[-1] if seen[-1]["too_full"] else {}
    try:
        return wait_for("what is too full", told, STOPPED_SECONDS, pause=1.0)
    except ClusterError:
        pytest.fail(f"nothing is named as too full: {seen[-1]}, "
                    f"{cluster.mon_json('status')['pgmap']['pgs_by_state']}")


def set_ratios(cluster: DaemonCluster, ratios: Dict[str, float]) -> None:
    """All three, in an order that Ceph takes."""
    for name, ratio in sorted(ratios.items(), key=lambda entry: entry[1]):
        cluster.mon(f"osd set-{name}-ratio", ratio=round(ratio, 3))
